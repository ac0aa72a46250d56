import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { encodeText, Store, Transactions, Versions } from "../../src/engine/mod.ts";
import { Items, openCollections, rebuild, type Resource } from "../../src/resource/mod.ts";
import { ApiError } from "../../src/web/mod.ts";
import { assertError } from "../support/assertions.ts";
import { nextTarget, upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { disturbed, onFile } from "../support/fake_kv.ts";
import { BLUE, BOOKINGS, idIn, OF_ROOMS, Office, REVIEW, ROOMS } from "../support/office.ts";
import { Operator } from "../support/operator.ts";
import { HAMMER, THINGS } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

const TOKEN = OPERATOR_TOKEN;
const DECODER = new TextDecoder();
const NO_THING = (id: number) => `Item ${id} of things is not a thing`;

/** Values of rows of the thing with an id that its declaration cannot read, and why. */
const UNREADABLE: readonly [kind: string, value: (id: number) => unknown, why: (id: number) => string][] = [
  ["no bytes", () => ({ name: "Hammer" }), NO_THING],
  ["no UTF-8", () => new Uint8Array([0xff]), NO_THING],
  ["no JSON", () => encodeText("no thing"), NO_THING],
  ["another id", () => thing({ ...HAMMER, id: 77, state: "new", isSpare: false }), NO_THING],
  [
    "no weight",
    (id) => thing({ id, name: "Hammer", state: "new", isSpare: false }),
    (id) => `In item ${id} of things, the field weight is missing`,
  ],
  [
    "a state that is not declared",
    (id) => thing({ id, ...HAMMER, state: "old", isSpare: false }),
    (id) => `In item ${id} of things, the field state has a value that is not declared`,
  ],
];

function thing(fields: object): Uint8Array<ArrayBuffer> {
  return encodeText(`${JSON.stringify(fields)}\nacct_1`);
}

/** The ids from 1. */
function ids(count: number): number[] {
  return upTo(count).map((index) => index + 1);
}

/** Replaces the value of each row of an item, and changes the version of its collection. */
async function spoil(kv: Deno.Kv, { rows, name }: Resource, id: number, value: unknown): Promise<void> {
  for (const prefix of [[...rows.items], rows.index([]).slice(0, -1), ["generations", name]]) {
    for await (const { key } of kv.list({ prefix })) if (key.at(-1) === id) await kv.set(key, value);
  }
  await kv.set(rows.version, encodeText(crypto.randomUUID()));
}

/** The keys of rows that have a text in their key or value, without commits' markers. */
async function rowsWith(kv: Deno.Kv, text: string): Promise<string[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  return rows.flatMap(({ key, value }) => {
    const content = value instanceof Uint8Array ? DECODER.decode(value) : "";
    return [key.join("/"), content].some((part) => part.includes(text)) ? [key.join("/")] : [];
  });
}

async function keysOf(kv: Deno.Kv, name: string, id: number): Promise<string[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  return rows.map(({ key }) => key).filter((key) => key.includes(name) && key.at(-1) === id).map((key) =>
    key.join("/")
  );
}

Deno.test.each(UNREADABLE)(
  "a list leaves out a thing with %s, and get returns 500",
  async (_, value, why) => {
    await using workshop = await Workshop.open({ operatorToken: TOKEN });
    workshop.expectsErrors = true;
    await workshop.add(...upTo(22).map((count) => ({ name: `Saw ${count}` })));
    await spoil(workshop.kv, THINGS, 20, value(20));
    const logged = () => workshop.errors.map(({ reason, route }) => [route, reason]);
    const line = why(20);

    const page = await workshop.call("GET /v1/things");
    const next = nextTarget(page) ?? "";
    assertEquals((await thingsIn(page)).map(({ id }) => id), ids(19));
    assertEquals((await thingsIn(await workshop.call(next))).map(({ id }) => id), [21, 22]);
    assertEquals(await workshop.ids("?sort=-id&limit=3"), [22, 21]);
    assertEquals(
      await workshop.ids("?state=new&isSpare=false&limit=100"),
      ids(22).filter((id) => id !== 20),
    );
    const owned = await workshop.fetch("GET /operator/v1/things?limit=20", { key: TOKEN });
    assertEquals(nextTarget(owned), "GET /operator/v1/things?limit=20&cursor=20");
    assertEquals((await owned.json()).length, 19);
    assertEquals(logged(), [["items", line]]);
    await assertError(await workshop.call("GET /v1/things/20"), 500, "internal_error");
    await assertError(await workshop.patch(20, {}), 500, "internal_error");
    assertEquals(logged().slice(1), Array(2).fill(["/v1/things/:thingId", line]));
    assertStringIncludes(
      workshop.metrics.registry.text("thing_store_"),
      'thing_store_unreadable_items_total{resource="things"} 1\n',
    );
  },
);

Deno.test.each(UNREADABLE)("operators can delete a thing with %s, and all of its rows", async (_, value) => {
  await using workshop = await Workshop.open({ operatorToken: TOKEN });
  workshop.expectsErrors = true;
  // More than one step of a scan.
  await Promise.all(upTo(600).map(() => workshop.add({})));
  await spoil(workshop.kv, THINGS, 550, value(550));
  assertEquals((await keysOf(workshop.kv, "things", 550)).length, 4);
  await assertError(await workshop.call("GET /v1/things/550"), 500, "internal_error");
  const remove = () => workshop.fetch("DELETE /operator/v1/things/550", { key: TOKEN });

  assertEquals((await remove()).status, 204);

  assertEquals(await keysOf(workshop.kv, "things", 550), []);
  assertEquals((await keysOf(workshop.kv, "things", 549)).length, 4);
  await assertError(await remove(), 404, "thing_not_found");
  await assertError(await workshop.call("GET /v1/things/550"), 404, "thing_not_found");
  assertEquals(workshop.errors.length, 1);
  assertEquals(workshop.operations.map(({ ids, status }) => [ids, status]), [[["550"], 204], [[], 404]]);
});

Deno.test("an operator's deletion of an unreadable item is refused while others refer to it", async () => {
  await using office = await Office.open();
  office.expectsErrors = true;
  const bookingId = await idIn(await office.book(office.ann));
  await spoil(office.kv, OF_ROOMS.resources[0], 1, encodeText("no room"));

  const refused = await office.operate("DELETE /operator/v1/rooms/1");
  assertEquals([refused.status, (await refused.json()).references], [409, 1]);
  await office.operate(`DELETE /operator/v1/bookings/${bookingId}`);

  assertEquals((await office.operate("DELETE /operator/v1/rooms/1")).status, 204);
});

Deno.test("an unreadable item that only its account sees exists for no other", async () => {
  await using office = await Office.open();
  office.expectsErrors = true;
  const id = await idIn(await office.book(office.ann));
  await spoil(office.kv, BOOKINGS, id, encodeText(`no booking\n${await office.idOf(office.ann)}`));

  for (const method of ["GET", "DELETE", "GET"]) {
    const response = await office.fetch(`${method} /v1/bookings/${id}`, { key: office.ben });
    await assertError(response, 404, "booking_not_found");
  }
  const counted = () =>
    office.metrics.items.unreadable.text().match(/^unreadable_items_total.*bookings.*$/m)?.[0];
  // It was not even decoded, which would take time.
  assertEquals(counted(), 'unreadable_items_total{resource="bookings"} 0');
  await assertError(await office.fetch(`GET /v1/bookings/${id}`, { key: office.ann }), 500, "internal_error");
  assertEquals(counted(), 'unreadable_items_total{resource="bookings"} 1');
});

Deno.test.each<[when: string, read: number]>([
  ["before its rows are searched for", 2],
  ["before the commit", 3],
])("Items.remove() deletes an item that becomes readable %s as such", async (_, read) => {
  using kv = await Deno.openKv(":memory:");
  const key = ["items", "bookings", 1];
  let [reads, readable]: [number, unknown] = [0, undefined];
  const repairing = disturbed(kv, {
    async read(keys) {
      if (readable !== undefined && String(keys[0]) === String(key) && ++reads === read) {
        await kv.set(key, readable);
      }
    },
  });
  const store = new Store(onFile(repairing, { clock: () => 0 }));
  const transactions = new Transactions(store, () => 0);
  const options = { store, transactions, versions: new Versions(store), resources: OF_ROOMS.resources };
  const [rooms, bookings] = [new Items(ROOMS, options), new Items(BOOKINGS, options)];
  const acting = { by: "operator", accountId: "", now: 0 } as const;
  await transactions.run(rooms.adding(BLUE, acting));
  await transactions.run(bookings.adding({ ...REVIEW, state: "confirmed" }, acting, "a"));
  readable = (await kv.get(key)).value;
  await kv.set(key, encodeText("no booking"));

  const isDeleted = await bookings.remove(1, {
    acting,
    transact: async (transaction) => (await transactions.run(transaction)).result,
  });

  assertEquals(isDeleted, true);
  assertEquals(await rowsWith(kv, "bookings"), ["ids/bookings", "versions/bookings"]);
});

Deno.test("Items.remove() refuses an account the deletion of another's item, readable or not", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new Store(onFile(kv, { clock: () => 0 }));
  const transactions = new Transactions(store, () => 0);
  const things = new Items(THINGS, { store, transactions, versions: new Versions(store) });
  const actingOf = (accountId: string) => ({ by: "account", accountId, now: 0 } as const);
  const remove = (accountId: string) =>
    things.remove(1, {
      acting: actingOf(accountId),
      transact: async (transaction) => (await transactions.run(transaction)).result,
    });
  await transactions.run(things.adding({ ...HAMMER, state: "new" }, actingOf("acct_1")));

  for (const value of [undefined, encodeText("no thing\nacct_1")]) {
    if (value) await kv.set([...THINGS.rows.items, 1], value);
    const error = await assertRejects(() => remove("acct_2"), ApiError);
    assertEquals(error.kind.code, "not_your_thing");
  }
  assertEquals(await remove("acct_1"), true);
});

