import { setImmediate } from "node:timers";
import type { Metrics } from "../metrics/metrics.ts";
import { type Build, type CommitResult, MARKERS, Markers } from "./commit.ts";
import type { Connection } from "./connection.ts";
import { pause, StoreUnavailable } from "./deadline.ts";
import { type Entry, getRows } from "./row.ts";
import { SCHEMA, type Schema } from "./schema.ts";

/** Checks that every KV takes in one commit; only one on this machine takes more. */
export const PORTABLE_CHECKS = 10;

/** What differs between KVs. */
export interface StoreOptions {
  /** Checks that KV takes in one commit: more than PORTABLE_CHECKS if it is on this machine. */
  readonly maxChecks: number;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** The version of the rows; one that has not been seen, unless it is given. */
  readonly schema?: Schema;
}

/** Rows that KV gives at a time. */
const MAX_BATCH = 500;
const REMOVED_AT_ONCE = 200;

/**
 * The rows of Deno KV, with a deadline on every operation, and commits that tell the truth.
 *
 * @throws {StoreUnavailable} from every method, when KV fails or does not answer in time.
 */
export class Store {
  /** Checks that one commit may carry. */
  readonly maxChecks: number;
  /** Whether KV is on this machine, so that an operation waits for the disk at most. */
  readonly isLocal: boolean;
  /** How long reads of rows take, and commits of every kind, with what they wait for. */
  readonly reads: RoundTrip;
  readonly commits: RoundTrip;
  /** The version of the rows: seen when it is opened, and again with each marker. */
  readonly schema: Schema;
  /** The metrics of the service that uses this store. */
  readonly metrics: Metrics;
  readonly #connection: Connection;
  readonly #markers: Markers;

  constructor(connection: Connection, { maxChecks, clock, schema }: StoreOptions) {
    this.#connection = connection;
    this.#markers = new Markers(connection, clock, schema);
    this.schema = this.#markers.schema;
    this.metrics = connection.metrics;
    this.maxChecks = maxChecks - 1; // One is the marker's.
    this.isLocal = maxChecks > PORTABLE_CHECKS;
    this.reads = new RoundTrip(this);
    this.commits = new RoundTrip(this);
  }

  /** Stays the same for as long as nobody commits anything; undefined if that is unknown. */
  get dataVersion(): number | undefined {
    return this.#connection.file?.version();
  }

  /** How many bytes the file of the KV has; undefined if it is no file, or that is unknown. */
  get fileSize(): number | undefined {
    return this.#connection.file?.size();
  }

  /** One row, or null. */
  async get(key: Deno.KvKey): Promise<Entry | null> {
    const [entry = null] = await this.getMany([key]);
    return entry;
  }

  /** Rows in the order of their keys, null if there is none. Not one snapshot beyond ten keys. */
  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.reads.measured(this.#connection.read((kv) => getRows(kv, keys)));
  }

  /** The first `limit` rows that the selector selects. */
  list(selector: Deno.KvListSelector, limit: number): Promise<Entry[]> {
    const batchSize = Math.min(limit, MAX_BATCH);
    return this.#connection.read((kv) => Array.fromAsync(kv.list(selector, { limit, batchSize })));
  }

  /** Every row from `start` on, before `end`, a page at a time: not one snapshot. */
  async *pages(start: Deno.KvKey, end: Deno.KvKey, size: number = MAX_BATCH): AsyncGenerator<Entry[]> {
    for (let next: Deno.KvKey | undefined = start; next;) {
      const page: Entry[] = await this.list({ start: next, end }, size);
      yield page;
      const last = page.length === size ? page.at(-1) : undefined;
      next = last && [...last.key, ""]; // What comes right after it.
    }
  }

  /**
   * Commits what `build` asks for, at most once; if it is refused, reads the rows with these keys.
   *
   * @throws {CommitInDoubt} when it is not known whether it applied.
   */
  commit(build: Build, keys: readonly Deno.KvKey[] = []): Promise<CommitResult> {
    return this.commits.measured(this.#markers.commit(build, keys));
  }

  /** Removes rows that nobody makes anew. */
  async remove(keys: readonly Deno.KvKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.commit((operation) => {
      for (const key of keys) operation.delete(key);
    });
  }

  /** Removes some of the rows that a selector selects; resolves to whether there may be more. */
  async removeAll(selector: Deno.KvListSelector): Promise<boolean> {
    const entries = await this.list(selector, REMOVED_AT_ONCE);
    await this.remove(entries.map(({ key }) => key));
    return entries.length === REMOVED_AT_ONCE;
  }

  /** Writes and reads, and so finds out whether both work. */
  async probe(): Promise<void> {
    await this.commit(() => {});
    await this.get(SCHEMA);
  }

  /** Removes some of what killed processes left of their commits; resolves to whether there may be more. */
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

  /** Closes the KV; drain first. */
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

/** A KV that takes longer than this counts as far, in ms. */
const FAR = 5;
/** How long waiting for company is worth it there, in ms. */
const GATHERING = 1;
const MAX_TURNS = 8;

/** How long KV takes to answer. */
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

  /** Whether most of that is spent travelling. A KV on this machine may be slow, but is never far. */
  get isFar(): boolean {
    return !this.#isLocal && this.#ms > FAR;
  }

  /** Notes how long an operation takes that has just begun. */
  async measured<Result>(operation: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await operation;
    this.#ms += (performance.now() - started - this.#ms) / 8;
    return result;
  }

  /** Resolves when all that arrive at the same time are there, as `count` tells, or `enough` of them. */
  gather(count: () => number, enough?: number): Promise<void> {
    return this.isFar ? pause(GATHERING) : noMoreArrive(count, enough);
  }
}

/** Resolves when a turn of the event loop brings no more of them, when there are enough, or after a few turns. */
export async function noMoreArrive(count: () => number, enough: number = Infinity): Promise<void> {
  let before = 0;
  for (let turn = 0; turn < MAX_TURNS && count() > before && before < enough; turn++) {
    before = count();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
