import { seeVersion, type Watched } from "../caching/watched.ts";
import type { Store } from "../kv/store.ts";
import { batched } from "./batcher.ts";

const MAX_READS = 10;
/** Requests that are worth a look: many more at a time wait longer than they save. */
const ENOUGH = 24;

/**
 * Looks at a few rows that change whenever something does that is kept in memory. By one shared look all who
 * wait know whether what they have is still true. Versions only rise: a look that took long cannot undo what a
 * later one, or a commit of one's own, has shown.
 *
 * @example
 * ```ts
 * import { assert } from "@std/assert";
 * import { openStore } from "../kv/open.ts";
 *
 * const store = await openStore(":memory:", { clock: Date.now, create: true });
 * const versions = new Versions(store);
 * const catalogue = versions.watch(["catalogue"]);
 * await versions.look();
 * const before = catalogue.version;
 * await store.commit((operation) => operation.set(["catalogue"], new Uint8Array()));
 * await versions.look();
 * assert(catalogue.version > before);
 * await store.close();
 * ```
 */
export class Versions {
  readonly #store: Store;
  readonly #maxStaleness: number;
  readonly #rows: Watched[] = [];
  /** The look that starts next. */
  #next: Promise<void> | undefined;
  readonly #startNext: (look: void) => Promise<void>;
  /** How many looks are on their way. */
  #looking = 0;
  /** When the newest look that ended had started, by `performance.now()`. */
  #lookedAt = -Infinity;
  /** The store's data version before the rows were read last. */
  #dataVersion: number | undefined;
  /** How often it was asked for. */
  #asked = 0;

  /** A look may be `maxStaleness` ms old; unless told otherwise, it starts after it is asked for. */
  constructor(store: Store, maxStaleness: number = 0) {
    this.#store = store;
    this.#maxStaleness = maxStaleness;
    this.#startNext = batched<void, void>(async (round) => {
      this.#next = undefined;
      store.metrics.roundSize.observe(this.#asked, "look");
      this.#asked = 0;
      this.#looking++;
      await this.#read().finally(() => this.#looking--);
      for (const { resolve } of round) resolve();
    }, {
      gather: () => store.reads.gather(() => this.#asked, ENOUGH),
      lanes: () => store.reads.isFar ? MAX_READS : 1,
    });
  }

  /** Has the row looked at from now on. */
  watch(key: Deno.KvKey): Watched {
    const row = { key, version: "" };
    this.#rows.push(row);
    this.#dataVersion = undefined;
    return row;
  }

  /**
   * Resolves when what is known is not older than this call, or than it may be; undefined where that is so
   * already.
   *
   * @throws {StoreUnavailable}
   */
  look(): Promise<void> | undefined {
    this.#asked++;
    if (this.#maxStaleness === 0) return this.#next ??= this.#startNext();
    const age = performance.now() - this.#lookedAt;
    if (age > this.#maxStaleness) return this.#next ??= this.#startNext();
    // One at a time: from far away, whoever came during it would begin another.
    if (age > this.#maxStaleness / 2 && this.#looking === 0) this.#next ??= this.#startNext();
    this.#next?.catch(() => {}); // Nobody waits for it.
    return undefined;
  }

  /** Reads the rows, unless it is certain that nothing has changed since they were read. */
  async #read(): Promise<void> {
    const started = performance.now();
    const { dataVersion } = this.#store;
    if (dataVersion === undefined || dataVersion !== this.#dataVersion) {
      const entries = await this.#store.getMany(this.#rows.map(({ key }) => key));
      this.#rows.forEach((row, index) => seeVersion(row, entries[index]?.versionstamp ?? ""));
      this.#dataVersion = dataVersion;
    }
    this.#lookedAt = Math.max(this.#lookedAt, started);
  }
}
