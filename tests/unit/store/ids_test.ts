import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { Connection } from "../../../src/kv/connection.ts";
import { StoreUnavailable } from "../../../src/kv/deadline.ts";
import { CorruptRow, decodeJson, encodeJson } from "../../../src/kv/row.ts";
import { Store } from "../../../src/kv/store.ts";
import { Ids } from "../../../src/store/ids.ts";
import { type Queue, type Transaction, Unresolved } from "../../../src/store/transaction.ts";
import { Transactions } from "../../../src/store/transactions.ts";
import { type Disturbance, disturbed, fail, FakeKv, hang } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";

const QUEUE: Queue = { label: "changes", lanes: () => 3 };
const KEY = ["ids"];

/** A process that draws ids. */
class Process {
  disturbance: Disturbance = {};
  /** Commits with which it took ids. */
  takes = 0;
  readonly ids: Ids;
  readonly #transactions: Transactions;

  constructor(kv: FakeKv) {
    const handle = disturbed(kv.connect(), {
      commit: (commit) => {
        if (commit.keys.some(([table]) => table === "ids")) this.takes++;
        return this.disturbance.commit?.(commit) ?? commit.apply();
      },
    });
    const store = new Store(new Connection([handle]), { maxChecks: 10, clock: () => 0 });
    this.#transactions = new Transactions(store, () => 0);
    this.ids = new Ids(this.#transactions, KEY);
  }

  /** Runs a transaction that draws an id. */
  async draw(
    decide: Transaction<number>["decide"] = (_, write) => write.id(),
    reads: Deno.KvKey[] = [],
  ): Promise<number> {
    const transaction: Transaction<number> = {
      queue: QUEUE,
      reads,
      ids: this.ids,
      decide(rows, write, now) {
        const id = decide(rows, write, now);
        write.set(["used", id], new Uint8Array());
        return id;
      },
    };
    return (await this.#transactions.run(transaction, { mayBegin() {} })).result;
  }

  drawMany(count: number): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => this.draw()));
  }
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

Deno.test("Ids gives ids from 1 in the order of the calls, and takes many at a time where many are wanted", async () => {
  const process = new Process(new FakeKv());

  assertEquals(await process.drawMany(500), upTo(500));

  assertLess(process.takes, 5);
});

Deno.test("Ids skips none at walking pace, also over a stop, when one process draws", async () => {
  const kv = new FakeKv();
  const drawn: number[] = [];
  for (let start = 0; start < 5; start++) {
    const process = new Process(kv);
    for (let count = 0; count < 7 * (start + 1); count++) drawn.push(await process.draw());
    await process.ids.settle();
  }

  assertEquals(drawn, upTo(drawn.length));
});

Deno.test("Ids gives each id once, to each process ascending, also where one gives back what it has left", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];

  const [first, second] = await Promise.all([one.drawMany(200), two.drawMany(200)]);
  await one.ids.settle();
  const last = [...await two.drawMany(50), ...await new Process(kv).drawMany(50)];

  const drawn = [...first, ...second, ...last];
  assertEquals(new Set(drawn).size, 500);
  for (const some of [first, second]) assertEquals(some, some.toSorted((a, b) => a - b));
});

Deno.test("Ids gives each id once where two processes take ranges in turn before their last are used up", async () => {
  const kv = new FakeKv();
  const processes = [new Process(kv), new Process(kv)];
  const drawn: number[] = [];
  for (let count = 0; count < 100; count++) {
    for (const process of processes) drawn.push(await process.draw());
  }

  assertEquals(new Set(drawn).size, 200);
});

Deno.test("Ids gives an id again that was drawn and never sent, and none that a commit may have taken", async () => {
  const process = new Process(new FakeKv());
  await process.draw();

  await assertRejects(() =>
    process.draw((_, write) => {
      throw new RangeError(`${write.id()} is refused`);
    }), RangeError);
  assertEquals(await process.draw(), 2);

  process.disturbance = { commit: () => fail() };
  await assertRejects(() => process.draw(), StoreUnavailable);
  process.disturbance = {};
  assertEquals(await process.draw(), 4);
});

Deno.test("Ids goes on after a range could not be taken", async () => {
  const process = new Process(new FakeKv());
  process.disturbance = { commit: () => fail() };
  await assertRejects(() => process.draw(), StoreUnavailable);
  process.disturbance = {};

  assert(await process.draw() > 0);
});

Deno.test("Ids leaves no doubt that what waited for them in vain was not carried out", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv());
  let isLost = false;
  process.disturbance = {
    commit: ({ keys, apply }) => {
      isLost ||= keys.some(([table]) => table === "ids");
      return isLost ? hang() : apply();
    },
  };

  const error = await time.until(assertRejects(() => process.draw(), StoreUnavailable), 60_000);

  assert(!(error instanceof Unresolved), `${error}`);
});

Deno.test("Ids draws one id for all runs of a transaction, however often it asks", async () => {
  const kv = new FakeKv();
  const process = new Process(kv);
  await process.draw();
  process.disturbance = {
    commit: async ({ apply }) => {
      process.disturbance = {};
      await kv.connect().atomic().set(["row"], new Uint8Array()).commit();
      return await apply();
    },
  };
  const drawn: number[] = [];

  await process.draw((rows, write) => {
    rows.get(["row"]);
    drawn.push(write.id(), write.id());
    return write.id();
  }, [["row"]]);

  assertEquals(drawn, [2, 2, 2, 2]);
  assertEquals(await process.draw(), 3);
});

Deno.test("settle() leaves the row alone where another process has drawn since", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];
  await one.draw();
  await two.draw();

  await one.ids.settle();

  const row = kv.rows.get(JSON.stringify(KEY));
  assertEquals(row && decodeJson<{ next: number }>(row).next, 33);
});

Deno.test("Ids gives none where the row does not tell which is next", async () => {
  const kv = new FakeKv();
  await kv.connect().atomic().set(KEY, encodeJson({ last: 7 })).commit();

  await assertRejects(() => new Process(kv).draw(), CorruptRow);

  assertEquals(kv.value(...KEY), encodeJson({ last: 7 }));
});
