import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { Ids } from "../../src/engine/ids.ts";
import { CorruptRow, encodeJson } from "../../src/engine/row.ts";
import {
  type Decided,
  TooManyRows,
  type Transaction,
  Unresolved,
  type Write,
} from "../../src/engine/transaction.ts";
import { type CommitResult, fail, FakeKv } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { referee } from "./engine_referee.ts";
import { counting, numberIn, Process, setting, upTo } from "./process.ts";

Deno.test("run() returns results that some serial order of its transactions explains", () => referee());

Deno.test("run() puts simultaneous transactions in one commit, each based on the writes before it", async () => {
  const process = Process.on(new FakeKv());

  const done = await Promise.all([
    ...upTo(50).map(() => process.run(counting("a"))),
    process.run(setting("b")),
    process.run(counting("c")),
  ]);

  assertEquals(done.slice(0, 50).map(({ result }) => result), upTo(50));
  assertEquals(process.sizes, [52]);
  assertEquals(process.reads, [[["a"], ["c"]]]);
  for (const { rows: [row] } of done.slice(0, 50)) assertEquals(numberIn(row?.entry ?? null), 50);
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

Deno.test.each<[string, number, (number: number) => Transaction<Decided>, number]>([
  ["the checks that KV allows", 120, (number) => counting("a", number), 99],
  ["800 KB", 12, (number) => filling(number, 1, "", 60_000), 10],
  ["80 KB of keys with text", 15, (number) => filling(number, 3, "猫".repeat(600)), 13],
  ["80 KB of keys with bytes", 15, (number) => filling(number, 3, new Uint8Array(1_800).fill(1)), 13],
  ["a thousand changes", 5, (number) => filling(number, 300), 3],
])("run() fills a commit up to its limit: %s", async (_, count, transaction, most) => {
  const process = Process.on(new FakeKv());

  await Promise.all(upTo(count).map((number) => process.run(transaction(number))));

  const sizes = process.commits.map((keys) => new Set(keys.map(([, number]) => number)).size);
  assertEquals(sizes, [most, count - most]);
});

/** Sets rows without reading them. */
function filling(number: number, rows: number, part: Deno.KvKeyPart = "", bytes = 0): Transaction<undefined> {
  return {
    decide(_, write) {
      for (const row of upTo(rows)) write.set(["a", number, row, part], new Uint8Array(bytes));
    },
  };
}

Deno.test("run() rejects a transaction too large for a commit or a snapshot without any I/O", async () => {
  const process = Process.on(new FakeKv());
  const reads = upTo(9).map((number) => ["a", number]);

  await assertRejects(() => process.run(filling(1, 1_000)), RangeError);
  await assertRejects(() => process.run({ reads, decide: () => null }), TooManyRows);
  assertEquals([process.commits, process.reads], [[], []]);
});

const ROW = ["row"];

const FAULTS: readonly (readonly [string, new () => Error, (write: Write) => Decided, Deno.KvKey?])[] = [
  ["sets a value over 64 KiB", RangeError, (write) => write.set(ROW, new Uint8Array(65_537))],
  ["sets a value that is neither bytes nor a count", TypeError, (write) => write.set(ROW, "text" as never)],
  ["sets a row with a key over 2 KiB", RangeError, (write) => write.set(["\0".repeat(1_100)], encodeJson(1))],
  ["deletes a row with a part that no key has", TypeError, (write) => write.delete(["row", null as never])],
  ["sets a row with an empty key", TypeError, (write) => write.set([], encodeJson(1))],
  ["reads a row with a key over 2 KiB", RangeError, () => null, ["row", "x".repeat(2_048)]],
  // @ts-expect-error By type, it cannot.
  ["decides later", TypeError, async (write) => write.set(ROW, await Promise.resolve(encodeJson(1)))],
  ["throws after a write", RangeError, (write) => {
    write.set(ROW, encodeJson(1));
    throw new RangeError("no");
  }],
];

for (const [what, error, decide, key = ROW] of FAULTS) {
  Deno.test(`run() rejects one of 41 transactions alone if it ${what}`, async () => {
    using kv = await Deno.openKv(":memory:");
    const process = new Process(kv);

    const running = upTo(40).map((number) => process.run(counting("counts", number)));
    const faulty = process.run({ reads: [key], decide: (_, write) => decide(write) });

    await assertRejects(() => faulty, error);
    await Promise.all(running);
    const rows = await Array.fromAsync(kv.list({ prefix: ["counts"] }));
    assertEquals([rows.length, (await kv.get(ROW)).versionstamp], [40, null]);
  });
}

Deno.test("run() stores a value of 64 KiB", async () => {
  using kv = await Deno.openKv(":memory:");
  const value = new Uint8Array(65_536);

  await new Process(kv).run({ decide: (_, write) => write.set(ROW, value) });

  assertEquals((await kv.get(ROW)).value, value);
});

Deno.test("run() rejects only the transaction that KV cannot commit, after it has failed alone", async () => {
  const process = Process.on(new FakeKv());
  process.disturbance = {
    commit: ({ keys, apply }) =>
      keys.some(([, number]) => number === 3) ? Promise.reject(new TypeError("no")) : apply(),
  };

  const results = await Promise.allSettled(upTo(5).map((number) => process.run(setting("a", number))));

  assertEquals(results.map(({ status }) => status === "fulfilled"), [true, true, false, true, true]);
  assertEquals(process.sizes, [5, 1, 1, 1, 1, 1]);
  await assertRejects(() => process.run(setting("a", 3)), StoreUnavailable);
  assertEquals(process.sizes.length, 7);
});

Deno.test("run() refuses changes after a transaction has decided", async () => {
  const process = Process.on(new FakeKv());
  const { result: { write } } = await process.run({ decide: (_, write) => ({ write }) });

  assertThrows(() => write.set(["a"], encodeJson(0)), TypeError);
  assertThrows(() => write.delete(["a"]), TypeError);
  assertThrows(() => write.bump({ key: ["v"], version: "" }), TypeError);
});

Deno.test("run() makes no commit for a transaction that writes nothing", async () => {
  const process = Process.on(new FakeKv());

  const done = await process.run({ reads: [["a"]], decide: (rows) => numberIn(rows.get(["a"])) });

  assertEquals(done, { result: 0, committed: false, rows: [{ key: ["a"], entry: null }] });
  assertEquals(process.commits, []);
});

Deno.test("run() rereads changed rows after a conflict and retries the other transactions together", async () => {
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.beforeCommit(1, () => Process.on(kv).run(counting("a", 3)));

  const done = await Promise.all(upTo(20).map((number) => process.run(counting("a", number))));

  assertEquals(done.map(({ result }) => result), upTo(20).map((number) => number === 3 ? 2 : 1));
  assertEquals(process.sizes, [20, 19, 1]);
});

Deno.test("run() lets a refused transaction decide again before later ones", async () => {
  await using time = new VirtualTime();
  const kv = new FakeKv();
  const process = Process.on(kv);
  process.beforeCommit(1, async () => {
    await kv.connect().atomic().set(["a"], encodeJson(10)).commit();
    await pause(100);
  });

  const first = process.run(counting("a"));
  await time.advance(50);
  const second = process.run(counting("a"));
  const done = await time.until(Promise.all([first, second]), 1_000);

  assertEquals(done.map(({ result }) => result), [11, 12]);
});

/** How a commit is refused: because another process changes the row before it, or for no reason. */
const REFUSALS: readonly (readonly [string, Transaction<Decided>, (kv: FakeKv) => Promise<CommitResult>])[] =
  [
    ["its row changes", counting("a"), async (kv) => {
      await kv.connect().atomic().set(["a"], encodeJson(70)).commit();
      return { ok: false };
    }],
    ["nothing explains it", counting("a"), () => Promise.resolve({ ok: false })],
    ["nothing explains it, and it has no rows", setting("a"), () => Promise.resolve({ ok: false })],
  ];

for (const [why, transaction, refuse] of REFUSALS) {
  Deno.test(`run() lets transactions share commits, however often these are refused, if ${why}`, async () => {
    const kv = new FakeKv();
    const process = Process.on(kv);
    process.disturbance = { commit: ({ apply }) => process.sizes.length < 4 ? refuse(kv) : apply() };

    await Promise.all(upTo(20).map(() => process.run(transaction)));

    assertEquals(process.sizes, [20, 20, 20, 20]);
  });

  Deno.test(`run() gives up after five seconds of refusals, and has written nothing, if ${why}`, async () => {
    await using time = new VirtualTime();
    const kv = new FakeKv();
    const process = Process.on(kv);
    process.disturbance = { commit: async () => (await pause(100), await refuse(kv)) };

    const run = assertRejects(() => process.run(transaction), StoreUnavailable, "conflicting");

    assertEquals(await time.until(run, 6_000) instanceof Unresolved, false);
    assertEquals(kv.repetitions.length, why === "its row changes" ? process.commits.length : 0);
  });
}

const IDS = ["ids", "things"];

/** A process that draws ids. */
class Drawing {
  readonly process: Process;
  readonly ids: Ids;

  constructor(kv: FakeKv = new FakeKv()) {
    this.process = Process.on(kv);
    this.ids = new Ids(this.process.transactions, IDS);
  }

  draw(count: number): Promise<number[]> {
    return Promise.all(upTo(count).map(() => this.ids.next()));
  }
}

Deno.test("Ids draws ids from 1 in call order, also more at once than a range has, and takes larger ranges", async () => {
  const one = new Drawing();

  assertEquals(await one.draw(500), upTo(500));
  assertLess(one.process.commits.length, 5);
  assertEquals(await one.draw(2_500), upTo(3_000).slice(500));
});

Deno.test("Ids draws only whole numbers while its ranges shrink", async () => {
  await using time = new VirtualTime();
  const one = new Drawing();
  const drawn = await time.until(one.draw(39), 1_000);

  for (let count = 0; count < 120; count++) {
    await time.advance(6_000);
    drawn.push(await time.until(one.ids.next(), 1_000));
  }

  assertEquals(drawn, upTo(39 + 120));
});

Deno.test("Ids skips no id, even after a restart, if a single process draws them one by one", async () => {
  const kv = new FakeKv();
  const drawn: number[] = [];
  for (let start = 0; start < 5; start++) {
    const { ids } = new Drawing(kv);
    for (let count = 0; count < 7 * (start + 1); count++) drawn.push(await ids.next());
    await ids.close();
  }

  assertEquals(drawn, upTo(drawn.length));
});

Deno.test("Ids draws each id once, in ascending order per process, even after one gives ids back", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Drawing(kv), new Drawing(kv)];
  const inTurn: number[][] = [[], []];
  for (const _ of upTo(100)) {
    inTurn[0]?.push(await one.ids.next());
    inTurn[1]?.push(await two.ids.next());
  }

  const atOnce = await Promise.all([one.draw(200), two.draw(200)]);
  await one.ids.close();
  const last = [...await two.draw(50), ...await new Drawing(kv).draw(50)];

  assertEquals(new Set([...inTurn, ...atOnce, last].flat()).size, 700);
  for (const some of [...inTurn, ...atOnce]) assertEquals(some, some.toSorted((a, b) => a - b));
});

