import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../../src/engine/deadline.ts";
import { pause } from "../../../src/base/time.ts";
import { encodeJson } from "../../../src/engine/row.ts";
import {
  type Decided,
  type RunOptions,
  type Transaction,
  Unresolved,
} from "../../../src/engine/transaction.ts";
import { calmNetwork, FakeKv, hang, type Network } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";
import { counting, numberIn, Process, setting, upTo } from "../process.ts";
import { onServer } from "./server.ts";

const ON_SERVER = { backend: onServer };

Deno.test("run() returns the result of a commit whose reply was lost, and does not repeat it", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv, ON_SERVER);
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
  using time = new VirtualTime();
  let isBroken = false;
  const network = {
    read: () => Promise.resolve(),
    commit: (apply: () => Deno.KvCommitResult | Deno.KvCommitError) =>
      isBroken ? Promise.reject(new TypeError("connection reset")) : Promise.resolve(apply()),
  };
  const process = new Process(new FakeKv().connect(network), ON_SERVER);
  process.disturbance = { commit: ({ apply }) => (isBroken = true, apply()) };

  const run = assertRejects(() => process.run(counting("a")), Unresolved);
  assert(await time.until(run, 20_000) instanceof StoreUnavailable);
});

Deno.test("run() does not starve a process when several change the same row of a far KV", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const network = { read: () => pause(50), commit: apply50 };
  const processes = upTo(3).map(() => new Process(kv.connect(network), ON_SERVER));
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

async function apply50<Result>(apply: () => Result): Promise<Result> {
  await pause(50);
  const result = apply();
  await pause(50);
  return result;
}

Deno.test("run() does not starve a transaction without rows while others fill every commit", async () => {
  using time = new VirtualTime();
  const process = Process.on(new FakeKv(), ON_SERVER);
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
  const process = Process.on(new FakeKv(), ON_SERVER);
  let decisions = 0;
  const counted = (number: number): Transaction<number> => {
    const { decide, ...rest } = counting("a", number);
    return { ...rest, decide: (...given) => (decisions++, decide(...given)) };
  };

  await Promise.all(upTo(300).map((number) => process.run(counted(number))));

  assertEquals([decisions, process.commits.length], [300, Math.ceil(300 / 8)]);
});

Deno.test("run() commits a transaction of eight rows, and shows after a refusal how all of them are", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv, ON_SERVER);
  const keys = upTo(8).map((row) => ["a", row]);
  let refusals = 0;
  process.disturbance = {
    async commit({ apply }) {
      if (refusals++ === 0) await kv.connect().atomic().set(["a", 8], encodeJson(70)).commit();
      return await apply();
    },
  };

  const { result } = await process.run({
    reads: keys,
    decide(rows, write) {
      const numbers = keys.map((key) => numberIn(rows.get(key)));
      keys.forEach((key, index) => write.set(key, encodeJson((numbers[index] ?? 0) + 1)));
      return numbers;
    },
  });

  assertEquals(result, [0, 0, 0, 0, 0, 0, 0, 70]);
  assertEquals([process.commits.length, process.reads.map((read) => read.length)], [2, [8, 10, 10, 10]]);
});

Deno.test("run() sends nothing to KV for a caller that ran out of time while it waited for a lane", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv, ON_SERVER);
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
  const process = new Process(new FakeKv().connect({ read: () => pause(50), commit: apply50 }), ON_SERVER);
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

Deno.test.each([[1, 3], [100, 12]])(
  "run() with round trips of %i ms has up to %i commits under way",
  async (ms, lanes) => {
    using time = new VirtualTime();
    const network: Network = { ...calmNetwork(), commit: (apply) => pause(ms).then(apply) };
    const process = new Process(new FakeKv().connect(network), ON_SERVER);
    let [now, most] = [0, 0];
    process.disturbance = {
      commit: ({ apply }) => {
        most = Math.max(most, ++now);
        return apply().finally(() => now--);
      },
    };
    for (const number of upTo(30)) await time.until(process.run(setting("a", number)), 1_000);
    assertEquals(most, 1);

    const runs: Promise<unknown>[] = [];
    for (const number of upTo(100)) {
      runs.push(process.run(setting("b", number)));
      await time.advance(ms / 20);
    }
    await time.until(Promise.all(runs), 1_000);

    assertEquals(most, lanes);
  },
);

Deno.test("run() commits to a server while the rows of other transactions are being read", async () => {
  const process = Process.on(new FakeKv(), ON_SERVER);
  const { rows } = await process.run(counting("a"));
  process.disturbance = { read: () => pause(5) };

  await Promise.all([
    process.run(counting("b")),
    process.run({ ...counting("a"), reads: rows }),
    process.run(setting("c")),
  ]);

  assertEquals(process.commits, [[["a"]], [["a"]], [["c"]], [["b"]]]);
});

Deno.test("run() gives rows to transactions in call order, even to one that reads several rows", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  let refusals = 0;
  const process = Process.on(kv, ON_SERVER);
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
