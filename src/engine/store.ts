import { setImmediate } from "node:timers";
import { monotonicNow, msSince, pause } from "../base/mod.ts";
import type { Backend, Build, CommitResult } from "./backend.ts";
import { AGAIN, retried } from "./deadline.ts";
import { EngineMetrics } from "./metrics.ts";
import { type Entry, type ListOptions, versionstampOf } from "./row.ts";
import { type Features, SCHEMA, SchemaVersion } from "./schema_version.ts";

/** Options of a {@linkcode Store}. */
export interface StoreOptions {
  /** The version of the rows; by default not read yet. */
  readonly schema?: SchemaVersion;
  readonly metrics?: EngineMetrics | undefined;
}

/** Number of rows in one page. */
const PAGE = 500;
const REMOVED_AT_ONCE = 200;

/**
 * The rows of Deno KV, with a deadline on every operation, and commits that apply at most once, and only while the
 * schema version of the rows is known.
 *
 * @throws {StoreUnavailable} from every method if KV fails or does not respond in time.
 */
export class Store {
  /** Maximum number of checks that a caller can add to one commit. */
  readonly maxChecks: number;
  readonly reads: RoundTrip;
  readonly commits: RoundTrip;
  /** The version of the rows. */
  readonly schema: SchemaVersion;
  readonly metrics: EngineMetrics;
  /** Number of commits of this process that have applied. */
  commitCount = 0;
  readonly #backend: Backend;

  constructor(
    backend: Backend,
    { schema = new SchemaVersion(), metrics = new EngineMetrics() }: StoreOptions = {},
  ) {
    this.schema = schema;
    this.#backend = backend;
    this.metrics = metrics;
    this.maxChecks = backend.maxChecks - 1; // One is for the schema version.
    this.reads = new RoundTrip(this);
    this.commits = new RoundTrip(this);
  }

  /** Number of rounds that are worth having under way at a time. It can change. */
  get lanes(): number {
    return this.#backend.lanes;
  }

  /** A number that changes with every commit by any process; undefined if unknown. */
  get dataVersion(): number | undefined {
    return this.#backend.dataVersion;
  }

  /** Size of the KV in bytes, if it is a file; undefined if unknown. */
  get fileSize(): number | undefined {
    return this.#backend.size;
  }

  /** Reads the features, which another process may have switched. */
  async features(): Promise<Features> {
    const row = await this.get(SCHEMA);
    if (versionstampOf(row) !== this.schema.check.versionstamp) this.schema.learn(row);
    return this.schema.features;
  }

  /** Reads a row; null if it does not exist. */
  async get(key: Deno.KvKey): Promise<Entry | null> {
    const [entry = null] = await this.getMany([key]);
    return entry;
  }

  /** Reads rows, in the order of `keys`; null for a missing row. More than ten keys need several snapshots. */
  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.reads.measured(this.#backend.getMany(keys));
  }

  /** Versionstamps of rows, in the order of `keys`; null for a missing row. They are not of one snapshot. */
  async versionsOf(keys: readonly Deno.KvKey[]): Promise<readonly (string | null)[]> {
    return this.#backend.versionsOf?.(keys) ?? (await this.getMany(keys)).map(versionstampOf);
  }

  /** Reads the first `limit` rows that match a selector or, in reverse, the last ones. */
  list(selector: Deno.KvListSelector, limit: number, options?: ListOptions): Promise<Entry[]> {
    return this.#backend.list(selector, limit, options);
  }

  /** Yields the rows from `start` (inclusive) to `end` (exclusive) in pages, which are not one snapshot. */
  async *pages(start: Deno.KvKey, end: Deno.KvKey, size: number = PAGE): AsyncGenerator<Entry[]> {
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
  commit(build: Build, checks: readonly Deno.AtomicCheck[] = []): Promise<CommitResult> {
    return retried(async () => {
      const { check } = this.schema;
      const result = await this.commits.measured(this.#backend.commit(build, [check, ...checks]));
      if (result.ok) {
        this.commitCount++;
        return result;
      }
      this.metrics.kvConflicts.add(1);
      const [schema = null, ...rows] = result.rows;
      const hasMoved = versionstampOf(schema) !== check.versionstamp;
      if (hasMoved) this.schema.learn(schema);
      const isLost = checks.some(({ versionstamp }, index) =>
        versionstampOf(rows[index] ?? null) !== versionstamp
      );
      // Only the row of the schema version had changed, but not the version itself.
      return hasMoved && !isLost ? AGAIN : { ok: false, rows };
    });
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
    await this.#backend.probe();
    await this.get(SCHEMA);
  }

  /** Removes some of what killed processes left for the engine. Resolves to true if there may be more. */
  sweep(): Promise<boolean> {
    return this.#backend.sweep();
  }

  /** Closes the KV. Call this when no operation is under way. */
  close(): Promise<void> {
    return this.#backend.close();
  }
}

/** A remote KV is far if its mean round trip is longer than this, in ms. */
const FAR = 5;
/** How long a round to a distant KV waits for more requests to join, in ms. */
const GATHERING = 1;

/** The recent mean duration of KV operations. */
export class RoundTrip {
  readonly #of: Pick<Store, "lanes">;
  /** The recent mean, in ms. */
  ms: number = 0;

  constructor(of: Pick<Store, "lanes">) {
    this.#of = of;
  }

  /** Whether the network takes most of the round trip. A local KV can be slow, but is never far. */
  get isFar(): boolean {
    return this.#of.lanes > 1 && this.ms > FAR;
  }

  /** Measures an operation that has just begun. */
  async measured<Result>(operation: Promise<Result>): Promise<Result> {
    const started = monotonicNow();
    const result = await operation;
    this.ms += (msSince(started) - this.ms) / 8;
    return result;
  }

  /** Waits for requests that arrive at the same time: for a turn of the event loop or, if KV is far, a millisecond. */
  gather(): Promise<void> {
    return this.isFar ? pause(GATHERING) : new Promise((resolve) => setImmediate(resolve));
  }
}