/** Closes Ann's account, and deletes it after a minute. */
async function deleteAnn(office: Office, id: string): Promise<Response> {
  await office.operate(`POST /operator/v1/accounts/${id}/close`);
  office.now += 60_000;
  return await office.operate(`DELETE /operator/v1/accounts/${id}`);
}

Deno.test("deleteAccount() deletes unreadable items, and frees what their fields show that they held", async () => {
  await using office = await Office.open();
  office.expectsErrors = true;
  const accountId = await office.idOf(office.ann);
  const confirmed = { state: "confirmed" } as const;
  const [bookingId] = [await idIn(await office.book(office.ann, confirmed)), await office.book(office.ben)];
  const guestId = await idIn(await office.invite(office.ann, "a@b", { bookingId }));
  await office.invite(office.ben, "b@c");
  const [guests] = OF_ROOMS.resources.slice(2);
  await spoil(office.kv, BOOKINGS, bookingId, encodeText("no booking"));
  if (guests) {
    await spoil(
      office.kv,
      guests,
      guestId,
      encodeText(`{"id":${guestId},"bookingId":${bookingId}}\n${accountId}`),
    );
  }

  assertEquals((await deleteAnn(office, accountId)).status, 204);

  assertEquals(await rowsWith(office.kv, accountId), []);
  assertEquals(office.errors.map(({ reason }) => reason), [
    `Rows of unique(email) may remain of item ${guestId} of guests: rebuild guests`,
    `Rows of exists(rooms, roomId) and slot may remain of item ${bookingId} of bookings: rebuild bookings`,
  ]);
  const slots = async () =>
    (await office.ownRows()).map(([key]) => key).filter((key) => key.includes("slot"));
  assertEquals((await slots()).length, 1);
  await rebuild(BOOKINGS, {
    catalogue: OF_ROOMS,
    store: office.store,
    clock: () => office.now,
    notice: () => {},
  });
  const generations = await openCollections(office.store, OF_ROOMS, { create: false });
  const current = (await Array.fromAsync(office.kv.list({ prefix: ["own", "bookings"] })))
    .filter(({ key }) => key[2] === generations.get("bookings"));
  assertEquals(current.map(({ key }) => key.slice(3)), [["exists(rooms, roomId)", "1"]]);
});

