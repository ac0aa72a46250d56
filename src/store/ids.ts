import { StoreUnavailable } from "../kv/deadline.ts";
import { CorruptRow, decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import type { IdSource, Queue, Transaction } from "./transaction.ts";
import type { Transactions } from "./transactions.ts";

/** Ids that belong to this process: from `next` on, before `end`. */
interface Range {
  next: number;
  readonly end: number;
}

const QUEUE: Queue = { label: "changes", lanes: () => 1 };
const SMALLEST = 16;
const LARGEST = 1_000;
/** A range that lasts less long than this, in ms, is followed by one twice as long; any other by one half as long. */
const BUSY = 5_000;

/**
 * Ascending ids from 1 on that several processes draw from one row. A process takes a range of them at a time, and the
 * next one in the background when half of them are left. A stop gives the rest back, if no other process has taken a
 * range since; what a killed process had left is lost.
 */
export class Ids implements IdSource {
  readonly #transactions: Transactions;
  readonly #key: Deno.KvKey;
  /** Those that were drawn and not used. */
  #unused: number[] = [];
  #ranges: Range[] = [];
  #size = SMALLEST;
  /** When the last range was taken, by `performance.now()`. */
  #takenAt = -Infinity;
  /** Settles when the range that is being taken is there, or is not. */
  #taking: Promise<void> | undefined;
  /** How many have asked for the next range. */
  #asked = 0;

  constructor(transactions: Transactions, key: Deno.KvKey) {
    this.#transactions = transactions;
    this.#key = key;
  }

  draw(): number | undefined {
    if (this.#left < this.#size / 2) this.refilled().catch(() => {}); // A transaction that needs it will wait for it.
    if (this.#unused.length > 0) return this.#unused.shift();
    const [range] = this.#ranges;
    if (range === undefined) return undefined;
    const id = range.next++;
    if (range.next === range.end) this.#ranges.shift();
    return id;
  }

  giveBack(id: number): void {
    this.#unused = [...this.#unused, id].sort((one, other) => one - other);
  }

  /**
   * Resolves when another range is there.
   *
   * @throws {StoreUnavailable}
   */
  refilled(): Promise<void> {
    this.#asked++;
    return this.#taking ??= this.#take().finally(() => this.#taking = undefined);
  }

  /** Gives back what is left, if that can be done: else it is lost. Nothing may be drawn meanwhile. */
  async settle(): Promise<void> {
    await this.#taking?.catch(() => {});
    const start = this.#restFrom();
    const end = this.#ranges.at(-1)?.end;
    [this.#unused, this.#ranges] = [[], []];
    if (start === end || end === undefined) return;
    try {
      await this.#transactions.run(this.#changing((next) => next === end ? start : next));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  get #left(): number {
    return this.#ranges.reduce((sum, { next, end }) => sum + end - next, this.#unused.length);
  }

  async #take(): Promise<void> {
    await Promise.resolve(); // All that ask in the same turn of the event loop count.
    const isBusy = performance.now() - this.#takenAt < BUSY;
    this.#takenAt = performance.now();
    const paced = isBusy ? this.#size * 2 : this.#size / 2;
    this.#size = Math.min(Math.max(paced, 2 * this.#asked, SMALLEST), LARGEST);
    this.#asked = 0;
    const { result: end } = await this.#transactions.run(this.#changing((next) => next + this.#size));
    this.#ranges.push({ next: end - this.#size, end });
  }

  /** Changes the next id that nobody has. */
  #changing(change: (next: number) => number): Transaction<number> {
    return {
      queue: QUEUE,
      reads: [this.#key],
      decide: (rows, write) => {
        const before = decodeIds(rows.get(this.#key));
        const next = change(before.next);
        if (next !== before.next) write.set(this.#key, encodeJson({ ...before, next }));
        return next;
      },
    };
  }

  /** The first of all ids at hand up to the end that follow one another. */
  #restFrom(): number {
    const ids = new Set(this.#unused);
    let start = this.#ranges.at(-1)?.end ?? 0;
    for (const { next, end } of this.#ranges.toReversed()) if (end === start) start = next;
    while (ids.has(start - 1)) start--;
    return start;
  }
}

function decodeIds(entry: Entry | null): { readonly next: number } {
  if (entry === null) return { next: 1 };
  const row = decodeJson<{ readonly next: number }>(entry);
  if (typeof row.next === "number") return row;
  throw new CorruptRow("A row of ids holds no next id");
}
