import { assertEquals, assertNotEquals } from "@std/assert";
import {
  createdAt,
  exists,
  type Hook,
  ofService,
  openCollections,
  resource,
  type Rule,
  updatedAt,
} from "../../src/resource/mod.ts";
import { int64, integer, optional, text } from "../../src/web/schema.ts";
import { INVOICES } from "../fork/catalogue/invoices.ts";
import { PAYMENTS } from "../fork/catalogue/payments.ts";
import { assertError } from "../support/assertions.ts";
import { BOOKINGS, idIn, OF_ROOMS, Office, ROOMS } from "../support/office.ts";

const BILL = { number: "1", customer: "Ann", totalCents: 1_000, dueOn: "2027-02-01" } as const;
const OF_INVOICES = { ...OF_ROOMS, resources: [ROOMS, INVOICES, PAYMENTS] } as const;

/** An office whose bookings have only these rules and hooks. */
function withRules(rules: readonly Rule[], extend: readonly Hook[] = []): Promise<Office> {
  const bookings = { ...BOOKINGS, rules, extend };
  return Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, bookings] } });
}

/** Removes Ann's account a minute after it was closed. Resolves to the status. */
async function removeAnn(office: Office): Promise<number> {
  const id = await office.idOf(office.ann);
  await office.operate(`POST /operator/v1/accounts/${id}/close`);
  office.now += 60_000;
  return (await office.operate(`DELETE /operator/v1/accounts/${id}`)).status;
}

Deno.test("a rule lets states begin with the first one and follow each other, for clients and operators", async () => {
  await using office = await Office.open({ catalogue: OF_INVOICES });
  const add = (json: object) => office.fetch("POST /v1/invoices", { key: office.ann, json });
  const move = (state: string) => office.fetch("PATCH /v1/invoices/1", { key: office.ann, json: { state } });

  await assertError(await add({ ...BILL, state: "paid" }), 409, "invoice_state", /draft at first/);
  assertEquals(await idIn(await add(BILL)), 1);
  await assertError(await move("paid"), 409, "invoice_state");
  assertEquals((await move("sent")).status, 200);
  await assertError(await move("draft"), 409, "invoice_state");
  const operators = await office.operate("PATCH /operator/v1/invoices/1", { json: { state: "draft" } });
  await assertError(operators, 409, "invoice_state");
});

Deno.test("a rule about deletions holds for clients and operators, but not for the deletion of the account", async () => {
  await using office = await Office.open({ catalogue: OF_INVOICES });
  for (const number of ["1", "2"]) {
    await office.fetch("POST /v1/invoices", { key: office.ann, json: { ...BILL, number } });
  }
  await office.fetch("PATCH /v1/invoices/1", { key: office.ann, json: { state: "sent" } });
  const remove = (id: number) => office.fetch(`DELETE /v1/invoices/${id}`, { key: office.ann });

  await assertError(await remove(1), 409, "invoice_state", /^Only a draft can be deleted\.$/);
  await assertError(await office.operate("DELETE /operator/v1/invoices/1"), 409, "invoice_state");
  assertEquals((await remove(2)).status, 204);

  assertEquals(await removeAnn(office), 204);
  assertEquals(await office.countRows("items"), 1); // The room.
});

Deno.test("a rule that only lets a part add items refuses all else, by operators, too", async () => {
  await using office = await Office.open({ catalogue: OF_INVOICES });
  const accountId = await office.idOf(office.ann);
  await office.fetch("POST /v1/invoices", { key: office.ann, json: BILL });
  const stored = `{"id":1,"invoiceId":1,"cents":5,"createdAt":null}\n${accountId}`;
  await office.kv.set(["items", "payments", 1], new TextEncoder().encode(stored));
  const json = { invoiceId: 1, cents: 5, accountId };
  const patch = (json: object) => office.operate("PATCH /operator/v1/payments/1", { json });

  for (
    const refused of [
      await office.operate("POST /operator/v1/payments", { json }),
      await patch({ cents: 7 }),
      await office.operate("DELETE /operator/v1/payments/1"),
    ]
  ) await assertError(refused, 400, "invalid_request", /^The field cents /);
  assertEquals((await patch({ cents: 5 })).status, 200);
});

