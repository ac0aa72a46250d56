/**
 * Shows the steps of src/README.md that add an index: here, of animals by category, which `GET /v1/pets?categoryId=`
 * would read. The new release knows versions 1 and 2 of the rows, the old one only version 1.
 */

import { MARKERS } from "../../src/engine/commit.ts";
import { decodeJson, decodeText, encodeJson, type Entry, versionstampOf } from "../../src/engine/row.ts";
import { type KnownVersions, SCHEMA } from "../../src/engine/schema_version.ts";
import type { Store } from "../../src/engine/store.ts";
import type { Transaction } from "../../src/engine/transaction.ts";

/** Versions that the old release knows. */
export const BEFORE: KnownVersions = { oldest: 1, newest: 1 };
/** Versions that the new release knows. */
export const AFTER: KnownVersions = { oldest: 1, newest: 2 };

const PETS = "pets";
const INDEX = "pets_by_category";
const MIGRATION: Deno.KvKey = ["migrations", AFTER.newest];
/** How long no process of the old release may have committed, in ms. */
export const QUIET = 3 * 60_000;
/** Number of rows per step. */
const PAGE = 3;

/** Step 1: the new release writes the index with every animal, but does not read it. */
export function indexed<Result>(transaction: Transaction<Result>): Transaction<Result> {
  return {
    ...transaction,
    decide(rows, write, now) {
      const leaveIndex = (key: Deno.KvKey) => {
        const before = key[0] === PETS && transaction.reads ? rows.get(key) : null;
        if (before) write.delete(indexKey(before));
      };
      return transaction.decide(rows, {
        bump: (row) => write.bump(row),
        set(key, value) {
          leaveIndex(key);
          write.set(key, value);
          if (key[0] === PETS) write.set(indexKey({ key, value, versionstamp: "" }), new Uint8Array());
        },
        delete(key) {
          leaveIndex(key);
          write.delete(key);
        },
      }, now);
    },
  };
}

/** Progress of the migration after the old release can no longer write. */
interface Progress {
  readonly pass: "animals" | "index" | "done";
  /** The key of the last row that was checked. */
  readonly last: Deno.KvKey;
}

/** Steps 2 and 3: any process of the new release migrates. A process may be killed after each of its commits. */
export class Migration {
  readonly #store: Store;
  readonly #clock: () => number;

  constructor(store: Store, clock: () => number) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Makes the next commit. */
  async step(): Promise<"waits" | "continues" | "is done"> {
    const row = await this.#store.get(MIGRATION);
    if (row === null) return await this.#shutOut();
    const progress = decodeJson<Progress>(row);
    if (progress.pass === "done") return "is done";
    await (progress.pass === "animals" ? this.#addMissing(row, progress) : this.#removeWrong(row, progress));
    return "continues";
  }

  /** Raises the version, so that the old release opens no lane. Then removes the markers of its lanes. */
  async #shutOut(): Promise<"waits" | "continues"> {
    const schema = await this.#store.get(SCHEMA);
    const isRaised = schema !== null && decodeJson<{ version: number }>(schema).version === AFTER.newest;
    const markers = (await this.#store.list(MARKERS, 100)).map((entry) => ({
      key: entry.key,
      ...decodeJson<{ at: number; schema?: number }>(entry),
    })).filter(({ schema = 1 }) => schema < AFTER.newest);
    if (!isRaised && markers.some(({ at }) => this.#clock() - at < QUIET)) return "waits";
    await this.#store.commit((operation) => {
      if (!isRaised) {
        operation.check({ key: SCHEMA, versionstamp: versionstampOf(schema) });
        operation.set(SCHEMA, encodeJson({ version: AFTER.newest }));
      } else if (markers.length > 0) {
        for (const { key } of markers) operation.delete(key);
      } else {
        const first: Progress = { pass: "animals", last: [PETS] };
        operation.check({ key: MIGRATION, versionstamp: null }).set(MIGRATION, encodeJson(first));
      }
    });
    return "continues";
  }

  /** Adds index rows of animals that the old release has added or changed. */
  async #addMissing(row: Entry, { last }: Progress): Promise<void> {
    const animals = await this.#store.list({ start: [...last, ""], end: [PETS, Infinity] }, PAGE);
    const next = animals.length < PAGE ? undefined : animals.at(-1)?.key;
    const progress: Progress = next ? { pass: "animals", last: next } : { pass: "index", last: [INDEX] };
    await this.#store.commit((operation) => {
      operation.check(row, ...animals).set(MIGRATION, encodeJson(progress));
      for (const animal of animals) operation.set(indexKey(animal), new Uint8Array());
    });
  }

  /** Removes index rows of animals that the old release has changed or removed. */
  async #removeWrong(row: Entry, { last }: Progress): Promise<void> {
    const rows = await this.#store.list({ start: [...last, ""], end: [INDEX, Infinity] }, PAGE);
    const next = rows.length < PAGE ? undefined : rows.at(-1)?.key;
    const progress: Progress = next ? { pass: "index", last: next } : { pass: "done", last: [] };
    const keys = rows.map(({ key }) => [PETS, key.at(-1) ?? 0]);
    const animals = await this.#store.getMany(keys);
    await this.#store.commit((operation) => {
      operation.check(row).set(MIGRATION, encodeJson(progress));
      for (const [index, { key }] of rows.entries()) {
        const animal = animals[index] ?? null;
        if (animal && `${indexKey(animal)}` === `${key}`) continue;
        operation.check({ key: keys[index] ?? [], versionstamp: versionstampOf(animal) }).delete(key);
      }
    });
  }
}

/** Step 4: the index is read. */
export async function idsOfCategory(store: Store, categoryId: number): Promise<Deno.KvKeyPart[]> {
  const entries = await store.list({ start: [INDEX, categoryId], end: [INDEX, categoryId, Infinity] }, 1_000);
  return entries.map(({ key }) => key.at(-1) ?? 0);
}

/** The key of the index row of an animal. */
function indexKey(animal: Entry): Deno.KvKey {
  const [json = ""] = decodeText(animal).split("\n");
  return [INDEX, JSON.parse(json).categoryId, animal.key.at(-1) ?? 0];
}
