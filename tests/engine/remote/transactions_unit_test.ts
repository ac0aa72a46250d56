import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { StoreUnavailable } from "../../../src/engine/deadline.ts";
import { pause } from "../../../src/base/time.ts";
import { RemoteBackend } from "../../../src/engine/remote/remote.ts";
import { encodeJson } from "../../../src/engine/row.ts";
import { Store } from "../../../src/engine/store.ts";
import type { Decided, Transaction } from "../../../src/engine/transaction.ts";
import { Versions } from "../../../src/engine/versions.ts";
import { calmNetwork, FakeKv, type Network, onFile } from "../../support/fake_kv.ts";
import { seededRandom, VirtualTime } from "../../support/time.ts";
import { referee } from "../engine_referee.ts";
import { counting, countingAll, numberIn, Process, setting, upTo } from "../process.ts";
import { onServer } from "./server.ts";

const ON_SERVER = { backend: onServer };
/** How long it takes to open new handles, in ms. */
const REOPENING = 200;

Deno.test("run() on servers returns results that some serial order of its transactions explains", () =>
  referee((open, options) => {
    const reopen = async (signal: AbortSignal) => {
      await pause(REOPENING);
      signal.throwIfAborted();
      return open();
    };
    return new RemoteBackend(open(), { ...options, reopen });
  }));

/** A network with a round trip. Commits apply after half of it. */
function slowNetwork(ms: number): Network {
  return {
    read: () => pause(ms),
    async commit(apply) {
      await pause(ms / 2);
      const result = apply();
      await pause(ms / 2);
      return result;
    },
  };
}

Deno.test("run() does not starve a process when several change the same row of a far KV", async () => {
  await using time = new VirtualTime();
  const kv = new FakeKv();
  const counts = await time.until(
    Promise.all(
      upTo(3).map(async () => {
        const process = new Process(kv.connect(slowNetwork(100)), ON_SERVER);
        let count = 0;
        while (time.now < 300_000) {
          try {
            await process.run(counting("a"));
            count++;
          } catch (error) {
            assert(error instanceof StoreUnavailable);
          }
        }
        return count;
      }),
    ),
    360_000,
  );

  const total = counts.reduce((sum, count) => sum + count);
  assertEquals(numberIn(kv.rows.get('["a"]') ?? null), total);
  assertGreater(total, 300);
  for (const count of counts) assertLess(total / 4, count, `${counts}`);
});

Deno.test("run() does not starve a transaction without rows while others fill every commit", async () => {
  await using time = new VirtualTime();
  const process = Process.on(new FakeKv(), ON_SERVER);
  process.beforeCommit(Infinity, () => pause(20));
  const crowd = upTo(60).map(async (number) => {
    while (time.now < 1_000) await process.run(counting("a", number));
  });
  await time.advance(100);

  const finished = process.run(setting("b")).then(() => time.now);
  await time.until(Promise.all(crowd), 5_000);

  assertLess(await finished, 400);
});

Deno.test.each(
  [
    ["a file with round trips of 100 ms", 1, onFile, 100],
    ["a server with round trips of 1 ms", 3, onServer, 1],
    ["a server with round trips of 100 ms", 12, onServer, 100],
  ] as const,
)(
  "run() on %s has up to %i commits under way",
  async (_, lanes, backend, ms) => {
    await using time = new VirtualTime();
    const network: Network = { ...calmNetwork(), commit: (apply) => pause(ms).then(apply) };
    const process = new Process(new FakeKv().connect(network), { backend });
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

Deno.test.each(
  [
    ["a file with reads of 100 ms", 1, onFile, 100],
    ["a server with reads of 1 ms", 1, onServer, 1],
    ["a server with reads of 100 ms", 12, onServer, 100],
  ] as const,
)("Versions.check() on %s runs up to %i of them at a time", async (_, most, backend, latency) => {
  await using time = new VirtualTime();
  let [reading, mostReading] = [0, 0];
  const read = async () => {
    mostReading = Math.max(mostReading, ++reading);
    await pause(latency);
    reading--;
  };
  const kv = new FakeKv().connect({ ...calmNetwork(), read });
  const versions = new Versions(new Store(backend(kv, { clock: () => 0 })));
  versions.watch(["row"]);
  for (let count = 0; count < 8; count++) await time.until(Promise.resolve(versions.check()), 500);
  mostReading = 0;

  for (let count = 0; count < 100; count++) {
    versions.check();
    await time.advance(latency / 20);
  }

  assertEquals(mostReading, most);
  await time.advance(500);
});

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
  await using time = new VirtualTime();
  const process = Process.on(new FakeKv(), ON_SERVER);
  let refusals = 0;
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
  const rows = upTo(12).map((number) => number % 2 === 0 ? "b" : "a");
  const startAll = async (name: string) => {
    for (const row of rows) {
      start(name, counting(row));
      await time.advance(50);
    }
  };

  await startAll("earlier");
  start("both", countingAll([["a"], ["b"]]));
  await startAll("later");
  await time.until(Promise.all(runs), 10_000);

  assertEquals(finished, [...rows.map(() => "earlier"), "both", ...rows.map(() => "later")]);
  assertEquals(refusals, 0, "A transaction caused another to be refused");
});

