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
  /** Number of commits that took ids. */
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
    return (await this.#transactions.run(transaction, { isPatient: false })).result;
  }

  drawMany(count: number): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => this.draw()));
  }
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

Deno.test("Ids hands out ids from 1 in call order, and takes larger ranges when many are needed", async () => {
  const process = new Process(new FakeKv());

  assertEquals(await process.drawMany(500), upTo(500));

  assertLess(process.takes, 5);
});

Deno.test("Ids skips no id, even after a restart, if a single process draws them one by one", async () => {
  const kv = new FakeKv();
  const drawn: number[] = [];
  for (let start = 0; start < 5; start++) {
    const process = new Process(kv);
    for (let count = 0; count < 7 * (start + 1); count++) drawn.push(await process.draw());
    await process.ids.settle();
  }

  assertEquals(drawn, upTo(drawn.length));
});

Deno.test("Ids hands out each id once, in ascending order per process, even after one gives ids back", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];

  const [first, second] = await Promise.all([one.drawMany(200), two.drawMany(200)]);
  await one.ids.settle();
  const last = [...await two.drawMany(50), ...await new Process(kv).drawMany(50)];

  const drawn = [...first, ...second, ...last];
  assertEquals(new Set(drawn).size, 500);
  for (const some of [first, second]) assertEquals(some, some.toSorted((a, b) => a - b));
});

Deno.test("Ids hands out each id once when two processes take ranges in turn", async () => {
  const kv = new FakeKv();
  const processes = [new Process(kv), new Process(kv)];
  const drawn: number[] = [];
  for (let count = 0; count < 100; count++) {
    for (const process of processes) drawn.push(await process.draw());
  }

  assertEquals(new Set(drawn).size, 200);
});

Deno.test("Ids reuses an id that was never sent to KV, but none that a commit may have used", async () => {
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

Deno.test("Ids works again after it failed to take a range", async () => {
  const process = new Process(new FakeKv());
  process.disturbance = { commit: () => fail() };
  await assertRejects(() => process.draw(), StoreUnavailable);
  process.disturbance = {};

  assert(await process.draw() > 0);
});

Deno.test("Ids does not leave a transaction Unresolved if it cannot take a range", async () => {
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

Deno.test("Ids draws one id for a transaction, however often that runs and calls id()", async () => {
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

Deno.test("Ids.settle() leaves the row unchanged if another process has taken a range since", async () => {
  const kv = new FakeKv();
  const [one, two] = [new Process(kv), new Process(kv)];
  await one.draw();
  await two.draw();

  await one.ids.settle();

  const row = kv.rows.get(JSON.stringify(KEY));
  assertEquals(row && decodeJson<{ next: number }>(row).next, 33);
});

Deno.test("Ids rejects a row that does not contain the next id", async () => {
  const kv = new FakeKv();
  await kv.connect().atomic().set(KEY, encodeJson({ last: 7 })).commit();

  await assertRejects(() => new Process(kv).draw(), CorruptRow);

  assertEquals(kv.value(...KEY), encodeJson({ last: 7 }));
});
