import type { CommitResult } from "../kv/commit.ts";
import { RoundTrip } from "../kv/round_trip.ts";
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
 * commit that uses the first: many for each request that had to wait for the last, so one alone where they are
 * wanted one by one. From a KV that is far away it takes the next range while numbers of the last are left.
 * What it does not use is lost with it.
 */
export class Sequence {
  readonly #store: Store;
  readonly #key: Deno.KvKey;
  readonly #roundTrip: RoundTrip;
  #range: Range = EMPTY;
  #size = 1;
  #takenAt = 0;
  /** The range that comes next, taken ahead of need. */
  #spare: Range | undefined;
  /** Settles when that is there, or is not. */
  #refilling: Promise<void> | undefined;
  /** What the row holds, as long as nobody else has drawn. */
  #head: Head | undefined;
  /** Settles when the range that is being taken is there, or is not. */
  #taking: Promise<void> | undefined;
  #waited = 0;

  constructor(store: Store, key: Deno.KvKey) {
    this.#store = store;
    this.#roundTrip = new RoundTrip(store);
    this.#key = key;
  }

  /**
   * Draws the next number for `use`. Resolves to it, or to null when the commit was refused, which may be
   * because another process has drawn meanwhile.
   *
   * @throws {StoreUnavailable}
   */
  draw(use: UseNumber): Promise<number | null> {
    const number = this.#nextAtHand();
    if (number === undefined) return this.#drawLater(use);
    this.#refill();
    return use(number, NO_CHANGE).then(({ ok }) => ok ? number : null);
  }

  async #drawLater(use: UseNumber): Promise<number | null> {
    const coming = this.#taking ?? this.#refilling;
    if (coming) {
      this.#waited++;
      await coming;
      return await this.draw(use);
    }
    const taken = this.#takeRange(use);
    this.#taking = taken.then(() => {}, () => {}).finally(() => this.#taking = undefined);
    return await taken;
  }

  /** Undefined where this range and the spare one are used up. */
  #nextAtHand(): number | undefined {
    if (this.#range.next === this.#range.end) {
      this.#range = this.#spare ?? EMPTY;
      this.#spare = undefined;
    }
    return this.#range.next < this.#range.end ? this.#range.next++ : undefined;
  }

  async #takeRange(use: UseNumber): Promise<number | null> {
    const size = Math.min(1 + AHEAD * this.#waited, MAX_RANGE);
    this.#waited = 0;
    const head = this.#head ?? await this.#readHead();
    this.#head = undefined;
    const started = performance.now();
    const result = await use(head.next, this.#changeTo(head, size));
    this.#roundTrip.measure(started);
    if (!result.ok) return null;
    this.#range = this.#rangeAt(head, size, result.versionstamp);
    return this.#range.next++;
  }

  /** Takes the next range in the background, where the one in use is half gone before long. */
  #refill(): void {
    const { next, end } = this.#range;
    const isLow = end - next < this.#size / 2;
    if (!this.#roundTrip.isFar || !isLow || this.#spare || this.#refilling) return;
    if (this.#size === 1 || performance.now() - this.#takenAt >= BUSY) return;
    this.#refilling = this.#takeSpare(this.#size).catch(() => {}).finally(() => this.#refilling = undefined);
  }

  async #takeSpare(size: number): Promise<void> {
    const head = await this.#readHead();
    const { checks, sets } = this.#changeTo(head, size);
    const result = await this.#store.commit((operation) => {
      operation.check(...checks);
      for (const [key, value] of sets) operation.set(key, value);
    });
    if (result.ok) this.#spare = this.#rangeAt(head, size, result.versionstamp);
  }

  /** The change that takes a range. */
  #changeTo({ next, versionstamp }: Head, size: number): Change {
    return {
      checks: [{ key: this.#key, versionstamp }],
      sets: [[this.#key, encodeJson({ next: next + size })]],
    };
  }

  #rangeAt({ next }: Head, size: number, versionstamp: string): Range {
    const end = next + size;
    this.#size = size;
    this.#head = { next: end, versionstamp };
    this.#takenAt = performance.now();
    return { next, end };
  }

  async #readHead(): Promise<Head> {
    const entry = await this.#store.get(this.#key);
    const { next } = entry ? decodeJson<{ next: number }>(entry) : { next: 1 };
    return { next, versionstamp: versionstampOf(entry) };
  }
}
