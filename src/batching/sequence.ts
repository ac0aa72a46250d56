import type { CommitResult } from "../kv/commit.ts";
import { decodeJson, encodeJson, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { type Change, NO_CHANGE } from "./change.ts";

/** Commits something about a number, together with a change that belongs to it. */
export type UseNumber = (number: number, change: Change) => Promise<CommitResult>;

interface Head {
  readonly next: number;
  readonly versionstamp: string | null;
}

/** Numbers that belong to this process: from `next` on, before `end`. */
interface Range {
  next: number;
  readonly end: number;
}

/** Numbers to take for each that had to wait. */
const AHEAD = 16;
const MAX_RANGE = 1_000;
const EMPTY: Range = { next: 1, end: 1 };
/** A range that lasts longer than this, in ms, is not followed by another ahead of need. */
const BUSY = 5_000;

/**
 * Ascending numbers from 1 that several processes draw from one row. A process takes a range of them in the
 * commit that uses one: many for each request that had to wait for the last, so one alone where they are
 * wanted one by one. From a KV that is far away it takes the next range while numbers of the last are left; if
 * another process has drawn meanwhile, the use that it goes along with has to be tried again. What it does not
 * use is lost with it.
 */
export class Sequence {
  readonly #store: Store;
  readonly #key: Deno.KvKey;
  #range: Range = EMPTY;
  /** The range that comes next. */
  #spare: Range = EMPTY;
  /** Of the range that was taken last: its size, and when that was, by `performance.now()`. */
  #size = 1;
  #takenAt = 0;
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
    while (!this.#isLow || this.#taking) {
      const number = this.#nextAtHand();
      if (number !== undefined) return (await use(number, NO_CHANGE)).ok ? number : null;
      this.#waited++;
      await this.#taking;
    }
    const taken = this.#take(use).finally(() => this.#taking = undefined);
    this.#taking = taken.then(() => {}, () => {});
    return await taken;
  }

  /** How many numbers are at hand. */
  get #left(): number {
    return this.#range.end - this.#range.next + this.#spare.end - this.#spare.next;
  }

  /** Whether none is at hand; far away, also whether half of a range is gone before long. */
  get #isLow(): boolean {
    if (this.#left === 0 || !this.#store.commits.isFar) return this.#left === 0;
    return this.#left < this.#size / 2 && performance.now() - this.#takenAt < BUSY;
  }

  #nextAtHand(): number | undefined {
    if (this.#left === 0) return undefined;
    if (this.#range.next === this.#range.end) {
      this.#range = this.#spare;
      this.#spare = EMPTY;
    }
    return this.#range.next++;
  }

  /** Takes the next range along with the use of a number: of the last range or, if that is used up, of its own. */
  async #take(use: UseNumber): Promise<number | null> {
    const size = this.#left > 0 ? this.#size : Math.min(1 + AHEAD * this.#waited, MAX_RANGE);
    this.#waited = 0;
    const head = this.#head ?? await this.#readHead();
    this.#head = undefined;
    const number = this.#nextAtHand() ?? head.next;
    const end = head.next + size;
    const result = await use(number, {
      checks: [{ key: this.#key, versionstamp: head.versionstamp }],
      sets: [[this.#key, encodeJson({ next: end })]],
    });
    if (!result.ok) return null;
    this.#spare = { next: number === head.next ? number + 1 : head.next, end };
    this.#head = { next: end, versionstamp: result.versionstamp };
    this.#size = size;
    this.#takenAt = performance.now();
    return number;
  }

  async #readHead(): Promise<Head> {
    const entry = await this.#store.get(this.#key);
    const { next } = entry ? decodeJson<{ next: number }>(entry) : { next: 1 };
    return { next, versionstamp: versionstampOf(entry) };
  }
}
