import { isJsonObject, type JsonObject } from "../web/body.ts";
import { parseStoredJson, stringifyJson } from "../web/json.ts";
import { CorruptRow, decodeText, encodeText, type Entry } from "../engine/row.ts";
import type { Store } from "../engine/store.ts";
import { batched } from "../engine/batch.ts";
import { Ids } from "../engine/ids.ts";
import type { Transaction, Write } from "../engine/transaction.ts";
import type { Transactions } from "../engine/transactions.ts";
import type { VersionRow } from "../engine/versions.ts";
import { PET, type Pet, PET_FIELDS, type PetStatus } from "./pet.ts";

/** The fields of an animal that this release knows. */
const MEMBERS: ReadonlySet<string> = new Set(["id", ...Object.keys(PET_FIELDS)]);

/** The row whose version changes when an animal does. */
export const CATALOGUE_VERSION: Deno.KvKey = ["catalogue"];

/** Which animals to list. */
export interface PetQuery {
  /** Maximum number of animals. */
  readonly limit: number;
  /** Only animals with this status. */
  readonly status?: PetStatus;
  /** Only animals with a greater ID. */
  readonly cursor?: number;
}

/** A page of animals in ascending order of ID, each as JSON. */
export interface PetPage {
  readonly pets: readonly string[];
  /** ID of the last animal, if there are more. */
  readonly next: number | undefined;
  /** The rows that it was made from, with their versions. */
  readonly version: string;
}

/** An animal and the account that added it. */
export interface OwnedPet {
  readonly pet: Pet;
  readonly ownerId: string;
  /** Fields that a later release has stored. They are kept unchanged. */
  readonly rest?: JsonObject;
}

/** Some animals with their owners, in ascending order of ID. */
export interface OwnedPetPage {
  readonly pets: readonly OwnedPet[];
  /** ID of the last animal, if there may be more. */
  readonly next: number | undefined;
}

/** The catalogue. Methods that read throw StoreUnavailable if KV fails. */
export class PetStore {
  /** IDs of new animals. */
  readonly ids: Ids;
  /** Reads an animal as JSON; null if no animal has this ID. Simultaneous calls share a read. */
  readonly find: (id: number) => Promise<string | null>;
  readonly #store: Store;
  readonly #version: VersionRow;

  /** Transactions that add, change or remove an animal bump `version`. */
  constructor(store: Store, transactions: Transactions, version: VersionRow) {
    this.#store = store;
    this.#version = version;
    this.ids = new Ids(transactions, ["ids"]);
    this.find = batched(async (ids) => {
      const entries = await store.getMany(ids.map(petKey));
      return (index) => entries[index] ? jsonIn(entries[index]) : null;
    });
  }

  /** Adds an animal with a new ID for an account. */
  adding(pet: Pet, ownerId: string): Transaction<Pet> {
    return {
      queue: "changes",
      decide: (_rows, write) => {
        this.#put({ pet, ownerId }, write);
        return pet;
      },
    };
  }

  /**
   * Changes an animal to the result of `decide`, or removes it if that is null. The result is the animal afterwards,
   * with its owner.
   */
  changing(id: number, decide: (owned: OwnedPet | null) => Pet | null): Transaction<OwnedPet | null> {
    const key = petKey(id);
    return {
      queue: "changes",
      reads: [key],
      decide: (rows, write) => {
        const entry = rows.get(key);
        const owned = entry && ownedPetIn(entry);
        const after = decide(owned);
        if (owned === null || after === owned.pet) return owned;
        if (after?.status !== owned.pet.status) write.delete(statusKey(owned.pet));
        if (after === null) {
          write.delete(key);
          write.bump(this.#version);
          return null;
        }
        const changed = { ...owned, pet: after };
        this.#put(changed, write);
        return changed;
      },
    };
  }

  /** Reads `limit` animals with their owners, in ascending order of ID, from the first one after `cursor`. */
  async listOwned(limit: number, cursor: number = 0): Promise<OwnedPetPage> {
    const entries = await this.#store.list({ start: petKey(cursor + 1), end: petKey(Infinity) }, limit);
    const pets = entries.map(ownedPetIn);
    return { pets, next: pets.length === limit ? pets.at(-1)?.pet.id : undefined };
  }

  /** Returns a page of the catalogue: `earlier`, which answered the same query, if its rows have not changed. */
  async list({ limit, status, cursor = 0 }: PetQuery, earlier?: PetPage): Promise<PetPage> {
    const prefix = status === undefined ? ["pets"] : ["pets_by_status", status];
    const range = { start: [...prefix, cursor + 1], end: [...prefix, Infinity] };
    const entries = await this.#store.list(range, limit + 1);
    const version = entries.map(({ key, versionstamp }) => `${String(key.at(-1))} ${versionstamp}`).join();
    if (version === earlier?.version) return earlier;
    return {
      pets: entries.slice(0, limit).map(jsonIn),
      next: entries.length > limit ? Number(entries.at(-2)?.key.at(-1)) : undefined,
      version,
    };
  }

  /**
   * Writes both rows of an animal, by ID and by status. The first line is the JSON for clients, the second the owner.
   */
  #put({ pet, ownerId, rest }: OwnedPet, write: Write): void {
    const value = encodeText(`${stringifyJson({ ...pet, ...rest })}\n${ownerId}`);
    write.set(petKey(pet.id), value);
    write.set(statusKey(pet), value);
    write.bump(this.#version);
  }
}

function petKey(id: number): Deno.KvKey {
  return ["pets", id];
}

function statusKey({ status, id }: Pet): Deno.KvKey {
  return ["pets_by_status", status, id];
}

/** The JSON of an animal for clients: the stored text, without fields that only a later release knows. */
function jsonIn(entry: Entry): string {
  const { json, members } = linesIn(entry);
  return Object.keys(members).every((name) => MEMBERS.has(name))
    ? json
    : stringifyJson(ownedPetIn(entry).pet);
}

/** Decodes an animal. Its fields may exceed today's bounds. */
function ownedPetIn(entry: Entry): OwnedPet {
  const { members, ownerId } = linesIn(entry);
  const { known = [], rest } = Object.groupBy(
    Object.entries(members),
    ([name]) => MEMBERS.has(name) ? "known" : "rest",
  );
  const pet: unknown = Object.fromEntries(known);
  if (!PET.accepts(pet)) throw new CorruptRow("A row of pets is not an animal");
  return { pet, ownerId, ...(rest && { rest: Object.fromEntries(rest) }) };
}

/** Splits a row into its two lines. */
function linesIn(entry: Entry): { json: string; members: JsonObject; ownerId: string } {
  const [json = "", ownerId = ""] = decodeText(entry).split("\n");
  try {
    const members = parseStoredJson(json);
    if (isJsonObject(members)) return { json, members, ownerId };
  } catch {
    // Not JSON.
  }
  throw new CorruptRow("A row of pets is not an animal");
}
