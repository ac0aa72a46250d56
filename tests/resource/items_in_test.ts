import { assertEquals, assertRejects } from "@std/assert";
import { Store, Transactions, Versions } from "../../src/engine/mod.ts";
import type { Acting } from "../../src/service/mod.ts";
import { type Item, type ItemsIn, itemsOf, of, type Owned, type Resource } from "../../src/resource/mod.ts";
import { ApiError } from "../../src/web/mod.ts";
import { INVOICES } from "../fork/catalogue/invoices.ts";
import { paying } from "../fork/catalogue/parts/payments.ts";
import { PAYMENTS } from "../fork/catalogue/payments.ts";
import { onFile } from "../support/fake_kv.ts";
import { OF_THINGS, type Thing, THINGS } from "../support/things.ts";

const OF_INVOICES = { ...OF_THINGS, resources: [INVOICES, PAYMENTS, THINGS] } as const;
const BILL = { number: "1", customer: "Ann", totalCents: 1_000, dueOn: "2027-02-01" } as const;
const HAMMER = { name: "Hammer", weight: 700, state: "new" } as const;
const HAMMER_LOST = { ...HAMMER, state: "lost", isSpare: false } as const;
const ANN: Acting = { by: "account", accountId: "ann", now: Date.UTC(2027, 0, 15) };
const BEN: Acting = { ...ANN, accountId: "ben" };
const SERVICE: Acting = { ...ANN, by: "service" };
const OPERATOR: Acting = { ...ANN, by: "operator", accountId: "" };

/** Invoices, payments and things as one process changes them. */
function processOn(kv: Deno.Kv) {
  const store = new Store(onFile(kv, { clock: () => 0 }));
  const transactions = new Transactions(store, () => 0);
  const all = itemsOf(OF_INVOICES, { store, transactions, versions: new Versions(store) });
  const find = <Value extends Item>(resource: Resource<Value>) => {
    const found = all.find(of(resource));
    if (found === undefined) throw new TypeError(`There are no ${resource.name}`);
    return found;
  };
  const [invoices, payments, things] = [find(INVOICES), find(PAYMENTS), find(THINGS)];
  return {
    ...{ store, transactions, invoices, payments, things },
    pay: (cents: number, acting = SERVICE) =>
      transactions.run(paying(invoices, payments, acting, { invoiceId: 1, cents })),
    /** Adds an invoice of Ann's, and sends it. */
    async send(): Promise<void> {
      await transactions.run(invoices.adding(BILL, ANN));
      await transactions.run({
        decide(rows, write) {
          const own = invoices.in(rows, write, ANN);
          const bill = own.get(1);
          return bill && own.set(bill, { ...bill.item, state: "sent" });
        },
      });
    },
    /** The invoice, and the sum of its payments. */
    async sums(): Promise<{ state: unknown; paidCents: unknown; sum: number }> {
      const { items: [bill] } = await invoices.listOwned(1);
      const { items: paid } = await payments.listOwned(500);
      const sum = paid.reduce((sum, { item: { cents } }) => sum + cents, 0);
      return { state: bill?.item.state, paidCents: bill?.item.paidCents, sum };
    },
  };
}

Deno.test("Items.in() changes items of two collections together, or none", async () => {
  using kv = await Deno.openKv(":memory:");
  const desk = processOn(kv);
  await desk.send();

  await desk.pay(400);
  await assertRejects(() => desk.pay(601), ApiError, "cannot be paid by that much");
  assertEquals(await desk.sums(), { state: "sent", paidCents: 400, sum: 400 });

  await desk.pay(600);
  assertEquals(await desk.sums(), { state: "paid", paidCents: 1_000, sum: 1_000 });
});

Deno.test("Items.in() keeps a sum exact while two processes race", async () => {
  using kv = await Deno.openKv(":memory:");
  const processes = [processOn(kv), processOn(kv)];
  await processes[0]?.send();

  const outcomes = await Promise.allSettled(
    Array.from({ length: 200 }, (_, index) => processes[index % 2]?.pay(1 + index % 20)),
  );

  const paid = outcomes.reduce(
    (sum, { status }, index) => sum + (status === "fulfilled" ? 1 + index % 20 : 0),
    0,
  );
  const sums = await processes[0]?.sums();
  assertEquals([sums?.paidCents, sums?.sum], [paid, paid]);
  const refused = outcomes.filter(({ status }) => status === "rejected");
  assertEquals(refused.every((outcome) => "reason" in outcome && outcome.reason instanceof ApiError), true);
});

/** A desk with an invoice of Ann's, which only she sees, and a thing of hers, which everyone sees. */
async function deskOf(kv: Deno.Kv) {
  const desk = processOn(kv);
  await desk.send();
  await desk.transactions.run(desk.things.adding(HAMMER, ANN));
  return desk;
}

