// A process that runs transactions on a KV that tests can disturb.
import type { Backend, BackendOptions } from "../../src/engine/backend.ts";
import { decodeJson, encodeJson, type Entry } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import type { Decided, Done, Transaction } from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { carryOut, type Disturbance, disturbed, type FakeKv, onFile } from "../support/fake_kv.ts";

/** Options of a {@linkcode Process}. */
export interface ProcessOptions {
  /** Opens its backend; by default a file. */
  readonly backend?: (kv: Deno.Kv, options: BackendOptions) => Backend;
  readonly deadline?: number;
}

/** A process that runs transactions. */
export class Process {
  disturbance: Disturbance = {};
  /** The keys that each commit changed, without markers. Commits that only open a lane are left out. */
  readonly commits: (readonly Deno.KvKey[])[] = [];
  readonly reads: (readonly Deno.KvKey[])[] = [];
  readonly store: Store;
  readonly transactions: Transactions;

  constructor(kv: Deno.Kv, { backend = onFile, deadline = 5_000 }: ProcessOptions = {}) {
    const handle = disturbed(kv, {
      read: (keys) => {
        if (keys.some(([table]) => table !== "commits" && table !== "schema")) this.reads.push(keys);
        return this.disturbance.read?.(keys);
      },
      commit: (commit) => {
        const keys = commit.keys.filter(([table]) => table !== "commits");
        if (keys.length === 0) return commit.apply();
        this.commits.push(keys);
        return (this.disturbance.commit ?? carryOut)(commit);
      },
    });
    this.store = new Store(backend(handle, { deadline, clock: () => 7 }));
    this.transactions = new Transactions(this.store, () => 7);
  }

  /** The number of rows that each commit changed. */
  get sizes(): number[] {
    return this.commits.map((keys) => keys.length);
  }

  /** Does something before each of the next `count` commits. */
  beforeCommit(count: number, act: () => unknown): void {
    let left = count;
    this.disturbance = {
      commit: async ({ apply }) => {
        if (left-- > 0) await act();
        return await apply();
      },
    };
  }

  static on(kv: FakeKv, options?: ProcessOptions): Process {
    return new Process(kv.connect(), options);
  }

  run<Result extends Decided>(
    transaction: Transaction<Result>,
    mayBegin?: () => void,
  ): Promise<Done<Result>> {
    return this.transactions.run(transaction, mayBegin);
  }
}

export function numberIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : 0;
}

/** Increments the number in a row, and returns it. */
export function counting(...key: Deno.KvKey): Transaction<number> {
  return {
    reads: [key],
    decide(rows, write) {
      const number = numberIn(rows.get(key)) + 1;
      write.set(key, encodeJson(number));
      return number;
    },
  };
}

/** Adds one to each row, and returns the numbers before. */
export function countingAll(keys: readonly Deno.KvKey[]): Transaction<readonly number[]> {
  return {
    reads: keys,
    decide(rows, write) {
      const numbers = keys.map((key) => numberIn(rows.get(key)));
      keys.forEach((key, index) => write.set(key, encodeJson((numbers[index] ?? 0) + 1)));
      return numbers;
    },
  };
}

/** Sets a row without reading it. */
export function setting(...key: Deno.KvKey): Transaction<undefined> {
  return { decide: (_, write) => write.set(key, encodeJson(0)) };
}

export function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}
