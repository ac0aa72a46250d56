import { Invalid, type Parsed, resolved, type Schema } from "../web/schema.ts";
import { stringifyJson } from "../web/json.ts";
import { PET_FIELDS, PET_PATCH, type PetPatch } from "../pets/pet.ts";
import type { Client } from "./client.ts";
import { type Arguments, type CommandGroup, type Option, parseCount, UsageError } from "./command_line.ts";
import { MAX_PETS, OWNED_PET, OWNED_PETS, PETS_PATH } from "./pet_operations.ts";
import { type Columns, printableJson, startTable } from "./table.ts";

type OwnedPet = Parsed<typeof OWNED_PET>;

const FIELDS = Object.entries(PET_FIELDS);
const NAMES = Object.keys(PET_FIELDS);
const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Commands on animals. */
export const PET_COMMANDS: CommandGroup<Client> = {
  name: "pets",
  commands: {
    list: {
      options: { json: {} },
      help: `list all animals: id, ${NAMES.join(", ")}, the account that added each`,
      prepare({ options }, io) {
        return async (client) => {
          const all = await client.list(`${PETS_PATH}?limit=${MAX_PETS}`, OWNED_PETS);
          const write = startTable(COLUMNS, options.has("json"), io);
          for await (const pet of all) await write(pet);
        };
      },
    },
    set: {
      words: ["ID"],
      options: Object.fromEntries(FIELDS.map(([name, schema]) => [optionOf(name), valueOf(schema)])),
      help: "update an animal of any account; if N is negative, write --category-id=-5",
      prepare({ words, options }, { out }) {
        const id = parseCount("ID", words[0]);
        const patch = parsePatch(options);
        return async (client) => {
          const { accountId: _, ...pet } = await client.call("PATCH", `${PETS_PATH}/${id}`, OWNED_PET, patch);
          await out(printableJson(stringifyJson(pet)));
        };
      },
    },
    delete: {
      words: ["ID"],
      help: "delete an animal of any account",
      prepare({ words }, { err }) {
        const id = parseCount("ID", words[0]);
        return async (client) => {
          await client.send("DELETE", `${PETS_PATH}/${id}`);
          err(`Deleted: animal ${id}.`);
        };
      },
    },
  },
};

const COLUMNS: Columns<OwnedPet> = Object.fromEntries(
  ["id", ...NAMES, "accountId"].map((
    name,
  ) => [name, (pet: Readonly<Record<string, unknown>>) => pet[name]]),
);

function parsePatch(options: Arguments["options"]): PetPatch {
  if (options.size === 0) {
    throw new UsageError(`pets set needs ${EITHER.format(NAMES.map((name) => `--${optionOf(name)}`))}`);
  }
  try {
    const members = FIELDS.flatMap(([name, schema]) => {
      const texts = options.get(optionOf(name));
      return texts ? [[name, schema.fromStrings(texts, name)] as const] : [];
    });
    return PET_PATCH.parse(Object.fromEntries(members), "");
  } catch (error) {
    throw error instanceof Invalid ? new UsageError(error.message) : error;
  }
}

/** The option of a field: `category-id` for `categoryId`. */
function optionOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The value of a field's option: its choices or a placeholder. The option of a list can be repeated. */
function valueOf(schema: Schema): Option {
  const { items } = resolved(schema);
  const { enum: choices, type } = resolved(items ? { ...schema, json: items } : schema);
  return {
    value: choices?.join("|") ?? (type === "integer" ? "N" : "TEXT"),
    ...(items && { isRepeatable: true }),
  };
}
