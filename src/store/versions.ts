import { versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { batched } from "./batch.ts";

/** A row whose version stands for many: a change of any of them changes it, too. One read shows if memory of them is true. */
export interface VersionRow {
  readonly key: Deno.KvKey;
  /** Its version, as far as it is known; "" where there is no row. Versions compare as strings. */
  version: string;
}

/** Takes note of a version that was seen; null if there was no row. Versions only rise. */
export function noteVersion(row: VersionRow, versionstamp: string | null): void {
  if (versionstamp !== null && versionstamp > row.version) row.version = versionstamp;
}

/** A text for each key; JSON has no bigint, and no key of this service has one. */
export function nameOf(key: Deno.KvKey): string {
  return JSON.stringify(key);
}

const MAX_READS = 10;
/** Requests that are worth a read of their own: with many more at a time they wait longer than they save. */
const ENOUGH = 24;

/**
 * The version rows that a process remembers things under. One shared read tells all requests that wait for it whether
 * what is remembered is still true. Versions only rise: a read that took long cannot undo what a later one, or a commit
 * of this process, has shown.
 *
 * @example
 * ```ts
 * import { assert } from "@std/assert";
 * import { openStore } from "../kv/open.ts";
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
  /** The check that nobody waits for. */
  #refreshing: Promise<void> | undefined;
  /** When the newest check that ended had started, by `performance.now()`. */
  #checkedAt = -Infinity;
  /** The store's data version before the rows were read last. */
  #dataVersion: number | undefined;
  /** How often it was asked for. */
  #asked = 0;

  /** A check may be `maxStaleness` ms old; by default it starts after the request for it. */
  constructor(store: Store, maxStaleness: number = 0) {
    this.#store = store;
    this.#maxStaleness = maxStaleness;
    this.#begin = batched(async () => {
      store.metrics.roundSize.observe(this.#asked, "look");
      this.#asked = 0;
      await this.#read();
      return () => {};
    }, {
      gather: () => store.reads.gather(() => this.#asked, ENOUGH),
      lanes: () => store.reads.isFar ? MAX_READS : 1,
    });
  }

  /** The version row with this key, which is read in every check from now on. */
  watch(key: Deno.KvKey): VersionRow {
    const row = { key, version: "" };
    this.#rows.push(row);
    this.#dataVersion = undefined;
    return row;
  }

  /**
   * Resolves once what is known was read after this call, or at most `maxStaleness` ms before it; undefined if it
   * already was.
   *
   * @throws {StoreUnavailable}
   */
  check(): Promise<void> | undefined {
    this.#asked++;
    if (this.#maxStaleness === 0) return this.#begin();
    const age = performance.now() - this.#checkedAt;
    if (age > this.#maxStaleness) return this.#begin();
    // One at a time: from far away, every request that came during it would begin another.
    if (age > this.#maxStaleness / 2) this.#refreshing ??= this.#refresh();
    return undefined;
  }

  /**
   * Makes sure that a check held at `since`, by `performance.now()`, or later.
   *
   * @throws {Outdated} if it did not.
   * @throws {StoreUnavailable}
   */
  async confirm(check: VersionCheck, since: number): Promise<void> {
    if (check.heldSince(since)) return;
    await this.check();
    if (!check.holds) throw new Outdated();
  }

  async #refresh(): Promise<void> {
    await Promise.allSettled([this.#begin()]);
    this.#refreshing = undefined;
  }

  /** Reads the rows, unless it is certain that nothing has changed since they were read. */
  async #read(): Promise<void> {
    const started = performance.now();
    const { dataVersion } = this.#store;
    if (dataVersion === undefined || dataVersion !== this.#dataVersion) {
      const rows = [...this.#rows];
      const entries = await this.#store.getMany(rows.map(({ key }) => key));
      rows.forEach((row, index) => noteVersion(row, versionstampOf(entries[index] ?? null)));
      // A row that is watched since has not been read.
      if (rows.length === this.#rows.length) this.#dataVersion = dataVersion;
    }
    this.#checkedAt = Math.max(this.#checkedAt, started);
  }
}

/** A version row has another version than a transaction assumed; nothing was changed. */
export class Outdated extends Error {
  override readonly name = "Outdated";
}

/**
 * That a version row still has the version that was known last. A transaction that assumes it finds out, so that nobody
 * has to read the row beforehand.
 */
export class VersionCheck implements Deno.AtomicCheck {
  readonly row: VersionRow;
  readonly key: Deno.KvKey;
  /** The name of the row. */
  readonly name: string;
  /** Null if there was no row. */
  readonly versionstamp: string | null;
  /** By `performance.now()`. */
  #heldAt = -Infinity;

  constructor(row: VersionRow) {
    this.row = row;
    this.key = row.key;
    this.name = nameOf(row.key);
    this.versionstamp = row.version || null;
  }

  /** Whether it holds, as far as is known. */
  get holds(): boolean {
    return this.row.version === (this.versionstamp ?? "");
  }

  /** Whether a commit or a read that started at this time, by `performance.now()`, or later has found that it held. */
  heldSince(time: number): boolean {
    return this.#heldAt >= time;
  }

  /** Takes note that it held at some time after `started`, by `performance.now()`. */
  noteHeld(started: number): void {
    this.#heldAt = Math.max(this.#heldAt, started);
  }
}
