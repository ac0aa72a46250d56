import { Invalid, resolved, type Schema } from "../api/schema.ts";
import { stringifyJson } from "../http/json.ts";
import { type Pet, PET_FIELDS, PET_PATCH, type PetPatch } from "../pets/pet.ts";
import type { OwnedPet } from "../pets/pet_store.ts";
import { type Arguments, CommandError, parseCount, type Task, UsageError } from "./command_line.ts";
import { type Columns, printableJson, startTable } from "./table.ts";

const FIELDS = Object.entries(PET_FIELDS);
const NAMES = Object.keys(PET_FIELDS);
const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Commands on animals. */
export const PETS: Task = {
  name: "pets",
  loggable: /^\d{1,16}$/,
  commands: {
    list: {
      forms: { "[--json]": `list all animals: id, ${NAMES.join(", ")}, the account that added each` },
      prepare({ options }, io) {
        return async ({ pets }) => {
          const write = startTable(COLUMNS, options.has("json"), io);
          for await (const owned of pets.listOwned()) await write(owned);
        };
      },
    },
    set: {
      forms: {
        [`ID ${FIELDS.map(usageOf).join(" ")}`]:
          "update an animal of any account; if N is negative, write --category-id=-5",
      },
      prepare({ words, options }, { out }) {
        const id = parseCount("ID", words[0]);
        const patch = parsePatch(options);
        return async ({ pets, transact }) => {
          const pet = await transact(pets.changing(id, (owned) => ({ ...found(owned, id), ...patch })));
          if (pet) await out(printableJson(stringifyJson(pet)));
        };
      },
    },
    delete: {
      forms: { ID: "delete an animal of any account" },
      prepare({ words }, { err }) {
        const id = parseCount("ID", words[0]);
        return async ({ pets, transact }) => {
          await transact(pets.changing(id, (owned) => (found(owned, id), null)));
          err(`Deleted: animal ${id}.`);
        };
      },
    },
  },
};

const COLUMNS: Columns<OwnedPet> = {
  ...Object.fromEntries(
    ["id", ...NAMES].map((
      name,
    ) => [name, ({ pet }: { pet: Readonly<Record<string, unknown>> }) => pet[name]]),
  ),
  accountId: ({ ownerId }) => ownerId,
};

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

/** The usage of a field's option, with its choices or a placeholder. The option of a list can be repeated. */
function usageOf([name, schema]: readonly [name: string, schema: Schema]): string {
  const { items } = resolved(schema);
  const { enum: choices, type } = resolved(items ? { ...schema, json: items } : schema);
  const word = choices?.join("|") ?? (type === "integer" ? "N" : "TEXT");
  return `[--${optionOf(name)} ${word}]${items ? "..." : ""}`;
}

function found(owned: OwnedPet | null, id: number): Pet {
  if (owned === null) throw new CommandError(`There is no animal with the id ${id}`);
  return owned.pet;
}