Deno.test("deleteAccount() finds a damaged item after a rebuild, and a row that lists no item", async () => {
  await using office = await Office.open();
  office.expectsErrors = true;
  const accountId = await office.idOf(office.ann);
  const booked = [await idIn(await office.book(office.ann)), await idIn(await office.book(office.ann))];
  const [damaged = 0, missing = 0] = booked;
  await spoil(office.kv, BOOKINGS, damaged, encodeText(`no booking\n${accountId}`));
  await rebuild(BOOKINGS, {
    catalogue: OF_ROOMS,
    store: office.store,
    clock: () => office.now,
    notice: () => {},
  });
  await office.kv.delete([...BOOKINGS.rows.items, missing]);
  const generations = await openCollections(office.store, OF_ROOMS, { create: false });
  await using later = office.beside({ generations });
  later.expectsErrors = true;
  for (const sweep of later.app.sweeps) while (await sweep(office.now + 3 * 86_400_000));

  assertEquals((await deleteAnn(later, accountId)).status, 204);

  assertEquals(await rowsWith(office.kv, accountId), []);
});

Deno.test("items NAME check prints a line for each item that the declaration cannot read", async () => {
  await using operator = await Operator.start();
  const store = await operator.serve();
  const [, , broken, , missing, undeclared] = UNREADABLE;
  await store.stop();
  store.kv.close();
  const kv = await Deno.openKv(operator.environment.get("KV_PATH"));
  const readable = (id: number) => thing({ id, ...HAMMER, state: "new", isSpare: false });
  for (const id of ids(700)) await kv.set([...THINGS.rows.items, id], readable(id));
  assertEquals(await operator.run("items things check"), 0);
  assertEquals([operator.out, operator.err], [[], ["This release can read all 700 items of things."]]);
  for (const [id, kind] of [[300, broken], [301, missing], [650, undeclared]] as const) {
    await kv.set([...THINGS.rows.items, id], kind?.[1](id));
  }
  kv.close();

  assertEquals(await operator.run("items things check"), 1);

  assertEquals(operator.out, [
    "Item 300 of things is not a thing, so this release cannot read the item. No declaration can read it: delete it.",
    "In item 301 of things, the field weight is missing, so this release cannot read the item. Make the field optional, " +
    "or give it a default.",
    "In item 650 of things, the field state has a value that is not declared, so this release cannot read the item. " +
    "Keep the type and all values of the field, or declare a new field with another name.",
  ]);
  assertEquals(operator.err, ["This release cannot read 3 of 700 items of things."]);
  assertEquals(await operator.run("items things list --json"), 0);
  assertEquals([operator.out.length, operator.err.length], [697, 3]);
  assertEquals(await operator.run("items things delete 300"), 0);
  operator.environment.set("SERVICE_URL", "http://127.0.0.1:1");
  operator.environment.set("OPERATOR_TOKEN", TOKEN);
  assertEquals(await operator.run("items things check"), 1);
  assertEquals(operator.err, ["This command needs the store itself. Unset SERVICE_URL, and set KV_PATH."]);
});
