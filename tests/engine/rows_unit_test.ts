// Which rows a transaction reads, if that depends on their contents.
import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { SCHEMA } from "../../src/engine/schema_version.ts";
import {
  type Decided,
  type Done,
  type Rows,
  TooManyRows,
  type Transaction,
} from "../../src/engine/transaction.ts";
import { FakeKv, slowly } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { counting, numberIn, Process, setting, upTo } from "./process.ts";

const POINTER = ["pointer"];

/** Increments the number in the row that the pointer shows, and returns it. */
const FOLLOWING: Transaction<number> = {
  decide(rows, write) {
    const key = ["a", numberIn(rows.get(POINTER))];
    const number = numberIn(rows.get(key)) + 1;
    write.set(key, encodeJson(number));
    return number;
  },
};

/** A KV in which the pointer shows a row. */
async function pointing(to: number): Promise<FakeKv> {
  const kv = new FakeKv();
  await set(kv, POINTER, to);
  return kv;
}

async function set(kv: FakeKv, key: Deno.KvKey, number: number): Promise<void> {
  await kv.connect().atomic().set(key, encodeJson(number)).commit();
}

/** Makes another process set a row before each read, to the number of the read. */
function settingBeforeReads(
  process: Process,
  kv: FakeKv,
  key: Deno.KvKey,
  numberAt = (read: number) => read,
): void {
  process.disturbance = { read: () => set(kv, key, numberAt(process.reads.length)) };
}

/** The numbers in the rows that a transaction returned. */
function numbersOf({ rows }: Done<unknown>): [Deno.KvKey, number][] {
  return rows.map(({ key, entry }) => [key, numberIn(entry)]);
}

Deno.test("run() finds out which rows a transaction gets, and reads them in one snapshot", async () => {
  const process = Process.on(new FakeKv());
  const keys = upTo(8).map((number) => ["a", number]);

  const done = await process.run({ decide: (rows) => keys.map((key) => numberIn(rows.get(key))) });

  assertEquals(done.result, upTo(8).map(() => 0));
  assertEquals(numbersOf(done), keys.map((key) => [key, 0]));
  assertEquals([process.reads, process.commits], [[keys], []]);
});

Deno.test("run() follows rows to other rows, and counts only the rows of the last run", async () => {
  const kv = await pointing(3);
  const process = Process.on(kv);
  await set(kv, ["a", 3], 30);

  const done = await process.run(FOLLOWING);
  const again = await process.run({ ...FOLLOWING, reads: [POINTER] });

  assertEquals([done.result, again.result], [31, 32]);
  for (const one of [done, again]) assertEquals(numbersOf(one), [[POINTER, 3], [["a", 3], one.result]]);
  assertEquals(process.reads, [
    [SCHEMA, POINTER, ["a", 0]], // after a guess was refused
    [POINTER, ["a", 3], ["a", 0]],
    [POINTER],
    [SCHEMA, POINTER, ["a", 3]],
  ]);
});

Deno.test("run() does not check a row that only an earlier run got", async () => {
  const kv = await pointing(3);
  const process = Process.on(kv);
  process.disturbance = {
    commit: async ({ apply, keys: [key] }) => {
      if (key?.[1] === 3) await set(kv, ["a", 0], 7);
      return await apply();
    },
  };

  assertEquals((await process.run(FOLLOWING)).result, 1);
  assertEquals(process.commits, [[["a", 0]], [["a", 3]]]);
});

Deno.test("run() checks the rows in `reads` even if the transaction does not get them", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.beforeCommit(1, () => set(kv, ["given"], 7));

  const done = await process.run({ ...counting("a"), reads: [["given"]] });

  assertEquals(process.sizes, [1, 1]);
  assertEquals(numbersOf(done), [[["given"], 7], [["a"], 1]]);
});

Deno.test("run() forgets what a run returned, threw or wrote if a row had not been read", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  await set(kv, ["a"], 1);
  let runs = 0;

  const { result } = await process.run({
    decide(rows, write) {
      runs++;
      const entry = rows.get(["a"]);
      write.set(["b", runs], encodeJson(runs));
      if (entry === null) throw new Error("no");
      return numberIn(entry);
    },
  });

  assertEquals([result, runs], [1, 2]);
  assertEquals(process.commits, [[["b", 2]]]);
});