Deno.test.each<[who: string, acting: Acting, seen: readonly boolean[]]>([
  ["its account", ANN, [true, true]],
  ["the service for its account", SERVICE, [true, true]],
  ["an operator", OPERATOR, [true, true]],
  ["another account", BEN, [false, true]],
  ["the service for another account", { ...BEN, by: "service" }, [false, true]],
  ["an account without an id", { ...ANN, accountId: "" }, [false, true]],
  ["the service for nobody", { ...SERVICE, accountId: "" }, [false, true]],
])("Items.in() lets %s see only what it may read", async (_, acting, seen) => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, invoices, things } = await deskOf(kv);

  const { result } = await transactions.run({
    decide: (rows, write) => [invoices, things].map((items) => items.in(rows, write, acting).get(1) !== null),
  });

  assertEquals(result, seen);
});

Deno.test("Items.in() shows an item of nobody, in a collection that owners read, to operators alone", async () => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, invoices } = processOn(kv);
  await transactions.run(invoices.adding(BILL, OPERATOR));
  const isSeen = async (acting: Acting) =>
    (await transactions.run({ decide: (rows, write) => invoices.in(rows, write, acting).get(1) !== null }))
      .result;

  assertEquals(await isSeen({ ...ANN, accountId: "" }), false);
  assertEquals(await isSeen(OPERATOR), true);
});

Deno.test.each<[what: string, use: (things: ItemsIn<Thing>) => unknown]>([
  ["changes", (things) => things.set(itemOf(things), { ...HAMMER, state: "lost", isSpare: false })],
  ["deletes", (things) => things.remove(itemOf(things))],
  ["adds, for its account,", (things) => things.add(HAMMER, ANN.accountId)],
])("Items.in() refuses a client that %s what another account added, but not the service", async (_, use) => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, things } = await deskOf(kv);
  const before = await Array.fromAsync(kv.list({ prefix: [] }));
  const run = (acting: Acting) =>
    transactions.run({ decide: (rows, write) => void use(things.in(rows, write, acting)) });

  const refused = await assertRejects(() => run(BEN), ApiError);
  assertEquals(refused.kind.code, "not_your_thing");
  assertEquals(await Array.fromAsync(kv.list({ prefix: [] })), before);

  await run({ ...BEN, by: "service" });
});

Deno.test("Items.in() refuses a client that adds what only operators add", async () => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, payments } = await deskOf(kv);
  const adding = (acting: Acting) => transactions.run(payments.adding({ invoiceId: 1, cents: 5 }, acting));

  const refused = await assertRejects(() => adding(ANN), ApiError, "Only operators may");
  assertEquals(refused.kind.code, "not_your_payment");

  assertEquals((await adding(SERVICE)).result.item.cents, 5);
});

Deno.test.each<[what: string, use: (things: ItemsIn<Thing>, stale: Owned<Thing>) => unknown]>([
  ["from another transaction", (things, stale) => things.set(stale, HAMMER_LOST)],
  ["that it has changed since", (things) => {
    const owned = itemOf(things);
    things.set(owned, HAMMER_LOST);
    things.remove(owned);
  }],
  ["that is made up", (things) => things.remove({ item: { id: 1, ...HAMMER_LOST }, ownerId: ANN.accountId })],
])("Items.in() refuses an item %s, and writes nothing", async (_, use) => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, things } = await deskOf(kv);
  const { result: stale } = await transactions.run({
    decide: (rows, write) => itemOf(things.in(rows, write, ANN)),
  });

  await assertRejects(
    () => transactions.run({ decide: (rows, write) => void use(things.in(rows, write, ANN), stale) }),
    TypeError,
    "Item 1 of things is not the one that this transaction has",
  );

  const { items: [owned] } = await things.listOwned(1);
  assertEquals(owned?.item, { id: 1, ...HAMMER, isSpare: false });
});

Deno.test("Items.in() changes an item twice in one transaction, and its lists follow", async () => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, things } = await deskOf(kv);

  await transactions.run({
    decide(rows, write) {
      const own = things.in(rows, write, ANN);
      const lost = own.set(itemOf(own), HAMMER_LOST);
      own.set(lost, { ...lost.item, state: "used" });
      return null;
    },
  });

  for (const state of ["new", "used", "lost"]) {
    const { json } = await things.list({ limit: 9, state }, "");
    assertEquals(JSON.parse(json).length, state === "used" ? 1 : 0);
  }
});

Deno.test("Items.in() gives an id back that a transaction draws in vain", async () => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, things } = await deskOf(kv);

  await assertRejects(() =>
    transactions.run({
      decide(rows, write) {
        things.in(rows, write, ANN).add(HAMMER);
        throw new ApiError(INVOICES.errors.notFound, "There is none.");
      },
    }), ApiError);
  const { result } = await transactions.run(things.adding(HAMMER, ANN));

  assertEquals(result.item.id, 2);
});

Deno.test("Items.in() stores no item that the declaration could not read", async () => {
  using kv = await Deno.openKv(":memory:");
  const { transactions, things } = await deskOf(kv);

  await assertRejects(
    () => transactions.run(things.adding({ name: "Saw" }, ANN)),
    Error,
    "An item of things was to be stored with a value of weight that is not declared",
  );

  assertEquals((await things.listOwned(9)).items.length, 1);
});

/** The thing with the id 1. */
function itemOf(things: ItemsIn<Thing>): Owned<Thing> {
  return things.get(1) ?? { item: { id: 1, ...HAMMER_LOST }, ownerId: "" };
}