Deno.test.each<[what: string, extend: readonly Hook[], rules: readonly Rule[], reason: string]>([
  [
    "a rule that returns a promise",
    [],
    [{ check: untyped(async () => await undefined) }],
    "The rule 1 of bookings must return a text or nothing, not a promise",
  ],
  [
    "a rule that returns false",
    [],
    [{ check: untyped(() => false) }],
    "The rule 1 of bookings must return a text or nothing, not a boolean",
  ],
  ["a rule that throws", [], [{ check: failing }], "The rule 1 of bookings throws TypeError"],
  [
    "a hook that returns a promise",
    [{ name: "mine", apply: untyped(async () => await undefined) }],
    [],
    "The hook mine of bookings must return nothing, not a promise",
  ],
  [
    "a hook that returns a number",
    [{ name: "mine", apply: untyped(() => 1) }],
    [],
    "The hook mine of bookings must return nothing, not a number",
  ],
  [
    "a hook that writes more than it says",
    [{
      name: "mine",
      valueBytes: 16,
      apply: (_rows, write) => write.set(["own", "bookings", "mine"], new Uint8Array(17)),
    }],
    [],
    "The hook mine of bookings writes 17 bytes: say in valueBytes how many it writes at most",
  ],
  [
    "a hook that throws",
    [{ name: "mine", apply: failing }],
    [],
    "The hook mine of bookings throws TypeError",
  ],
])("%s is a 500 that is named in the log, and writes nothing", async (_, extend, rules, reason) => {
  await using office = await withRules([], []);
  await office.book(office.ann);
  const bookings = { ...BOOKINGS, rules, extend };
  await using later = office.beside({ catalogue: { ...OF_ROOMS, resources: [ROOMS, bookings] } });
  later.expectsErrors = true;

  await assertError(await later.book(office.ann), 500, "internal_error");
  const patch = { key: office.ann, json: { title: "Talk" } };
  await assertError(await later.fetch("PATCH /v1/bookings/1", patch), 500, "internal_error");

  assertEquals(later.errors.map((error) => error.reason), [reason, reason]);
  const list = await office.fetch("GET /v1/bookings", { key: office.ann });
  assertEquals((await list.json()).map(({ title }: { title: string }) => title), ["Review"]);
});

Deno.test("a hook that fails while an account is deleted is a line in the log, and what it wrote is dropped", async () => {
  const hook: Hook = {
    name: "mine",
    apply(_rows, write, { id, by }) {
      write.set(["own", "bookings", "mine", id], new TextEncoder().encode("1"));
      if (by === "removal") failing();
    },
  };
  await using office = await withRules([], [hook]);
  office.expectsErrors = true;
  await office.book(office.ann);

  assertEquals(await removeAnn(office), 204);

  assertEquals(office.errors.map(({ reason }) => reason), ["The hook mine of bookings throws TypeError"]);
  assertEquals(await office.countRows("items"), 1); // The room.
});

Deno.test("an old item that breaks a rule stays changeable as itself, but not into another that breaks it", async () => {
  await using office = await withRules([]);
  await office.book(office.ann, { title: "old" });
  const rule: Rule = {
    check: ({ item, before }) =>
      item.title === "old" && before?.title !== "old" || item.title === "new"
        ? "The field title must be neither."
        : item.title === before?.title && item.title === "old"
        ? "The field title is old."
        : undefined,
    checkDeletion: () => "The field title keeps a booking.",
  };
  const bookings = { ...BOOKINGS, rules: [rule], extend: [] };
  await using later = office.beside({ catalogue: { ...OF_ROOMS, resources: [ROOMS, bookings] } });
  const patch = (json: object) => later.fetch("PATCH /v1/bookings/1", { key: office.ann, json });

  assertEquals((await patch({ endsAt: "2027-01-11T11:00:00Z" })).status, 200);
  await assertError(await later.fetch("DELETE /v1/bookings/1", { key: office.ann }), 400, "invalid_request");
  assertEquals((await patch({ title: "Talk" })).status, 200);
  await assertError(await patch({ title: "old" }), 400, "invalid_request");
});