Deno.test("run() rejects one of two transactions alone if it throws on the rows that it follows", async () => {
  const process = Process.on(await pointing(1));
  const refusing: Transaction<never> = {
    decide(rows, write) {
      FOLLOWING.decide(rows, write, 0);
      throw new RangeError("no");
    },
  };

  const [refused, done] = await Promise.allSettled([process.run(refusing), process.run(FOLLOWING)]);

  assertEquals([refused.status, done.status], ["rejected", "fulfilled"]);
  assertEquals(process.commits.at(-1), [["a", 1]]);
});

Deno.test("run() puts transactions that find out their rows in the commit of those that know them", async () => {
  const process = Process.on(await pointing(1));

  const done = await Promise.all([
    process.run({ decide: (_, write) => write.set(["new"], encodeJson(5)) }),
    process.run(counting("b")),
    process.run({ decide: (rows) => numberIn(rows.get(["new"])) }),
    ...upTo(9).map(() => process.run({ ...FOLLOWING, reads: [POINTER] })),
  ]);

  assertEquals(done.slice(2).map(({ result }) => result), [5, ...upTo(9)]);
  assertEquals(process.commits.length, 1);
});

/** Gets rows, each of which says that there is another. */
function gettingOneByOne(rows: Rows): null {
  for (let number = 1; numberIn(rows.get(["a", number])) > 0;) number++;
  return null;
}

/** Gets rows, whatever they contain. */
function getting(count: number): (rows: Rows) => null {
  return (rows) => {
    for (const number of upTo(count)) rows.get(["a", number]);
    return null;
  };
}

const TOO_MANY: readonly (readonly [string, Transaction<null>["decide"], reads: number])[] = [
  ["gets nine rows one by one", gettingOneByOne, 8],
  ["gets nine rows at once", getting(9), 1],
  ["gets fifteen rows at once", getting(15), 1],
  ["gets sixteen rows at once", getting(16), 0],
  ["gets rows for ever", (rows) => {
    for (let number = 10; rows.get(["b", number]) === null;) number++;
    return null;
  }, 0],
  ["catches the error", (rows) => {
    try {
      getting(9)(rows);
    } catch {
      // The transaction fails all the same.
    }
    return null;
  }, 1],
];

for (const [what, decide, reads] of TOO_MANY) {
  Deno.test(`run() rejects a transaction with the names of its tables if it ${what}`, async () => {
    const kv = new FakeKv();
    const process = Process.on(kv);
    await Promise.all(upTo(20).map((number) => set(kv, ["a", number], 1)));

    const error = await assertRejects(() => process.run({ decide }), TooManyRows, "more than 8 rows: ");

    assertEquals(error.logReason, error.message);
    assertEquals([process.reads.length, process.commits], [reads, []]);
  });
}

Deno.test("run() lets a guess get more rows than the transaction has in the end", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  await Promise.all(upTo(7).map((number) => set(kv, ["b", number], 1)));

  const { result } = await process.run({
    decide: (rows) =>
      upTo(7).reduce((sum, number) => {
        const row = rows.get(["b", number]);
        return sum + (row ? numberIn(row) : numberIn(rows.get(["c", number])));
      }, 0),
  });

  assertEquals(result, 7);
  assertEquals(process.reads.map((keys) => keys.length), [10, 10]);
});

Deno.test("run() gives up after twenty runs if another process keeps changing which rows are needed", async () => {
  await using time = new VirtualTime();
  const kv = await pointing(0);
  const process = Process.on(kv);
  settingBeforeReads(process, kv, POINTER);
  let runs = 0;

  const run = process.run({
    decide(rows) {
      runs++;
      return numberIn(rows.get(["a", numberIn(rows.get(POINTER))]));
    },
  });
  await time.until(assertRejects(() => run, StoreUnavailable, "keep changing"), 1_000);

  assertEquals([runs, process.commits], [20, []]);
});

Deno.test("run() reads the rows of earlier runs, too, if a pointer changes to and fro", async () => {
  await using time = new VirtualTime();
  const kv = await pointing(0);
  const process = Process.on(kv);
  settingBeforeReads(process, kv, POINTER, (read) => 1 + read % 2);

  const { result, rows } = await time.until(process.run(FOLLOWING), 1_000);

  assertEquals([result, rows.length, process.reads.length], [1, 2, 3]);
});