/** A server with round trips of 100 ms, which the process knows, and the number in a row. */
async function farProcess(time: VirtualTime, key: Deno.KvKey, number: number): Promise<Process> {
  const kv = new FakeKv();
  await kv.connect().atomic().set(key, encodeJson(number)).commit();
  const process = new Process(kv.connect(slowNetwork(100)), ON_SERVER);
  await time.until(process.run(setting("b")), 1_000);
  return process;
}

/** Runs a transaction that finds out its row, and returns the number in it and the number of round trips. */
async function roundTrips(time: VirtualTime, process: Process, key: Deno.KvKey): Promise<[number, number]> {
  const began = time.now;
  const { decide } = counting(...key);
  const { result } = await time.until(process.run({ decide }), 1_000);
  return [result, Math.floor((time.now - began) / 100)];
}

Deno.test("run() on a far server takes one round trip for rows that do not exist, and two for others, after one guess", async () => {
  await using time = new VirtualTime();
  const process = await farProcess(time, ["a", 1], 7);

  assertEquals(await roundTrips(time, process, ["a", 2]), [1, 1]);
  assertEquals(await roundTrips(time, process, ["a", 1]), [8, 3]);
  assertEquals(await roundTrips(time, process, ["a", 3]), [1, 2]);
  assertEquals(await roundTrips(time, process, ["b", 1]), [1, 1]);
  await time.advance(10_000);
  assertEquals(await roundTrips(time, process, ["a", 4]), [1, 1]);
});

Deno.test("run() on a far server commits on the guess only if the transaction writes on it", async () => {
  await using time = new VirtualTime();
  const process = await farProcess(time, ["a"], 7);
  const refusing: Transaction<number> = {
    decide(rows, write) {
      const row = rows.get(["a"]);
      write.set(["b"], encodeJson(0));
      if (row === null) throw new RangeError("no");
      return numberIn(row);
    },
  };

  const began = time.now;
  const { result } = await time.until(process.run(refusing), 1_000);

  assertEquals([result, Math.floor((time.now - began) / 100)], [7, 2]);
});

Deno.test("run() on a far server guesses for no row that another transaction has taken", async () => {
  await using time = new VirtualTime();
  const process = await farProcess(time, ["b"], 7);
  const { decide } = counting("a");

  const together = [process.run({ decide }), process.run({ decide })];
  await time.advance(10);
  const done = await time.until(Promise.all([...together, process.run({ decide })]), 1_000);

  assertEquals(done.map(({ result }) => result), [1, 2, 3]);
  assertEquals(process.sizes.slice(1), [2, 1], "A guess was refused");
  assertEquals(process.reads, [[["a"]]]);
});

Deno.test("run() on a server with no free lane commits without those that find out that they need other rows", async () => {
  await using time = new VirtualTime();
  const process = Process.on(new FakeKv(), ON_SERVER);
  await time.until(process.run(counting("a")), 1_000);
  process.reads.length = 0;
  let readBefore = NaN;
  process.disturbance = {
    commit: async ({ apply, keys: [key] }) => {
      if (key?.[0] === "slow") await pause(100);
      else if (Number.isNaN(readBefore)) readBefore = process.reads.length;
      return await apply();
    },
  };
  const { decide } = counting("b");

  const runs: Promise<unknown>[] = [];
  for (const number of [1, 2]) {
    runs.push(process.run(setting("slow", number)));
    await time.advance(10);
  }
  runs.push(
    process.run(counting("a")),
    process.run({
      reads: [["c"]],
      decide: (rows, write, now) => rows.get(["b"]) ? 0 : decide(rows, write, now),
    }),
  );
  await time.until(Promise.all(runs), 1_000);

  assertEquals(readBefore, 1);
});

Deno.test("run() causes no refusals in its own process, whichever rows transactions find out", async () => {
  await using time = new VirtualTime();
  const random = seededRandom(7);
  const kv = new FakeKv();
  const process = new Process(kv.connect(slowNetwork(4)), ON_SERVER);
  for (const row of upTo(9)) await time.until(process.run(counting("a", row - 1)), 100);
  let refusals = 0;
  process.disturbance = {
    commit: async ({ apply }) => {
      const result = await apply();
      if (!result.ok) refusals++;
      return result;
    },
  };
  const hopping = (from: number): Transaction<number> => ({
    decide(rows, write) {
      const known = rows.get(["a", from]);
      const key = ["a", numberIn(known) % 9];
      const next = numberIn(rows.get(key)) + 5;
      if (known === null) return next; // So no commit assumes that the row is missing.
      write.set(key, encodeJson(next));
      return next;
    },
  });

  const runs: Promise<unknown>[] = [];
  for (const _ of upTo(400)) {
    runs.push(process.run(hopping(Math.floor(random() * 9))));
    await time.advance(random() * 2);
  }
  await time.until(Promise.all(runs), 10_000);

  assertEquals(refusals, 0);
});
