import { Invalid, resolved, type Schema } from "../api/schema.ts";
import type { JsonObject } from "../http/body.ts";
import { stringifyJson } from "../http/json.ts";
import { type Pet, PET_FIELDS, PET_PATCH, type PetPatch } from "../pets/pet.ts";
import type { OwnedPet } from "../pets/pet_store.ts";
import { type Arguments, expect, type Group, optionOf, parseCount } from "./arguments.ts";
import { type Columns, printableJson, startTable } from "./table.ts";
import { CommandError, UsageError } from "./terminal.ts";

const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });
/** The options of `pets set`. */
const OPTIONS = Object.keys(PET_FIELDS).map(optionOf);

const HELP = `Usage: deno task pets COMMAND

  list [--json]      every animal: id, ${Object.keys(PET_FIELDS).join(", ")}, the account that added it
  set ID ${Object.entries(PET_FIELDS).map(([name, schema]) => usageOf(name, schema)).join(" ")}
                     change any account's animal; write --category-id=-5 where N is negative
  delete ID          remove any account's animal`;

const COLUMNS: Columns<OwnedPet> = {
  ...Object.fromEntries(["id", ...Object.keys(PET_FIELDS)].map((name) => [name, cellOf(name)])),
  accountId: ({ ownerId }) => ownerId,
};

/** What operators do with animals. */
export const PETS: Group = {
  help: HELP,
  loggable: /^\d{1,16}$/,
  commands: {
    list(args, terminal) {
      expect(args, [], ["json"]);
      return async ({ pets }) => {
        const write = startTable(COLUMNS, args.options.json === true, terminal);
        for await (const owned of pets.listOwned()) await write(owned);
      };
    },
    set(args, { out }) {
      const id = parseId(args, OPTIONS);
      const patch = parsePatch(args);
      return async ({ pets, transact }) => {
        const pet = await transact(pets.changing(id, (owned) => ({ ...found(owned, id), ...patch })));
        if (pet) await out(printableJson(stringifyJson(pet)));
      };
    },
    delete(args, { err }) {
      const id = parseId(args);
      return async ({ pets, transact }) => {
        await transact(pets.changing(id, (owned) => (found(owned, id), null)));
        err(`Deleted: animal ${id}.`);
      };
    },
  },
};

function parseId(args: Arguments, known: readonly string[] = []): number {
  const [id = ""] = expect(args, ["an ID"], known);
  return parseCount("ID", id);
}

function parsePatch({ fields }: Arguments): PetPatch {
  if (fields.size === 0) {
    throw new UsageError(`pets set needs ${EITHER.format(OPTIONS.map((name) => `--${name}`))}`);
  }
  const texts = Object.entries(PET_FIELDS).filter(([name]) => fields.has(name));
  try {
    const members = texts.map(([name, schema]) => [name, schema.fromTexts(fields.get(name) ?? [], name)]);
    return PET_PATCH.parse(Object.fromEntries(members), "");
  } catch (error) {
    throw error instanceof Invalid ? new UsageError(error.message) : error;
  }
}

function cellOf(field: string): (owned: { readonly pet: JsonObject }) => unknown {
  return ({ pet }) => pet[field];
}

/** What stands for a value in the help: its choices, or a word. */
/** The option for a field as help has it; that of a list is given once for each value. */
function usageOf(name: string, schema: Schema): string {
  const { items } = resolved(schema);
  const option = `[--${optionOf(name)} ${wordFor(items ? { ...schema, json: items } : schema)}]`;
  return items ? `${option}...` : option;
}

function wordFor(schema: Schema): string {
  const { enum: choices, type } = resolved(schema);
  return choices?.join("|") ?? (type === "integer" ? "N" : "TEXT");
}

function found(owned: OwnedPet | null, id: number): Pet {
  if (owned === null) throw new CommandError(`There is no animal with the id ${id}`);
  return owned.pet;
}
