import { setImmediate } from "node:timers";
import { pause } from "../base/mod.ts";
import {
  type Build,
  type Checks,
  type CommitResult,
  MARKERS,
  Markers,
  type MarkersOptions,
} from "./commit.ts";
import type { Connection } from "./connection.ts";
import { StoreUnavailable } from "./deadline.ts";
import { type Entry, getRows } from "./row.ts";
import { SCHEMA, type SchemaVersion } from "./schema_version.ts";

/** Maximum number of checks in one commit. A local KV allows more. */
export const PORTABLE_CHECKS = 10;

/** Options of a {@linkcode Store}. */
export interface StoreOptions extends MarkersOptions {
  /** Maximum number of checks in one commit: more than PORTABLE_CHECKS if KV is local. */
  readonly maxChecks: number;
}

/** Maximum number of rows that KV returns in one batch. */
const MAX_BATCH = 500;
const REMOVED_AT_ONCE = 200;

/**
 * The rows of Deno KV, with a deadline on every operation, and commits that apply at most once.
 *
 * @throws {StoreUnavailable} from every method if KV fails or does not respond in time.
 */
export class Store {
  /** Maximum number of checks that a caller can add to one commit. */
  readonly maxChecks: number;
  /** Whether KV is on this machine. */
  readonly isLocal: boolean;
  readonly reads: RoundTrip;
  readonly commits: RoundTrip;
  /** The version of the rows, read when the store and each lane is opened. */
  readonly schema: SchemaVersion;
  readonly #connection: Connection;
  readonly #markers: Markers;

  constructor(connection: Connection, { maxChecks, ...options }: StoreOptions) {
    this.#connection = connection;
    this.#markers = new Markers(connection, options);
    this.schema = this.#markers.schema;
    this.maxChecks = maxChecks - 1; // One is for the marker.
    this.isLocal = maxChecks > PORTABLE_CHECKS;
    this.reads = new RoundTrip(this);
    this.commits = new RoundTrip(this);
  }

  /** A number that changes with every commit by any process; undefined if unknown. */
  get dataVersion(): number | undefined {
    return this.#connection.file?.version();
  }

  /** Size of the KV file with its write-ahead log, in bytes; undefined if KV is not a file, or the size is unknown. */
  get fileSize(): number | undefined {
    return this.#connection.file?.size();
  }

  /** Reads a row; null if it does not exist. */
  async get(key: Deno.KvKey): Promise<Entry | null> {
    const [entry = null] = await this.getMany([key]);
    return entry;
  }

  /** Reads rows, in the order of `keys`; null for a missing row. More than ten keys need several snapshots. */
  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.reads.measured(this.#connection.read((kv) => getRows(kv, keys)));
  }

  /** Reads the first `limit` rows that match a selector, or the last ones, beginning with the last. */
  list(selector: Deno.KvListSelector, limit: number, from: "first" | "last" = "first"): Promise<Entry[]> {
    const options = { limit, batchSize: Math.min(limit, MAX_BATCH), reverse: from === "last" };
    return this.#connection.read((kv) => Array.fromAsync(kv.list(selector, options)));
  }

  /** Yields the rows from `start` (inclusive) to `end` (exclusive) in pages, which are not one snapshot. */
  async *pages(start: Deno.KvKey, end: Deno.KvKey, size: number = MAX_BATCH): AsyncGenerator<Entry[]> {
    for (let next: Deno.KvKey | undefined = start; next;) {
      const page: Entry[] = await this.list({ start: next, end }, size);
      yield page;
      const last = page.length === size ? page.at(-1) : undefined;
      next = last && [...last.key, ""]; // The first key after `last`.
    }
  }

  /**
   * Commits the operation that `build` fills, with these checks, at most once. If one fails, reads the rows.
   *
   * @throws {CommitInDoubt} if it is unknown whether it applied.
   */
  commit(build: Build, checks?: Checks): Promise<CommitResult> {
    return this.commits.measured(this.#markers.commit(build, checks));
  }

  /** Removes rows without a check. Only for rows that no other process creates again. */
  async remove(keys: readonly Deno.KvKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.commit((operation) => {
      for (const key of keys) operation.delete(key);
    });
  }

  /** Removes some of the selected rows. Resolves to true if there may be more. */
  async removeAll(selector: Deno.KvListSelector): Promise<boolean> {
    const entries = await this.list(selector, REMOVED_AT_ONCE);
    await this.remove(entries.map(({ key }) => key));
    return entries.length === REMOVED_AT_ONCE;
  }

  /** Checks that KV can be written and read. */
  async probe(): Promise<void> {
    await this.commit(() => {});
    await this.get(SCHEMA);
  }

  /** Removes some of the markers that killed processes left. Resolves to true if there may be more. */
  async sweep(): Promise<boolean> {
    const abandoned: Entry[] = [];
    for await (const page of this.pages(MARKERS.start, MARKERS.end)) {
      abandoned.push(...page.filter((marker) => this.#markers.isAbandoned(marker)));
      if (abandoned.length >= this.maxChecks) break;
    }
    abandoned.splice(this.maxChecks);
    if (abandoned.length === 0) return false;
    await this.commit((operation) => {
      for (const marker of abandoned) operation.check(marker).delete(marker.key);
    });
    return abandoned.length === this.maxChecks;
  }

  /** Removes this process's markers, and closes the KV. Call this when no operation is under way. */
  async close(): Promise<void> {
    try {
      await this.#markers.clear();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    } finally {
      await this.#connection.close();
    }
  }
}

/** A remote KV is far if its mean round trip is longer than this, in ms. */
const FAR = 5;
/** How long a round to a distant KV waits for more requests to join, in ms. */
const GATHERING = 1;
const MAX_TURNS = 8;

/** The recent mean duration of KV operations. */
export class RoundTrip {
  readonly #isLocal: boolean;
  #ms = 0;

  constructor({ isLocal }: { readonly isLocal: boolean }) {
    this.#isLocal = isLocal;
  }

  /** The recent mean, in ms. */
  get ms(): number {
    return this.#ms;
  }

  /** Whether the network takes most of the round trip. A local KV can be slow, but is never far. */
  get isFar(): boolean {
    return !this.#isLocal && this.#ms > FAR;
  }

  /** Measures an operation that has just begun. */
  async measured<Result>(operation: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await operation;
    this.#ms += (performance.now() - started - this.#ms) / 8;
    return result;
  }

  /** Waits for requests that arrive at the same time, or until there are `enough`. `count` returns their number. */
  gather(count: () => number, enough?: number): Promise<void> {
    return this.isFar ? pause(GATHERING) : noMoreArrive(count, enough);
  }
}

/**
 * Resolves when `count` stops growing from one turn of the event loop to the next, at `enough`, or after a few turns.
 */
export async function noMoreArrive(count: () => number, enough: number = Infinity): Promise<void> {
  let before = 0;
  for (let turn = 0; turn < MAX_TURNS && count() > before && before < enough; turn++) {
    before = count();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