Deno.test("run() lets no later transaction of its process move a pointer before an earlier one has followed it", async () => {
  await using time = new VirtualTime();
  const process = Process.on(await pointing(1));
  process.disturbance = { commit: slowly };
  let [runs, finished] = [0, false];
  const following = process.run({
    decide: (rows, write, now) => (runs++, FOLLOWING.decide(rows, write, now)),
  });
  following.finally(() => finished = true);
  const { decide } = counting(...POINTER);
  const moving = upTo(4).map(async (number) => {
    while (!finished) {
      await process.run(setting("b", number));
      await process.run(number % 2 ? { decide } : { decide, reads: [POINTER] });
    }
  });

  await time.until(Promise.all([following, ...moving]), 1_000);

  assertLess(runs, 5);
});

Deno.test("run() keeps the rows of a transaction that pauses, even from one that joins a commit", async () => {
  await using time = new VirtualTime();
  const kv = await pointing(0);
  const process = Process.on(kv);
  process.disturbance = { read: () => process.reads.length === 1 ? set(kv, POINTER, 1) : undefined };
  const finished: string[] = [];
  const start = (name: string, transaction: Transaction<Decided>) =>
    process.run(transaction).then(() => void finished.push(name));
  let runs = 0;

  const following = start("following", {
    decide(rows) {
      // It then pauses.
      if (++runs === 2) {
        setTimeout(() => {
          start("blind", setting("b"));
          start("moving", {
            decide: (rows, write) => rows.get(POINTER) && write.set(POINTER, encodeJson(2)),
          });
        });
      }
      return numberIn(rows.get(["a", numberIn(rows.get(POINTER))]));
    },
  });
  await time.until(following, 1_000);
  await time.advance(1);

  assertEquals(finished, ["blind", "following", "moving"]);
});

Deno.test("run() asks whether its caller still waits before it says that rows keep changing", async () => {
  await using time = new VirtualTime();
  const kv = await pointing(0);
  const process = Process.on(kv);
  settingBeforeReads(process, kv, POINTER);
  const mayBegin = () => {
    if (process.reads.length >= 19) throw new RangeError("late");
  };

  await time.until(assertRejects(() => process.run(FOLLOWING, mayBegin), RangeError, "late"), 1_000);
});

/** Sets a row that does not exist yet, if it gets null. Returns the number in it. */
function creating(...key: Deno.KvKey): Transaction<number> {
  return {
    decide(rows, write) {
      const row = rows.get(key);
      if (row === null) write.set(key, encodeJson(1));
      return numberIn(row);
    },
  };
}

Deno.test("run() commits without a read on the guess that rows do not exist, unless that was wrong lately", async () => {
  await using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv);
  await set(kv, ["a", 2], 7);
  const reads = async (...key: Deno.KvKey) => {
    process.reads.length = process.commits.length = 0;
    const { result } = await time.until(process.run(creating(...key)), 100);
    return [result, process.commits.length, process.reads.length];
  };

  assertEquals(await reads("a", 1), [0, 1, 0]);
  assertEquals(await reads("a", 2), [7, 1, 1]);
  assertEquals(await reads("a", 2), [7, 0, 1]);
  assertEquals(await reads("a", 3), [0, 1, 1]);
  assertEquals(await reads("b", 3), [0, 1, 0]);
  await time.advance(10_000);
  assertEquals(await reads("a", 4), [0, 1, 0]);
});

Deno.test("run() decides on a row that exists although it was assumed missing", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.beforeCommit(1, () => set(kv, ["a"], 7));

  const done = await process.run(creating("a"));

  assertEquals([done.result, done.committed, numbersOf(done)], [7, false, [[["a"], 7]]]);
  assertEquals(numberIn(kv.rows.get('["a"]') ?? null), 7);
});

Deno.test("run() creates a row once, whichever of its simultaneous transactions assume that it is missing", async () => {
  const process = Process.on(new FakeKv());

  const done = await Promise.all(upTo(5).map(() => process.run(creating("a"))));

  assertEquals(done.map(({ result }) => result), [0, 1, 1, 1, 1]);
  assertEquals(process.sizes, [1]);
});