Deno.test("two references of an item change at once", async () => {
  const TRIPS = resource({
    ...{ name: "trips", item: "Trip", noun: ["a trip", "trips"] },
    tag: { name: "Trips", description: "All trips" },
    fields: { from: int64({ description: "The first room" }), to: int64({ description: "The last room" }) },
    filters: [],
    readableBy: "owner",
    writableBy: "owner",
    extend: [exists(ROOMS, "from"), exists(ROOMS, "to")],
    examples: { item: { from: 1, to: 1 }, change: {} },
  });
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, TRIPS] } });
  await office.addRooms(3);
  await office.fetch("POST /v1/trips", { key: office.ann, json: { from: 1, to: 2 } });

  const changed = await office.fetch("PATCH /v1/trips/1", { key: office.ann, json: { from: 3, to: 4 } });

  assertEquals(changed.status, 200);
  assertEquals(await office.ownRows(), [["trips,exists(rooms, from),3", 1], [
    "trips,exists(rooms, to),4",
    1,
  ]]);
});

Deno.test("deleteAccount() deletes items that refer to each other in a circle, and no count is left", async () => {
  const NODES = resource({
    ...{ name: "nodes", item: "Node", noun: ["a node", "nodes"] },
    tag: { name: "Nodes", description: "All nodes" },
    fields: { next: optional(int64({ description: "The next one" })) },
    filters: [],
    readableBy: "owner",
    writableBy: "owner",
    examples: { item: {}, change: {} },
  });
  const circular = { ...NODES, extend: [exists(NODES, "next")(NODES)] };
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, circular] } });
  const send = (target: string, json: object) => office.fetch(target, { key: office.ann, json });
  await send("POST /v1/nodes", {});
  await send("POST /v1/nodes", { next: 1 });
  await send("PATCH /v1/nodes/1", { next: 2 });
  await assertError(await office.fetch("DELETE /v1/nodes/1", { key: office.ann }), 409, "node_in_use");

  assertEquals(await removeAnn(office), 204);

  assertEquals(await office.ownRows(), []);
  assertEquals(await office.countRows("items"), 1); // The room.
});

Deno.test("unique() among an owner's items lets other accounts have the value", async () => {
  await using office = await Office.open({ catalogue: OF_INVOICES });
  const add = (key: string, number: string) =>
    office.fetch("POST /v1/invoices", { key, json: { ...BILL, number } });
  await add(office.ann, "1");
  await add(office.ann, "2");

  assertEquals((await add(office.ben, "1")).status, 201);
  await assertError(await add(office.ann, "1"), 409, "invoice_exists", /number/);
  const taken = await office.fetch("PATCH /v1/invoices/1", { key: office.ann, json: { number: "2" } });
  await assertError(taken, 409, "invoice_exists");
  assertEquals((await office.fetch("DELETE /v1/invoices/2", { key: office.ann })).status, 204);
  assertEquals((await add(office.ann, "2")).status, 201);
});

Deno.test("exists() keeps a reference to an item that any account can delete, and counts nothing", async () => {
  const PINS = resource({
    ...{ name: "pins", item: "Pin", noun: ["a pin", "pins"] },
    tag: { name: "Pins", description: "All pins" },
    fields: { noteId: int64({ description: "The note" }), mark: optional(text({ max: 9 })) },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    extend: [exists(NOTES, "noteId")],
    examples: { item: { noteId: 1 }, change: {} },
  });
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, NOTES, PINS] } });
  const pin = (noteId: number) => office.fetch("POST /v1/pins", { key: office.ben, json: { noteId } });
  await office.fetch("POST /v1/notes", { key: office.ann, json: { title: "Milk" } });

  await assertError(await pin(2), 400, "invalid_request", /^The field noteId must be the id of a note\.$/);
  assertEquals((await pin(1)).status, 201);
  assertEquals((await office.fetch("DELETE /v1/notes/1", { key: office.ann })).status, 204);

  assertEquals(await office.ownRows(), []);
  const marked = await office.fetch("PATCH /v1/pins/1", { key: office.ben, json: { mark: "x" } });
  assertEquals((await marked.json()).noteId, 1);
});

Deno.test("a rule about time does not judge the example, so the service starts", async () => {
  const rule: Rule = { check: ({ now }) => now < 0 ? undefined : "The field startsAt must not have passed." };
  await using office = await withRules([rule]);
  const bookings = { ...BOOKINGS, rules: [rule], extend: [] };

  await openCollections(office.store, { title: "Office", resources: [ROOMS, bookings] }, { create: true });

  await assertError(await office.book(office.ann), 400, "invalid_request", /startsAt/);
});

