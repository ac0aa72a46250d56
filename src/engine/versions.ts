import { later, monotonicNow, msSince, PAST } from "../base/mod.ts";
import { batched } from "./batch.ts";
import type { Store } from "./store.ts";

/**
 * A row whose version changes whenever any row in a group does. Reading it shows whether caches of the group are
 * current.
 */
export interface VersionRow {
  readonly key: Deno.KvKey;
  /** The last known version; "" if there is no row. Versions compare as strings. */
  version: string;
}

/** Learns a version that was read; null if there was no row. Versions only rise. */
export function raiseVersion(row: VersionRow, versionstamp: string | null): void {
  if (versionstamp !== null && versionstamp > row.version) row.version = versionstamp;
}

/**
 * A unique text for each key whose numbers are finite. A bigint becomes an array, because JSON has no bigints, and keys
 * have no arrays.
 */
export function nameOf(key: Deno.KvKey): string {
  const hasBigint = key.some((part) => typeof part === "bigint");
  return JSON.stringify(hasBigint ? key.map((part) => typeof part === "bigint" ? [`${part}`] : part) : key);
}

/**
 * The version rows that a process's caches depend on. One read tells all requests waiting for it whether the caches
 * are current. Versions only rise, so a slow read never replaces a version from a later read or from this process's own
 * commit.
 *
 * @example
 * ```ts
 * import { assert } from "@std/assert";
 * import { openStore } from "./open.ts";
 *
 * const store = await openStore(":memory:", { clock: Date.now, create: true });
 * const versions = new Versions(store);
 * const catalogue = versions.watch(["catalogue"]);
 * await versions.check();
 * const before = catalogue.version;
 * await store.commit((operation) => operation.set(["catalogue"], new Uint8Array()));
 * await versions.check();
 * assert(catalogue.version > before);
 * await store.close();
 * ```
 */
export class Versions {
  readonly #store: Store;
  readonly #maxStaleness: number;
  readonly #rows: VersionRow[] = [];
  /** Begins a check, or joins the one that begins next. */
  readonly #begin: (check: void) => Promise<void>;
  /** The background check, which no request is waiting for. */
  #refreshing: Promise<undefined> | undefined;
  /** When the latest finished check started. */
  #checkedAt = PAST;
  /** The store's data version before the rows were last read. */
  #dataVersion: number | undefined;
  /** The number of this process's commits at that time. */
  #commitCount = 0;
  /** Number of requests since the last check began, whether they wait for the next one or not. */
  #requests = 0;

  /** `maxStalenessMs` is the maximum age of a check. If it is 0, every call waits for a check that begins after it. */
  constructor(store: Store, maxStalenessMs: number = 0) {
    this.#store = store;
    this.#maxStaleness = maxStalenessMs;
    this.#begin = batched(async () => {
      store.metrics.roundSize.observe(this.#requests, "check");
      this.#requests = 0;
      await this.#read();
      return () => {};
    }, {
      gather: () => store.reads.gather(),
      lanes: () => store.reads.isFar ? store.lanes : 1,
    });
  }

  /** Returns the version row with this key. Every check reads it from now on. */
  watch(key: Deno.KvKey): VersionRow {
    const row = { key, version: "" };
    this.#rows.push(row);
    this.#dataVersion = undefined;
    return row;
  }

  /**
   * Resolves once the known versions are less than `maxStalenessMs` older than this call; undefined if they already are.
   * If they are older than half of that, a check also begins in the background, so that a later call need not wait. By
   * default, `maxStalenessMs` is that of the options.
   *
   * @throws {StoreUnavailable}
   */
  check(maxStalenessMs: number = this.#maxStaleness): Promise<void> | undefined {
    this.#requests++;
    if (maxStalenessMs === 0) return this.#begin(); // Without a look at the clock, which is slow.
    const age = msSince(this.#checkedAt);
    if (age >= maxStalenessMs) return this.#begin();
    // One at a time. Otherwise, with a distant KV, every request that arrives during a check would begin another.
    if (age > maxStalenessMs / 2) {
      this.#refreshing ??= Promise.allSettled([this.#begin()]).then(() => this.#refreshing = undefined);
    }
    return undefined;
  }

  /** Reads the rows, unless it is certain that nothing has changed since the last read. */
  async #read(): Promise<void> {
    const started = monotonicNow();
    const { commitCount } = this.#store;
    // After a commit of this process, another data version is certain, and to read it would take time.
    const dataVersion = commitCount === this.#commitCount ? this.#store.dataVersion : undefined;
    this.#commitCount = commitCount;
    if (dataVersion === undefined || dataVersion !== this.#dataVersion) {
      const rows = [...this.#rows];
      // After the data version: a commit in between is then seen twice, not missed.
      const versions = await this.#store.versionsOf(rows.map(({ key }) => key));
      rows.forEach((row, index) => raiseVersion(row, versions[index] ?? null));
      // A row that was added in the meantime has not been read.
      if (rows.length === this.#rows.length) this.#dataVersion = dataVersion;
    }
    this.#checkedAt = later(this.#checkedAt, started);
  }
}
