import { ApiError } from "../http/error.ts";
import { parseJson } from "../http/json.ts";
import { type NewPet, parsePetPatch, type Pet, toJson } from "../pets/pet.ts";
import type { OwnedPet } from "../pets/pet_store.ts";
import { type Arguments, expect, type Group, type Option, parseCount } from "./arguments.ts";
import { type Columns, printableJson, startTable } from "./table.ts";
import { CommandError, UsageError } from "./terminal.ts";

const HELP = `Usage: deno task pets COMMAND

  list [--json]      every animal: id, name, category, status, the account that added it
  set ID [--name NAME] [--category-id N] [--status available|pending|sold]
                     change an animal, whoever added it; write --category-id=-5 where N is negative
  delete ID          remove an animal, whoever added it`;

const COLUMNS: Columns<OwnedPet> = {
  id: ({ pet }) => pet.id,
  name: ({ pet }) => pet.name,
  categoryId: ({ pet }) => pet.categoryId,
  status: ({ pet }) => pet.status,
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
      const id = parseId(args, ["name", "category-id", "status"]);
      const patch = parsePatch(args.options);
      return async ({ pets }) => {
        const pet = await pets.change(id, (owned) => ({ ...found(owned, id), ...patch }));
        if (pet) await out(printableJson(toJson(pet)));
      };
    },
    delete(args, { err }) {
      const id = parseId(args);
      return async ({ pets }) => {
        await pets.change(id, (owned) => (found(owned, id), null));
        err(`Deleted: animal ${id}.`);
      };
    },
  },
};

function parseId(args: Arguments, known: readonly Option[] = []): number {
  const [id = ""] = expect(args, ["an ID"], known);
  return parseCount("ID", id);
}

function parsePatch({ name, "category-id": categoryId, status }: Arguments["options"]): Partial<NewPet> {
  const given = { name, categoryId: categoryId && parseNumber(categoryId), status };
  const members = Object.entries(given).filter(([, value]) => value !== undefined);
  if (members.length === 0) throw new UsageError("pets set needs --name, --category-id or --status");
  try {
    return parsePetPatch(Object.fromEntries(members));
  } catch (error) {
    throw error instanceof ApiError ? new UsageError(error.message.replace(/\.$/, "")) : error;
  }
}

/** The number, exactly; or the text, which is none. */
function parseNumber(text: string): unknown {
  return /^-?\d+$/.test(text) ? parseJson(text) : text;
}

function found(owned: OwnedPet | null, id: number): Pet {
  if (owned === null) throw new CommandError(`There is no animal with the id ${id}`);
  return owned.pet;
}
