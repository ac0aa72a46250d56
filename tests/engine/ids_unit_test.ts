import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { CorruptRow, encodeJson } from "../../src/engine/row.ts";
import { Ids } from "../../src/engine/ids.ts";
import { fail, FakeKv } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { Process, upTo } from "./process.ts";

const KEY = ["ids", "things"];

/** A process that draws ids. */
class Drawing {
  readonly process: Process;
  readonly ids: Ids;

  constructor(kv: FakeKv = new FakeKv()) {
    this.process = Process.on(kv);
    this.ids = new Ids(this.process.transactions, KEY);
  }

  draw(count: number): Promise<number[]> {
    return Promise.all(upTo(count).map(() => this.ids.next()));
  }

  /** Number of commits that took ids. */
  get takes(): number {
    return this.process.commits.length;
  }
}

Deno.test("Ids draws ids from 1 in call order, also more at once than a range has, and takes larger ranges", async () => {
  const one = new Drawing();

  assertEquals(await one.draw(500), upTo(500));
  assertLess(one.takes, 5);
  assertEquals(await one.draw(2_500), upTo(3_000).slice(500));
});

Deno.test("Ids draws only whole numbers while its ranges shrink", async () => {
  using time = new VirtualTime();
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
    await ids.settle();
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
  await one.ids.settle();
  const last = [...await two.draw(50), ...await new Drawing(kv).draw(50)];

  assertEquals(new Set([...inTurn, ...atOnce, last].flat()).size, 700);
  for (const some of [...inTurn, ...atOnce]) assertEquals(some, some.toSorted((a, b) => a - b));
});

Deno.test("Ids.next() draws from the range that is left while the next one cannot be taken, and works again", async () => {
  using time = new VirtualTime();
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

Deno.test("Ids.settle() gives back only ids above those that another process has taken", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const [one, two] = [new Drawing(kv), new Drawing(kv)];
  await one.draw(1);
  await two.draw(1);
  await one.draw(9);
  await time.advance(0); // It has taken a second range, and has some of the first one left.

  const before = kv.value(...KEY);
  await two.ids.settle();
  assertEquals(kv.value(...KEY), before);
  await one.ids.settle();

  assertEquals(kv.value(...KEY), encodeJson({ next: 33 }));
});

Deno.test("Ids draws ids that were given back first, lowest first, and returns them when it settles", async () => {
  const kv = new FakeKv();
  const one = new Drawing(kv);
  const drawn = await one.draw(5);
  for (const id of [4, 2, 5]) one.ids.giveBack(id);

  assertEquals([drawn, await one.draw(2)], [upTo(5), [2, 4]]);
  await one.ids.settle();
  assertEquals(await new Drawing(kv).ids.next(), 5);
});

Deno.test("Ids rejects a row that does not contain the next id", async () => {
  const kv = new FakeKv();
  await kv.connect().atomic().set(KEY, encodeJson({ last: 7 })).commit();

  await assertRejects(() => new Drawing(kv).ids.next(), CorruptRow);

  assertEquals(kv.value(...KEY), encodeJson({ last: 7 }));
});
