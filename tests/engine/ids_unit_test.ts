import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { CorruptRow, decodeJson, encodeJson } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import { Ids } from "../../src/engine/ids.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { type Disturbance, disturbed, fail, FakeKv, onFile } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

const KEY = ["ids", "things"];

/** A process that draws ids. */
class Process {
  disturbance: Disturbance = {};
  /** Number of commits that took ids. */
  takes = 0;
  readonly ids: Ids;

  constructor(kv: FakeKv) {
    const handle = disturbed(kv.connect(), {
      commit: (commit) => {
        if (commit.keys.some(([table]) => table === "ids")) this.takes++;
        return this.disturbance.commit?.(commit) ?? commit.apply();
      },
    });
    const store = new Store(onFile(handle, { clock: () => 0 }));
    this.ids = new Ids(new Transactions(store, { clock: () => 0 }), KEY);
  }

  drawMany(count: number): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => this.ids.next()));
  }
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

Deno.test("Ids draws ids from 1 in call order, and takes larger ranges when many are needed", async () => {
  const process = new Process(new FakeKv());

  assertEquals(await process.drawMany(500), upTo(500));

  assertLess(process.takes, 5);
});

Deno.test("Ids draws more ids at once than a range has", async () => {
  const process = new Process(new FakeKv());

  assertEquals(await process.drawMany(2_500), upTo(2_500));
});

Deno.test("Ids draws only whole numbers while its ranges shrink", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv());
  const drawn = await time.until(process.drawMany(39), 1_000);

  for (let count = 0; count < 120; count++) {
    await time.advance(6_000);
    drawn.push(await time.until(process.ids.next(), 1_000));
  }

  assertEquals(drawn, upTo(39 + 120));
});

Deno.test("Ids skips no id, even after a restart, if a single process draws them one by one", async () => {
  const kv = new FakeKv();
  const drawn: number[] = [];
  for (let start = 0; start < 5; start++) {
    const process = new Process(kv);
    for (let count = 0; count < 7 * (start + 1); count++) drawn.push(await process.ids.next());
    await process.ids.settle();
  }

  assertEquals(drawn, upTo(drawn.length));
});

Deno.test("Ids draws each id once, in ascending order per process, even after one gives ids back", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];

  const [first, second] = await Promise.all([one.drawMany(200), two.drawMany(200)]);
  await one.ids.settle();
  const last = [...await two.drawMany(50), ...await new Process(kv).drawMany(50)];

  const drawn = [...first, ...second, ...last];
  assertEquals(new Set(drawn).size, 500);
  for (const some of [first, second]) assertEquals(some, some.toSorted((a, b) => a - b));
});

Deno.test("Ids draws each id once when two processes take ranges in turn", async () => {
  const kv = new FakeKv();
  const processes = [new Process(kv), new Process(kv)];
  const drawn: number[] = [];
  for (let count = 0; count < 100; count++) {
    for (const { ids } of processes) drawn.push(await ids.next());
  }

  assertEquals(new Set(drawn).size, 200);
});

Deno.test("Ids takes the next range in the background when less than half of the current one is left", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv());
  await process.ids.next();

  await process.drawMany(8);
  assertEquals(process.takes, 1);
  await process.ids.next();
  await time.advance(0);
  assertEquals(process.takes, 2);
});

Deno.test("Ids.next() draws from the range that is left while the next one cannot be taken", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv());
  await process.ids.next();
  process.disturbance = { commit: () => fail() };

  assertEquals(await process.drawMany(9), upTo(10).slice(1));
  await time.advance(20_000);
  assertEquals(await process.drawMany(6), upTo(16).slice(10));
  await time.until(assertRejects(() => process.ids.next(), StoreUnavailable), 20_000);
});

Deno.test("Ids works again after it failed to take a range", async () => {
  const process = new Process(new FakeKv());
  process.disturbance = { commit: () => fail() };
  await assertRejects(() => process.ids.next(), StoreUnavailable);
  process.disturbance = {};

  assert(await process.ids.next() > 0);
});

Deno.test("Ids.settle() leaves the row unchanged if another process has taken a range since", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];
  await one.ids.next();
  await two.ids.next();

  await one.ids.settle();

  const row = kv.rows.get(JSON.stringify(KEY));
  assertEquals(row && decodeJson<{ next: number }>(row).next, 33);
});

Deno.test("Ids draws ids that were given back first, lowest first, and returns them when it settles", async () => {
  const kv = new FakeKv();
  const process = new Process(kv);
  const drawn = await process.drawMany(5);
  for (const id of [4, 2, 5]) process.ids.giveBack(id);

  assertEquals([drawn, await process.drawMany(2)], [upTo(5), [2, 4]]);
  await process.ids.settle();
  assertEquals(await new Process(kv).ids.next(), 5);
});

Deno.test("Ids rejects a row that does not contain the next id", async () => {
  const kv = new FakeKv();
  await kv.connect().atomic().set(KEY, encodeJson({ last: 7 })).commit();

  await assertRejects(() => new Process(kv).ids.next(), CorruptRow);

  assertEquals(kv.value(...KEY), encodeJson({ last: 7 }));
});
