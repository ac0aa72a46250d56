import { setImmediate } from "node:timers/promises";
import { assert, assertEquals, assertGreater, assertLess, assertRejects, assertThrows } from "@std/assert";
import { Connection } from "../../src/engine/connection.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { decodeJson, encodeJson, type Entry } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import {
  type Decided,
  type Done,
  type RunOptions,
  type Transaction,
  Unresolved,
} from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import type { VersionRow } from "../../src/engine/versions.ts";
import { carryOut, type Commit, type Disturbance, disturbed, FakeKv, hang } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

const QUEUE = "changes";

/** A process that runs transactions. */
class Process {
  disturbance: Disturbance = {};
  /** The keys that each commit changed, without its marker. Commits that only open a lane are left out. */
  readonly commits: (readonly Deno.KvKey[])[] = [];
  readonly reads: (readonly Deno.KvKey[])[] = [];
  readonly transactions: Transactions;

  constructor(kv: Deno.Kv, { maxChecks = 100, deadline = 5_000 } = {}) {
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
    const store = new Store(new Connection([handle], { deadline }), { maxChecks, clock: () => 7 });
    this.transactions = new Transactions(store, { clock: () => 7 });
  }

  static on(kv: FakeKv, options?: ConstructorParameters<typeof Process>[1]): Process {
    return new Process(kv.connect(), options);
  }

  run<Result extends Decided>(transaction: Transaction<Result>, options?: RunOptions): Promise<Done<Result>> {
    return this.transactions.run(transaction, options);
  }
}

function numberIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : 0;
}

/** Increments the number in a row, and returns it. */
function counting(...key: Deno.KvKey): Transaction<number> {
  return {
    queue: QUEUE,
    reads: [key],
    decide(rows, write) {
      const number = numberIn(rows.get(key)) + 1;
      write.set(key, encodeJson(number));
      return number;
    },
  };
}

/** Sets a row without reading it. */
function setting(...key: Deno.KvKey): Transaction<undefined> {
  return { queue: QUEUE, decide: (_, write) => write.set(key, encodeJson(0)) };
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

Deno.test("run() puts simultaneous transactions in one commit, each based on the writes before it", async () => {
  const process = Process.on(new FakeKv());

  const done = await Promise.all([
    ...upTo(50).map(() => process.run(counting("a"))),
    process.run(setting("b")),
    process.run(counting("c")),
  ]);

  assertEquals(done.slice(0, 50).map(({ result }) => result), upTo(50));
  // A transaction without rows does not wait for the reads of others.
  assertEquals(process.commits.map((keys) => keys.length).sort(), [1, 51]);
  assertEquals(process.reads, [[["a"], ["c"]]]);
  for (const { rows: [row] } of done.slice(0, 50)) assertEquals(numberIn(row?.entry ?? null), 50);
});

Deno.test("run() waits for transactions that arrive one right after the other", async () => {
  const process = Process.on(new FakeKv());
  await process.run(setting("a", 0)); // Opens a lane.

  const runs: Promise<unknown>[] = [];
  for (const number of upTo(5)) {
    runs.push(process.run(setting("a", number)));
    await setImmediate();
  }
  await Promise.all(runs);

  assertEquals(process.commits.map((keys) => keys.length), [1, 5]);
});

Deno.test("run() reads all rows of a transaction in one snapshot", async () => {
  const process = Process.on(new FakeKv());
  const reading = (number: number): Transaction<undefined> => ({
    queue: QUEUE,
    reads: upTo(3).map((row) => ["a", number, row]),
    decide: () => {},
  });

  await Promise.all(upTo(7).map((number) => process.run(reading(number))));

  assertEquals(process.reads.map((keys) => keys.length), [9, 9, 3]);
});

Deno.test("run() passes the clock's time to decide() and notes the versions of rows that it bumps", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  const row: VersionRow = { key: ["version"], version: "" };
  const bumping: Transaction<number> = {
    queue: QUEUE,
    decide: (_rows, write, now) => {
      write.set(["a"], encodeJson(1));
      write.delete(["a"]);
      write.bump(row);
      return now;
    },
  };

  const { result, committed } = await process.run(bumping);

  assertEquals([result, committed, kv.value("a")], [7, true, undefined]);
  assertEquals(row.version, kv.rows.get('["version"]')?.versionstamp);
});

Deno.test("run() has as many commits under way as its queue has lanes", async () => {
  using time = new VirtualTime();
  const process = Process.on(new FakeKv());
  let [now, most] = [0, 0];
  process.disturbance = {
    commit: async ({ apply }) => {
      most = Math.max(most, ++now);
      await pause(10);
      now--;
      return await apply();
    },
  };

  const runs: Promise<unknown>[] = [];
  for (const number of upTo(20)) {
    runs.push(process.run(setting("a", number)));
    await time.advance(1);
  }
  await time.until(Promise.all(runs), 1_000);

  assertEquals(most, 3);
});

