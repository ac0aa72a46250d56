import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { decodeState, type Holder, stateKeys, unstored } from "../../src/limits/holder.ts";
import { Permits } from "../../src/limits/permits.ts";
import { CorruptRow, encodeJson } from "../../src/engine/row.ts";
import { decodeUsage, type Limits, usageKey } from "../../src/limits/usage.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { upTo } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";

/** Lets permits learn more holders than they remember. */
function learnOthers(permits: Permits<Holder>): void {
  const holders = unstored(() => ({ minute: 1_000, day: 9_000 }));
  for (const id of upTo(20_000)) {
    const state = decodeState(holders, `${id}`, [null]);
    if (state) permits.learn(state, 0);
  }
}

Deno.test("Permits.of() returns the allowance of an account that is active, however many others are learnt", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const clock = () => service.now;
  const holders = unstored(() => ({ minute: 1_000, day: 9_000 }));
  const permits = new Permits({ store, transactions: new Transactions(store, { clock }), holders, clock });
  await permits.admit("first");
  const first = permits.of("first");

  learnOthers(permits);

  assert(first);
  assertStrictEquals(permits.of("first"), first);
  await permits.settle();
  assertEquals(await permits.admit("0").then((decision) => decision?.minute.remaining), 999);
  await permits.settle();
});

Deno.test("Permits.admit() fails only for a holder whose row is malformed or whose ID is too long", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const clock = () => service.now;
  const holders = unstored(() => ({ minute: 60, day: 1_000 }));
  const permits = new Permits({ store, transactions: new Transactions(store, { clock }), holders, clock });
  await service.kv.set(usageKey("malformed"), encodeJson({}));

  const malformed = permits.admit("malformed");
  const long = permits.admit("x".repeat(3_000));
  const good = permits.admit("good");

  await Promise.all([
    assertRejects(() => malformed, CorruptRow),
    assertRejects(() => long, StoreUnavailable),
    good.then((decision) => assertEquals(decision?.minute.remaining, 59)),
  ]);
  await permits.settle();
});

Deno.test("Permits ignore a lease whose usage row was deleted and written anew", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const clock = () => service.now;
  const holders = unstored(() => ({ minute: 1_000, day: 9_000 }));
  const open = () => new Permits({ store, transactions: new Transactions(store, { clock }), holders, clock });
  const [one, other] = [open(), open()];
  await one.admit("holder");
  assert(one.count().permits > 1);

  await store.remove([usageKey("holder")]);
  await other.admit("holder");
  await other.settle();
  await one.settle();

  const row = await store.get(usageKey("holder"));
  assertEquals(row && decodeUsage(row).used, 1);
});

Deno.test("Permits.usageOf() returns the current usage even if the given rows are older than the leases", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const clock = () => service.now;
  const holders = unstored(() => ({ minute: 1_000, day: 9_000 }));
  const permits = new Permits({ store, transactions: new Transactions(store, { clock }), holders, clock });
  await permits.admit("holder");
  const before = decodeState(holders, "holder", await store.getMany(stateKeys(holders, "holder")));
  assert(before);
  for (let count = 1; count < 8; count++) await permits.admit("holder");

  assertEquals([permits.count().leases, permits.usageOf(before).used], [1, 8]);
  await permits.settle();
});

/** Permits of holders that are not stored, in virtual time. */
function permitsOf({ store, now }: RecordingService, limits: Limits): Permits<Holder> {
  const clock = () => now;
  const transactions = new Transactions(store, { clock });
  return new Permits({ store, transactions, holders: unstored(() => limits), clock });
}

Deno.test("Permits.of() forgets an account that is idle, if enough others are learnt", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const permits = permitsOf(service, { minute: 1_000, day: 9_000 });
  await time.until(permits.admit("first"), 1_000);
  await time.advance(5_000);

  learnOthers(permits);

  assertStrictEquals(permits.of("first"), undefined);
});

Deno.test("Permits that are given back before and while a run fails are free after a later run", async () => {
  await using service = await RecordingService.open();
  const { time, store } = service;
  const permits = permitsOf(service, { minute: 1_000, day: 9_000 });
  const used = async () => {
    const row = await time.until(store.get(usageKey("holder")), 1_000);
    return row && decodeUsage(row).used;
  };
  const decisions = await time.until(Promise.all(upTo(200).map(() => permits.admit("holder"))), 1_000);
  await time.advance(5_000);
  assertEquals(await used(), 200);

  service.disturbance = { commit: () => pause(100).then(() => ({ ok: false })) };
  let failing: Promise<unknown> | undefined;
  for (const decision of decisions) {
    if (decision) permits.of("holder")?.giveBack(decision);
    failing ??= assertRejects(() => permits.admit("holder"), StoreUnavailable);
    await time.advance(40);
  }
  await failing;
  service.disturbance = {};
  await time.advance(10_000);

  assertEquals(await used(), 0);
});
