import { StoreUnavailable } from "../kv/deadline.ts";
import { CorruptRow, decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import type { IdSource, Queue, Transaction } from "./transaction.ts";
import type { Transactions } from "./transactions.ts";

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
  /** Ids that this process may give, ascending. */
  #free: number[] = [];
  #size = SMALLEST;
  /** When the last range was taken, by `performance.now()`. */
  #takenAt = -Infinity;
  /** Settles when the range that is being taken is there, or is not. */
  #taking: Promise<void> | undefined;
  /** How often the next range was asked for. */
  #asked = 0;

  constructor(transactions: Transactions, key: Deno.KvKey) {
    this.#transactions = transactions;
    this.#key = key;
  }

  draw(): number | undefined {
    if (this.#free.length < this.#size / 2) this.refilled().catch(() => {}); // A transaction that needs it will wait for it.
    return this.#free.shift();
  }

  giveBack(id: number): void {
    this.#free = [...this.#free, id].sort((one, other) => one - other);
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
    const free = this.#free;
    this.#free = [];
    const last = free.at(-1);
    const first = free.findLast((id, index) => free[index - 1] !== id - 1);
    if (first === undefined || last === undefined) return;
    try {
      await this.#transactions.run(this.#changing((next) => next === last + 1 ? first : next));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async #take(): Promise<void> {
    await Promise.resolve(); // Calls of the same turn of the event loop count.
    const isBusy = performance.now() - this.#takenAt < BUSY;
    this.#takenAt = performance.now();
    const paced = isBusy ? this.#size * 2 : this.#size / 2;
    this.#size = Math.min(Math.max(paced, 2 * this.#asked, SMALLEST), LARGEST);
    this.#asked = 0;
    const { result: end } = await this.#transactions.run(this.#changing((next) => next + this.#size));
    for (let id = end - this.#size; id < end; id++) this.#free.push(id);
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
}

function decodeIds(entry: Entry | null): { readonly next: number } {
  if (entry === null) return { next: 1 };
  const row = decodeJson<{ readonly next: number }>(entry);
  if (typeof row.next === "number") return row;
  throw new CorruptRow("A row of ids holds no next id");
}