Deno.test("documents show the errors of deletions with DELETE, and those of changes with PATCH", async () => {
  const kind = (code: string) => ({ code, status: 409, means: "Not now.", todo: "Wait." });
  const hook: Hook = {
    name: "mine",
    errors: [kind("changed")],
    deletionErrors: [kind("deleted")],
    apply() {},
  };
  await using office = await withRules([], [hook]);

  const codesOf = (id: string) =>
    office.app.operations.find((operation) => operation.id === id)?.errors.map(({ code }) => code) ?? [];

  assertEquals(["changed", "deleted"].map((code) => codesOf("updateBooking").includes(code)), [true, false]);
  assertEquals(["changed", "deleted"].map((code) => codesOf("deleteBooking").includes(code)), [false, true]);
});

/** Fields that the service sets: by code, at the creation, and at each change. */
const NOTES = resource({
  ...{ name: "notes", item: "Note", noun: ["a note", "notes"] },
  tag: { name: "Notes", description: "All notes" },
  fields: {
    title: text({ max: 20 }),
    views: ofService(optional(integer(0, 99), 0)),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { title: "Milk" }, change: { title: "Bread" } },
});

Deno.test("a field that the service sets is refused in a creation and ignored in a PATCH, but operators set it", async () => {
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, NOTES] } });
  const json = { title: "Milk" };
  const add = (more: object) =>
    office.fetch("POST /v1/notes", { key: office.ann, json: { ...json, ...more } });

  for (const [field, value] of Object.entries({ views: 1, createdAt: null, updatedAt: null })) {
    await assertError(
      await add({ [field]: value }),
      400,
      "invalid_request",
      new RegExp(`^The field ${field} must be left out`),
    );
  }
  const added = await (await add({})).json();
  const { createdAt, updatedAt } = added;
  assertEquals([added.views, createdAt, updatedAt], [0, new Date(office.now).toISOString(), createdAt]);

  office.now += 1_000;
  const sent = { key: office.ann, json: { ...added, views: 5, createdAt: null, title: "Bread" } };
  const patched = await (await office.fetch("PATCH /v1/notes/1", sent)).json();
  assertEquals(patched, { ...added, title: "Bread", updatedAt: new Date(office.now).toISOString() });

  office.now += 1_000;
  const seen =
    await (await office.operate("PATCH /operator/v1/notes/1", { json: { views: 7, createdAt: null } }))
      .json();
  assertEquals([seen.views, seen.createdAt], [7, createdAt]);
  await assertError(
    await office.operate("POST /operator/v1/notes", { json: { ...json, createdAt } }),
    400,
    "invalid_request",
  );
  const made = await office.operate("POST /operator/v1/notes", { json: { ...json, views: 3 } });
  assertEquals((await made.json()).views, 3);
});

Deno.test("updatedAt() changes the ETag only if something else has changed", async () => {
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, NOTES] } });
  const patch = async (json: object) => {
    office.now += 1_000;
    return (await office.fetch("PATCH /v1/notes/1", { key: office.ann, json })).headers.get("etag");
  };
  const added = await office.fetch("POST /v1/notes", { key: office.ann, json: { title: "Milk" } });

  assertEquals(await patch({ title: "Milk" }), added.headers.get("etag"));
  assertNotEquals(await patch({ title: "Bread" }), added.headers.get("etag"));
});

Deno.test("createdAt() and updatedAt() of items that were stored before the fields are null, until a change", async () => {
  await using office = await Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, NOTES] } });
  const id = await office.idOf(office.ann);
  await office.kv.set(["items", "notes", 1], new TextEncoder().encode(`{"id":1,"title":"Milk"}\n${id}`));

  const [read] = await (await office.fetch("GET /v1/notes", { key: office.ann })).json();
  const patch = { key: office.ann, json: { title: "Bread" } };
  const changed = await (await office.fetch("PATCH /v1/notes/1", patch)).json();

  assertEquals([read.views, read.createdAt, read.updatedAt], [0, null, null]);
  assertEquals([changed.createdAt, changed.updatedAt], [null, new Date(office.now).toISOString()]);
});

/** A function that fails as code does that has a bug. */
function failing(): never {
  throw new TypeError("a secret of a customer");
}

/** A value as JavaScript can declare it. */
function untyped(value: unknown): never;
function untyped(value: unknown): unknown {
  return value;
}
