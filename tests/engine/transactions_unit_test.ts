import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { Ids } from "../../src/engine/ids.ts";
import { CorruptRow, decodeJson, encodeJson } from "../../src/engine/row.ts";
import { SCHEMA } from "../../src/engine/schema_version.ts";
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
  ["appends more than 64 KiB", RangeError, (write) => write.append(["feed"], { text: "x".repeat(65_530) })],
  ["appends more than 64 KiB at twice", RangeError, (write) => {
    for (const text of ["x".repeat(33_000), "猫".repeat(11_000)]) write.append(["feed"], { text });
  }],
  ["appends to a log with a name over 2 KiB", RangeError, (write) => write.append(["x".repeat(2_040)], {})],
  ["appends to a log with a part that no key has", TypeError, (write) => write.append([null as never], {})],
  ["throws after a write", RangeError, (write) => {
    write.append(["feed"], {});
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
    const feed = await Array.fromAsync(kv.list({ prefix: ["feed"] }));
    assertEquals([rows.length, (await kv.get(ROW)).versionstamp, feed], [40, null, []]);
  });
}

/** Appends an entry to each log. */
function appending(entry: object, ...logs: string[]): Transaction<undefined> {
  return {
    decide(_, write) {
      for (const log of logs) write.append(["logs", log], entry);
    },
  };
}

/** The rows that were appended to a log: versionstamps, and lists of entries. */
async function rowsOf(kv: Deno.Kv, log: string): Promise<readonly (readonly [string, unknown[]])[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: ["logs", log] }));
  for (const { key, versionstamp } of rows) assertEquals(key, ["logs", log, versionstamp]);
  return rows.map((row) => [row.versionstamp, decodeJson<unknown[]>(row)]);
}

Deno.test("Write.append() makes one row of each log in a commit, with the entries in the order of decisions", async () => {
  using kv = await Deno.openKv(":memory:");
  const process = new Process(kv);

  const done = await Promise.all([
    process.run(appending({ id: 1 }, "a", "b")),
    process.run({
      decide(rows, write) {
        rows.get(ROW);
        write.set(ROW, encodeJson(2));
        for (const part of [1, 2]) write.append(["logs", "b"], { id: 2, part });
        return null;
      },
    }),
    process.run(appending({ id: 3, "猫": '"' }, "c", "b")),
  ]);
  await process.run(appending({ id: 4 }, "b"));

  assertEquals(done.map(({ committed }) => committed), [true, true, true]);
  const { versionstamp } = await kv.get(ROW);
  const [, second] = await rowsOf(kv, "b");
  assertEquals(await rowsOf(kv, "a"), [[versionstamp ?? "", [{ id: 1 }]]]);
  assertEquals(await rowsOf(kv, "b"), [
    [versionstamp ?? "", [{ id: 1 }, { id: 3, "猫": '"' }, { id: 2, part: 1 }, { id: 2, part: 2 }]],
    [second?.[0] ?? "", [{ id: 4 }]],
  ]);
  assertEquals(await rowsOf(kv, "c"), [[versionstamp ?? "", [{ id: 3, "猫": '"' }]]]);
});

Deno.test.each<[string, number, (number: number) => Transaction<undefined>, number[]]>([
  ["64 KiB of a log", 40, () => appending({ text: "猫".repeat(700) }, "a"), [31, 9]],
  ["800 KB", 12, (number) => appending({ text: "x".repeat(60_000) }, `${number}`), [9, 3]],
  ["a thousand changes", 950, (number) => appending({}, `${number}`), [900, 50]],
  ["80 KB of keys", 45, (number) => appending({}, `${number}`.padEnd(2_000)), [36, 9]],
  ["a thousand changes of which one is to all", 900, (number) => ({
    decide(_, write) {
      write.set(["a", number], encodeJson(0));
      write.append(["logs", "a"], {});
    },
  }), [899, 1]],
])("Write.append() fills a commit up to its limit: %s", async (_, count, transaction, sizes) => {
  using kv = await Deno.openKv(":memory:");
  const process = new Process(kv);

  await Promise.all(upTo(count).map((number) => process.run(transaction(number))));

  const rows = await Array.fromAsync(kv.list<Uint8Array>({ prefix: ["logs"] }));
  const byCommit = Object.groupBy(rows, ({ versionstamp }) => versionstamp);
  const entries = (row: Deno.KvEntry<unknown>) => decodeJson<unknown[]>(row).length;
  assertEquals(
    Object.values(byCommit).map((some = []) => some.map(entries).reduce((sum, count) => sum + count)),
    sizes,
  );
});

Deno.test("Write.append() stores a list of 64 KiB, and none that is a byte longer", async () => {
  using kv = await Deno.openKv(":memory:");
  const process = new Process(kv);
  const filling = (last: number): Transaction<undefined> => ({
    decide(_, write) {
      for (const length of [2, 32_000, last]) write.append(["logs", "a"], { text: "x".repeat(length) });
    },
  });
  const most = 65_536 - "[{},{},{}]".length - 3 * '"text":""'.length - 32_002;

  await process.run(filling(most));
  await assertRejects(() => process.run(filling(most + 1)), RangeError, "A row of logs is over 65536 bytes");

  const [row] = await Array.fromAsync(kv.list<Uint8Array>({ prefix: ["logs"] }));
  assertEquals(row?.value.length, 65_536);
});

/** Appends the features that it decides on. */
const APPENDING: Transaction<undefined> = {
  decide(rows, write) {
    write.set(["any"], encodeJson(0));
    write.append(["logs", "a"], rows.features);
  },
};

Deno.test("Rows.features are those of the commit, even if these change right before", async () => {
  const kv = new FakeKv();
  const handle = kv.connect();
  const process = Process.on(kv);
  const set = (features: object) =>
    handle.atomic().set(SCHEMA, encodeJson({ version: 3, features })).commit();
  await set({ feed: 1 });
  let switched = 1;
  process.beforeCommit(4, () => set({ feed: ++switched }));

  await Promise.all(upTo(3).map(() => process.run(APPENDING)));

  // The fifth attempt applies for all three.
  assertEquals((await rowsOf(handle, "a")).map(([, entries]) => entries), [
    [5, 5, 5].map((feed) => ({ feed })),
  ]);
  assertEquals(process.sizes, [4, 4, 4, 4, 4]);
});

Deno.test("Rows.features are those before the commit that switches them", async () => {
  using kv = await Deno.openKv(":memory:");
  await kv.set(SCHEMA, encodeJson({ version: 1 }));
  const process = new Process(kv);
  const { store: { schema } } = process;
  await process.store.features();
  const switching = (to: number): Transaction<undefined> => ({
    decide: (_, write) => schema.switch("feed", to, write),
  });

  for (const to of [7, 0]) {
    await Promise.all([process.run(APPENDING), process.run(switching(to)), process.run(APPENDING)]);
    await process.run(APPENDING);
  }

  const rows = (await rowsOf(kv, "a")).map(([, entries]) => entries);
  assertEquals(rows, [[{}, {}], [{ feed: 7 }], [{ feed: 7 }, { feed: 7 }], [{}]]);
});

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
