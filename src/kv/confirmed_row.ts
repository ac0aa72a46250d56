import { batched } from "./batcher.ts";
import type { Entry, Store } from "./store.ts";

/** Sightings without a change after which the row counts as steady. */
const STEADY = 16;

/**
 * A row that is asked for all the time and seldom changes. A commit that is made through it also checks
 * that the row still is as it was last seen: if it is, nobody who waited for the commit has to read it.
 *
 * Moments count what was started here, reads and commits. What was started after a request had arrived
 * sees every change that somebody can have known of when they sent the request.
 */
export class ConfirmedRow<T> {
  readonly #store: Store;
  readonly #key: Deno.KvKey;
  readonly #read: (_: void) => Promise<Entry<T> | null>;
  #moment = 0;
  #seen: Entry<T> | null = null;
  /** A moment after which the row was, at some time, as it was seen; 0 before the first sighting. */
  #seenAt = 0;
  #unchanged = 0;

  constructor(store: Store, key: Deno.KvKey) {
    this.#store = store;
    this.#key = key;
    this.#read = batched(async (round) => {
      const moment = ++this.#moment;
      const entry = await store.get<T>(key);
      this.#see(entry, moment);
      for (const { resolve } of round) resolve(entry);
    });
  }

  /** The moment of what was started last. */
  get moment(): number {
    return this.#moment;
  }

  /**
   * The row as it was at some time after the moment; read, by one read for all who ask, unless a commit or
   * another read has found out.
   *
   * @throws {StoreUnavailable}
   */
  get(after: number): Entry<T> | null | Promise<Entry<T> | null> {
    return this.#seenAt > after ? this.#seen : this.#read();
  }

  /**
   * Commits like the store, with at most one check less than it takes. A change of the row does not hold the
   * commit up; after one, the check is left out until the row is steady again.
   *
   * @throws {StoreUnavailable}
   */
  async commit(slot: string, build: (operation: Deno.AtomicOperation) => void): Promise<string | undefined> {
    if (this.#unchanged < STEADY) return await this.#store.commit(slot, build);
    const seen = this.#seen;
    const moment = ++this.#moment;
    const versionstamp = await this.#store.commit(slot, (operation) => {
      operation.check({ key: this.#key, versionstamp: versionstampOf(seen) });
      build(operation);
    });
    if (versionstamp !== undefined) {
      this.#see(seen, moment);
      return versionstamp;
    }
    const hasChanged = versionstampOf(await this.#read()) !== versionstampOf(seen);
    return hasChanged ? await this.#store.commit(slot, build) : undefined;
  }

  #see(entry: Entry<T> | null, moment: number): void {
    if (moment < this.#seenAt) return;
    this.#unchanged = versionstampOf(entry) === versionstampOf(this.#seen) ? this.#unchanged + 1 : 0;
    this.#seen = entry;
    this.#seenAt = moment;
  }
}

function versionstampOf(entry: Entry<unknown> | null): string | null {
  return entry?.versionstamp ?? null;
}
