import { monotonicNow, msSince, PAST } from "../base/mod.ts";
import { StoreUnavailable } from "./deadline.ts";
import { CorruptRow, decodeJson, encodeJson, type Entry } from "./row.ts";
import type { IdSource, Transaction } from "./transaction.ts";
import type { Transactions } from "./transactions.ts";

const SMALLEST = 16;
const LARGEST = 1_000;
/** If a range is used up in less time than this, in ms, the next one is twice as large; otherwise, half as large. */
const BUSY = 5_000;

/**
 * Ascending ids from 1, which several processes draw from one row. A process takes a range of ids at a time. When half of
 * the range is left, it takes the next one in the background. When the process stops, it gives the rest back, unless
 * another process has taken a range since then. If it is killed, the rest is lost. An id that was drawn is not drawn
 * again before `giveBack()`.
 */
export class Ids implements IdSource {
  readonly #transactions: Transactions;
  readonly #key: Deno.KvKey;
  /** Ids that this process can hand out, ascending. */
  #free: number[] = [];
  #size = SMALLEST;
  /** When the last range was taken. */
  #takenAt = PAST;
  /** Settles when a range has been taken, or when that has failed; undefined if no range is being taken. */
  #taking: Promise<void> | undefined;
  /** Number of calls that found less than half of the range left, since a range was last taken. */
  #calls = 0;

  constructor(transactions: Transactions, key: Deno.KvKey) {
    this.#transactions = transactions;
    this.#key = key;
  }

  /**
   * Draws the next id. Resolves without I/O while this process has some left.
   *
   * @throws {StoreUnavailable}
   */
  async next(): Promise<number> {
    while (true) {
      this.topUp();
      const id = this.take();
      if (id !== undefined) return id;
      await this.refill();
    }
  }

  /** Takes the next range in the background if less than half of this one is left. */
  topUp(): void {
    if (this.#free.length < this.#size / 2) this.#refilled().catch(() => {}); // A call that needs it takes it again.
  }

  take(): number | undefined {
    return this.#free.shift();
  }

  refill(): Promise<void> {
    return this.#taking ?? this.#refilled();
  }

  /** Takes back an id that was drawn, but is certain not to be used. */
  giveBack(id: number): void {
    const index = this.#free.findIndex((free) => free > id);
    this.#free.splice(index === -1 ? this.#free.length : index, 0, id);
  }

  /** Gives the remaining ids back. If that fails, they are lost. Do not draw ids in the meantime. */
  async close(): Promise<void> {
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

  /** Resolves when another range has been taken. */
  #refilled(): Promise<void> {
    this.#calls++;
    return this.#taking ??= this.#take().finally(() => this.#taking = undefined);
  }

  async #take(): Promise<void> {
    await Promise.resolve(); // Counts all calls in this turn of the event loop.
    const isBusy = msSince(this.#takenAt) < BUSY;
    this.#takenAt = monotonicNow();
    const paced = isBusy ? this.#size * 2 : Math.floor(this.#size / 2);
    this.#size = Math.min(Math.max(paced, 2 * this.#calls, SMALLEST), LARGEST);
    this.#calls = 0;
    const { result: end } = await this.#transactions.run(this.#changing((next) => next + this.#size));
    for (let id = end - this.#size; id < end; id++) this.#free.push(id);
  }

  /** A transaction that changes the first id that no process has taken. */
  #changing(change: (next: number) => number): Transaction<number> {
    return {
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
  throw new CorruptRow("A row of ids has no next id");
}
