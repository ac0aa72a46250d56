import { assert, assertEquals, assertGreater, assertRejects, assertThrows } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { type Decided, type Transaction, Unresolved } from "../../src/engine/transaction.ts";
import type { VersionRow } from "../../src/engine/versions.ts";
import { type Commit, FakeKv } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { counting, numberIn, Process, setting, upTo } from "./process.ts";

Deno.test("run() puts simultaneous transactions in one commit, each based on the writes before it", async () => {
  const process = Process.on(new FakeKv());

  const done = await Promise.all([
    ...upTo(50).map(() => process.run(counting("a"))),
    process.run(setting("b")),
    process.run(counting("c")),
  ]);

  assertEquals(done.slice(0, 50).map(({ result }) => result), upTo(50));
  assertEquals(process.commits.map((keys) => keys.length), [52]);
  assertEquals(process.reads, [[["a"], ["c"]]]);
  for (const { rows: [row] } of done.slice(0, 50)) assertEquals(numberIn(row?.entry ?? null), 50);
});

Deno.test("run() waits for transactions that arrive in the same turn of the event loop", async () => {
  const process = Process.on(new FakeKv());

  const runs: Promise<unknown>[] = [];
  for (const number of upTo(5)) {
    runs.push(process.run(setting("a", number)));
    await Promise.resolve();
  }
  await Promise.all(runs);

  assertEquals(process.commits.map((keys) => keys.length), [5]);
});

Deno.test("run() shows a transaction what one without rows has created before it in the same commit", async () => {
  const process = Process.on(new FakeKv());
  const { rows } = await process.run({ reads: [["a"]], decide: (rows) => numberIn(rows.get(["a"])) });

  const done = await Promise.all([
    process.run({ decide: (_, write) => write.set(["a"], encodeJson(7)) }),
    process.run(counting("a")),
    process.run({ ...counting("a"), reads: rows }),
  ]);

  assertEquals(done.map(({ result }) => result), [undefined, 8, 9]);
  assertEquals(done.map(({ rows: [row] }) => numberIn(row?.entry ?? null)), [0, 9, 9]);
  assertEquals(process.commits.map((keys) => keys.length), [3]);
});

Deno.test("run() reads all rows of a transaction in one snapshot", async () => {
  const process = Process.on(new FakeKv());
  const reading = (number: number): Transaction<undefined> => ({
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

Deno.test("run() has one commit to a file under way", async () => {
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

  assertEquals(most, 1);
});

Deno.test.each<[string, (number: number) => Transaction<Decided>, number]>([
  ["the checks that KV allows", (number) => counting("a", number), 99],
  ["800 KB", (number) => big(number, 60_000), 10],
  ["80 KB of keys with text", (number) => longKeys(number, "猫".repeat(600)), 13],
  ["80 KB of keys with bytes", (number) => longKeys(number, new Uint8Array(1_800).fill(1)), 13],
  ["a thousand changes", (number) => manyChanges(number, 300), 3],
])("run() fills a commit up to its limit: %s", async (_, transaction, most) => {
  const process = Process.on(new FakeKv());

  await Promise.all(upTo(120).map((number) => process.run(transaction(number))));

  const sizes = process.commits.map((keys) => new Set(keys.map(([, number]) => number)).size);
  assertEquals(sizes.reduce((sum, size) => sum + size, 0), 120);
  assertEquals(Math.max(...sizes), most);
});

function big(number: number, bytes: number): Transaction<undefined> {
  return { decide: (_, write) => write.set(["a", number], new Uint8Array(bytes)) };
}

function longKeys(number: number, part: Deno.KvKeyPart): Transaction<undefined> {
  return {
    decide(_, write) {
      for (const index of upTo(3)) write.set(["a", number, index, part], new Uint8Array());
    },
  };
}

function manyChanges(number: number, count: number): Transaction<undefined> {
  return {
    decide(_, write) {
      for (let index = 0; index < count; index++) write.set(["a", number, index], new Uint8Array());
    },
  };
}

Deno.test("run() rejects a transaction too large for a commit or a snapshot without any I/O", async () => {
  const process = Process.on(new FakeKv());
  const reads = upTo(9).map((number) => ["a", number]);

  await assertRejects(() => process.run(manyChanges(1, 1_000)), RangeError);
  await assertRejects(() => process.run({ reads, decide: () => null }), RangeError);
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

Deno.test("run() discards the writes of a transaction that throws", async () => {
  const process = Process.on(new FakeKv());
  const throwing: Transaction<undefined> = {
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
  const { result: { write } } = await process.run({ decide: (_, write) => ({ write }) });
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

Deno.test("run() gives up if KV refuses its commits although no row has changed", async () => {
  using time = new VirtualTime();
  const process = Process.on(new FakeKv());
  process.disturbance = { commit: async () => (await pause(100), { ok: false }) };

  for (const transaction of [counting("a"), setting("b")]) {
    const run = assertRejects(() => process.run<Decided>(transaction), StoreUnavailable, "conflicting");
    await time.until(run, 20_000);
  }
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