Deno.test("Ids.next() draws from the range that is left while the next one cannot be taken, and works again", async () => {
  await using time = new VirtualTime();
  const one = new Drawing();
  const { process, ids } = one;
  await ids.next();
  process.disturbance = { commit: fail };

  assertEquals(await one.draw(9), upTo(10).slice(1));
  await time.advance(20_000);
  assertEquals(await one.draw(6), upTo(16).slice(10));
  await time.until(assertRejects(() => ids.next(), StoreUnavailable), 20_000);
  process.disturbance = {};

  assert(await time.until(ids.next(), 1_000) > 16);
});

Deno.test("Ids.close() gives back only ids above those that another process has taken", async () => {
  await using time = new VirtualTime();
  const kv = new FakeKv();
  const [one, two] = [new Drawing(kv), new Drawing(kv)];
  await one.draw(1);
  await two.draw(1);
  await one.draw(9);
  await time.advance(0); // It has taken a second range, and has some of the first one left.

  const before = kv.value(...IDS);
  await two.ids.close();
  assertEquals(kv.value(...IDS), before);
  await one.ids.close();

  assertEquals(kv.value(...IDS), encodeJson({ next: 33 }));
});

Deno.test("Ids draws ids that were given back first, lowest first, and returns them when it settles", async () => {
  const kv = new FakeKv();
  const one = new Drawing(kv);
  const drawn = await one.draw(5);
  for (const id of [4, 2, 5]) one.ids.giveBack(id);

  assertEquals([drawn, await one.draw(2)], [upTo(5), [2, 4]]);
  await one.ids.close();
  assertEquals(await new Drawing(kv).ids.next(), 5);
});

Deno.test("Ids rejects a row that does not contain the next id", async () => {
  const kv = new FakeKv();
  await kv.connect().atomic().set(IDS, encodeJson({ last: 7 })).commit();

  await assertRejects(() => new Drawing(kv).ids.next(), CorruptRow);

  assertEquals(kv.value(...IDS), encodeJson({ last: 7 }));
});