Deno.test.each<[string, number, (number: number) => Transaction<Decided>, number]>([
  ["the checks that KV allows", 10, (number) => counting("a", number), 9],
  ["800 KB", 100, (number) => big(number, 60_000), 10],
  ["80 KB of keys with text", 100, (number) => longKeys(number, "猫".repeat(600)), 13],
  ["80 KB of keys with bytes", 100, (number) => longKeys(number, new Uint8Array(1_800).fill(1)), 13],
  ["a thousand changes", 100, (number) => manyChanges(number, 300), 3],
])("run() fills a commit up to its limit: %s", async (_, maxChecks, transaction, most) => {
  const process = Process.on(new FakeKv(), { maxChecks });

  await Promise.all(upTo(30).map((number) => process.run(transaction(number))));

  const sizes = process.commits.map((keys) => new Set(keys.map(([, number]) => number)).size);
  assertEquals(sizes.reduce((sum, size) => sum + size, 0), 30);
  assertEquals(Math.max(...sizes), most);
});

function big(number: number, bytes: number): Transaction<undefined> {
  return { queue: QUEUE, decide: (_, write) => write.set(["a", number], new Uint8Array(bytes)) };
}

function longKeys(number: number, part: Deno.KvKeyPart): Transaction<undefined> {
  return {
    queue: QUEUE,
    decide(_, write) {
      for (const index of upTo(3)) write.set(["a", number, index, part], new Uint8Array());
    },
  };
}

function manyChanges(number: number, count: number): Transaction<undefined> {
  return {
    queue: QUEUE,
    decide(_, write) {
      for (let index = 0; index < count; index++) write.set(["a", number, index], new Uint8Array());
    },
  };
}

Deno.test("run() rejects a transaction too large for a commit or a snapshot without any I/O", async () => {
  const process = Process.on(new FakeKv());
  const reads = upTo(9).map((number) => ["a", number]);

  await assertRejects(() => process.run(manyChanges(1, 1_000)), RangeError);
  await assertRejects(() => process.run({ queue: QUEUE, reads, decide: () => null }), RangeError);
  assertEquals([process.commits, process.reads], [[], []]);
});

Deno.test("run() rereads changed rows after a conflict and retries the other transactions together", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  const other = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply }) => {
      process.disturbance = {};
      await other.run(counting("a", 3));
      return await apply();
    },
  };

  const done = await Promise.all(upTo(20).map((number) => process.run(counting("a", number))));

  assertEquals(done.map(({ result }) => result), upTo(20).map((number) => number === 3 ? 2 : 1));
  assertEquals(process.commits.map((keys) => keys.length), [20, 19, 1]);
});

Deno.test("run() lets transactions on a contested row share commits, however often these are refused", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  let refusals = 0;
  process.disturbance = {
    commit: async ({ apply }) => {
      if (refusals++ < 3) await kv.connect().atomic().set(["a"], encodeJson(0)).commit();
      return apply();
    },
  };

  await Promise.all(upTo(20).map(() => process.run(counting("a"))));

  assertEquals(process.commits.map((keys) => keys.length), [20, 20, 20, 20]);
});

Deno.test("run() makes no commit for a transaction that writes nothing", async () => {
  const process = Process.on(new FakeKv());

  const done = await process.run({
    queue: QUEUE,
    reads: [["a"]],
    decide: (rows) => numberIn(rows.get(["a"])),
  });

  assertEquals(done, { result: 0, committed: false, rows: [{ key: ["a"], entry: null }] });
  assertEquals(process.commits, []);
});

Deno.test("run() accepts known rows, reads them only after a conflict, and returns their new state", async () => {
  const kv = new FakeKv();
  const [process, other] = [Process.on(kv), Process.on(kv)];
  const { rows } = await process.run(counting("a"));
  process.reads.length = 0;

  const next = await process.run({ ...counting("a"), reads: rows });
  assertEquals([next.result, process.reads], [2, []]);

  await other.run(counting("a"));
  assertEquals((await process.run({ ...counting("a"), reads: next.rows })).result, 4);
  assertGreater(process.reads.length, 0);
});

Deno.test("run() commits a transaction that knows its rows while the rows of another are being read", async () => {
  const process = Process.on(new FakeKv());
  const { rows } = await process.run(counting("a"));
  process.disturbance = { read: () => pause(5) };

  await Promise.all([process.run(counting("b")), process.run({ ...counting("a"), reads: rows })]);

  assertEquals(process.commits, [[["a"]], [["a"]], [["b"]]]);
});

