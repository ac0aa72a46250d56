import { type Change, NO_CHANGE } from "./group_commit.ts";
import type { CommitResult } from "./commit.ts";
import { decodeJson, encodeJson, versionstampOf } from "./row.ts";
import type { Store } from "./store.ts";

/** Commits something about a number, together with a change that belongs to it. */
export type UseNumber = (number: number, change: Change) => Promise<CommitResult>;

interface Head {
  readonly next: number;
  readonly versionstamp: string | null;
}

const MAX_RANGE = 1_000;

/**
 * Ascending numbers from 1 that several processes draw from one row. A process takes a range of them in the
 * commit that uses the first: as many as were wanted while it took the last, so one alone where they are
 * wanted one by one. What it does not use is lost with it.
 */
export class Sequence {
  readonly #store: Store;
  readonly #key: Deno.KvKey;
  #next = 1;
  #end = 1;
  /** What the row holds, as long as nobody else has drawn. */
  #head: Head | undefined;
  /** Settles when the range that is being taken is there, or is not. */
  #taking: Promise<void> | undefined;
  #waited = 0;

  constructor(store: Store, key: Deno.KvKey) {
    this.#store = store;
    this.#key = key;
  }

  /**
   * Draws the next number for `use`. Resolves to it, or to null when the commit was refused, which may be
   * because another process has drawn meanwhile.
   *
   * @throws {StoreUnavailable}
   */
  async draw(use: UseNumber): Promise<number | null> {
    while (this.#next === this.#end && this.#taking) {
      this.#waited++;
      await this.#taking;
    }
    if (this.#next === this.#end) {
      const taken = this.#takeRange(use);
      this.#taking = taken.then(() => {}, () => {}).finally(() => this.#taking = undefined);
      return await taken;
    }
    const number = this.#next++;
    return (await use(number, NO_CHANGE)).ok ? number : null;
  }

  async #takeRange(use: UseNumber): Promise<number | null> {
    const size = Math.min(1 + 2 * this.#waited, MAX_RANGE);
    this.#waited = 0;
    const { next, versionstamp } = this.#head ?? await this.#readHead();
    this.#head = undefined;
    const result = await use(next, {
      checks: [{ key: this.#key, versionstamp }],
      sets: [[this.#key, encodeJson({ next: next + size })]],
    });
    if (!result.ok) return null;
    this.#head = { next: next + size, versionstamp: result.versionstamp };
    this.#next = next + 1;
    this.#end = next + size;
    return next;
  }

  async #readHead(): Promise<Head> {
    const entry = await this.#store.get(this.#key);
    const { next } = entry ? decodeJson<{ next: number }>(entry) : { next: 1 };
    return { next, versionstamp: versionstampOf(entry) };
  }
}