Deno.test("run() discards the writes of a transaction that throws", async () => {
  const process = Process.on(new FakeKv());
  const throwing: Transaction<undefined> = {
    queue: QUEUE,
    reads: [["a"]],
    decide(_, write) {
      write.set(["a"], encodeJson(7));
      throw new RangeError("no");
    },
  };

  const [thrown, counted] = await Promise.allSettled(
    [throwing, counting("a")].map((transaction) => process.run<Decided>(transaction)),
  );

  assert(thrown?.status === "rejected" && thrown.reason instanceof RangeError);
  assert(counted?.status === "fulfilled");
  assertEquals(counted.value.result, 1);
});

Deno.test("run() refuses changes after a transaction has decided", async () => {
  const process = Process.on(new FakeKv());
  const { result: { write } } = await process.run({ queue: QUEUE, decide: (_, write) => ({ write }) });
  const row: VersionRow = { key: ["v"], version: "" };

  for (
    const change of [() => write.set(["a"], encodeJson(0)), () => write.delete(["a"]), () => write.bump(row)]
  ) {
    assertThrows(change, TypeError);
  }
});

Deno.test("run() lets a refused transaction decide again before later ones", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply }) => {
      process.disturbance = {};
      await kv.connect().atomic().set(["a"], encodeJson(10)).commit();
      await pause(100);
      return apply();
    },
  };

  const first = process.run(counting("a"));
  await time.advance(50);
  const second = process.run(counting("a"));
  const done = await time.until(Promise.all([first, second]), 1_000);

  assertEquals(done.map(({ result }) => result), [11, 12]);
});

Deno.test("run() gives up after too many conflicts, and has written nothing", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply }) => {
      await kv.connect().atomic().set(["a"], encodeJson(70)).commit();
      await pause(100);
      return apply();
    },
  };

  const run = assertRejects(() => process.run(counting("a")), StoreUnavailable);
  const error = await time.until(run, 20_000);

  assert(!(error instanceof Unresolved));
  assertEquals(numberIn(kv.rows.get('["a"]') ?? null), 70);
});

Deno.test("run() rejects only the transaction that KV cannot commit", async () => {
  const process = Process.on(new FakeKv());
  process.disturbance = {
    commit: (commit: Commit) =>
      commit.keys.some(([, number]) => number === 3) ? Promise.reject(new TypeError("no")) : commit.apply(),
  };

  const results = await Promise.allSettled(upTo(5).map((number) => process.run(setting("a", number))));

  assertEquals(results.map(({ status }) => status === "fulfilled"), [true, true, false, true, true]);
});

Deno.test("run() returns the result of a commit whose reply was lost, and does not repeat it", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply }) => {
      process.disturbance = {};
      await apply();
      throw new TypeError("connection reset");
    },
  };

  assertEquals((await process.run(counting("a"))).result, 1);

  assertEquals(numberIn(kv.rows.get('["a"]') ?? null), 1);
});

Deno.test("run() rejects with Unresolved if the outcome is unknown", async () => {
  using kv = await Deno.openKv(":memory:");
  let isBroken = false;
  const fails = () => Promise.reject(new TypeError("connection reset"));
  const process = new Process(disturbed(kv, { commit: (commit) => isBroken ? fails() : commit.apply() }));
  process.disturbance = { commit: () => (isBroken = true, fails()) };

  const error = await assertRejects(() => process.run(counting("a")), Unresolved);

  assert(error instanceof StoreUnavailable);
});

Deno.test("run() sends nothing to KV for a caller that ran out of time while it waited for a lane", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv, { deadline: 5_000 });
  const options: RunOptions = {
    mayBegin() {
      if (time.now > 1_000) throw new RangeError("out of time");
    },
  };
  process.disturbance = { commit: hang };
  const hanging = upTo(3).map(async (number) => {
    await pause(number);
    return await process.run(setting("a", number));
  });
  await time.advance(10);

  const waiting = [setting("b"), counting("c")].map((transaction) =>
    process.run<Decided>(transaction, options)
  );
  await time.advance(20);
  process.disturbance = {};
  const results = await time.until(Promise.allSettled([...waiting, ...hanging]), 60_000);

  assertEquals(
    results.slice(0, 2).map((result) => result.status === "rejected" && result.reason instanceof RangeError),
    [
      true,
      true,
    ],
  );
  assertEquals([kv.value("b"), kv.value("c")], [undefined, undefined]);
});

Deno.test("run() drops a transaction that runs out of time before its commit is sent, not the others", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv().connect({ read: () => pause(50), commit: apply50 }));
  const mayBegin = () => {
    if (time.now > 60) throw new RangeError("out of time");
  };

  // Both are in one commit, which waits until its lane is open.
  const results = await time.until(
    Promise.allSettled([process.run(setting("a"), { mayBegin }), process.run(setting("b"))]),
    5_000,
  );

  assertEquals(results.map(({ status }) => status), ["rejected", "fulfilled"]);
  assert(results[0]?.status === "rejected" && results[0].reason instanceof RangeError);
});

Deno.test("run() does not starve a process when several change the same row of a far KV", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const network = { read: () => pause(50), commit: apply50 };
  const processes = upTo(3).map(() => new Process(kv.connect(network), { maxChecks: 10 }));
  const counts = [0, 0, 0];
  const isOver = () => time.now > 60_000;
  const all = processes.map(async (process, index) => {
    while (!isOver()) {
      try {
        await process.run(counting("a"));
        counts[index] = (counts[index] ?? 0) + 1;
      } catch (error) {
        assert(error instanceof StoreUnavailable);
      }
    }
  });

  await time.until(Promise.all(all), 120_000);

  const total = counts.reduce((sum, count) => sum + count);
  assertEquals(numberIn(kv.rows.get('["a"]') ?? null), total);
  assertGreater(total, 60);
  for (const count of counts) assertLess(total / 4, count, `${counts}`);
});

Deno.test("run() gives rows to transactions in call order, even to one that reads several rows", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  let refusals = 0;
  const process = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply }) => {
      await pause(100);
      const result = await apply();
      if (!result.ok) refusals++;
      return result;
    },
  };
  const finished: string[] = [];
  const runs: Promise<unknown>[] = [];
  const start = (name: string, transaction: Transaction<Decided>) =>
    void runs.push(process.run(transaction).then(() => finished.push(name)));
  const startSome = async (name: string) => {
    for (const _ of upTo(6)) {
      for (const row of ["a", "b"]) {
        start(name, counting(row));
        await time.advance(50);
      }
    }
  };
  const both: Transaction<undefined> = {
    queue: QUEUE,
    reads: [["a"], ["b"]],
    decide(_, write) {
      for (const key of [["a"], ["b"]]) write.set(key, encodeJson(0));
    },
  };

  await startSome("earlier");
  start("both", both);
  await startSome("later");
  await time.until(Promise.all(runs), 10_000);

  assertEquals(finished, [...upTo(12).map(() => "earlier"), "both", ...upTo(12).map(() => "later")]);
  // No transaction caused another to be refused.
  assertEquals(refusals, 0);
});

async function apply50<Result>(apply: () => Result): Promise<Result> {
  await pause(50);
  const result = apply();
  await pause(50);
  return result;
}

Deno.test("run() does not starve a transaction without rows while others fill every commit", async () => {
  using time = new VirtualTime();
  const process = Process.on(new FakeKv(), { maxChecks: 10 });
  process.disturbance = { commit: async ({ apply }) => (await pause(20), await apply()) };
  const crowd = upTo(60).map(async (number) => {
    while (time.now < 1_000) await process.run(counting("a", number));
  });
  await time.advance(100);

  const { finished } = await time.until(
    process.run(setting("b")).then(() => ({ finished: time.now })),
    5_000,
  );
  await time.until(Promise.all(crowd), 5_000);

  assertLess(finished, 400);
});

Deno.test("run() lets a transaction decide only for a commit that has room for its checks", async () => {
  const process = Process.on(new FakeKv(), { maxChecks: 10 });
  let decisions = 0;
  const counted = (number: number): Transaction<number> => {
    const { decide, ...rest } = counting("a", number);
    return { ...rest, decide: (...given) => (decisions++, decide(...given)) };
  };

  await Promise.all(upTo(300).map((number) => process.run(counted(number))));

  assertEquals(decisions, 300);
});

Deno.test("run() divides simultaneous transactions among few commits, and stops deciding once one is full", async () => {
  const process = Process.on(new FakeKv());
  let decisions = 0;
  const counted = (number: number): Transaction<undefined> => {
    const { decide, ...rest } = setting("a", number);
    return { ...rest, decide: (...given) => (decisions++, decide(...given)) };
  };

  await Promise.all(upTo(4_000).map((number) => process.run(counted(number))));

  assertEquals(process.commits.map((keys) => keys.length), [900, 900, 900, 900, 400]);
  assertEquals(decisions, 4_000 + 4); // For each full commit, one that had no room decided again.
});

Deno.test("run() lets transactions without rows share commits, however often these are refused", async () => {
  const process = Process.on(new FakeKv());
  let refusals = 0;
  process.disturbance = {
    commit: ({ apply }) => refusals++ < 3 ? Promise.resolve({ ok: false }) : apply(),
  };

  await Promise.all(upTo(20).map((number) => process.run(setting("a", number))));

  assertEquals(process.commits.map((keys) => keys.length), [20, 20, 20, 20]);
});
