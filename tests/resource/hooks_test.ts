import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { BOOKING_DECLARATION, BOOKINGS, idIn, OF_ROOMS, Office, REVIEW, ROOMS } from "../support/office.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { Hooks } from "../../src/resource/hooks.ts";
import { type Hook, type HookOf, resource } from "../../src/resource/mod.ts";
import { assertConsistent } from "../support/stored_rows.ts";

const DAY = { startsAt: "2027-01-12T09:00:00Z", endsAt: "2027-01-12T10:00:00Z" };

Deno.test("exists() refuses an id of no item, and one that the account may not read, in the same bytes", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const bodies = new Set<string>();

  for (const bookingId of [id, 99, 0, -1, 2n ** 60n]) {
    const json = `{"email":"a@b","state":"invited","bookingId":${bookingId}}`;
    const headers = { "content-type": "application/json" };
    const response = await office.fetch("POST /v1/guests", { key: office.ben, body: json, headers });
    await assertError(response.clone(), 400, "invalid_request");
    bodies.add(await response.text());
  }

  assertEquals(bodies.size, 1);
  assertEquals([...bodies].join().includes("The field bookingId must be the id of a booking."), true);
  const own = await office.invite(office.ann, "a@b", { bookingId: id });
  assertEquals(own.status, 201);
  await assertError(await office.book(office.ann, { roomId: 99 }), 400, "invalid_request");
});

Deno.test("exists() keeps an item while others refer to it, whoever deletes it", async () => {
  await using office = await Office.open();
  await office.addRooms(1);
  const id = await idIn(await office.book(office.ann));
  const other = await idIn(await office.book(office.ben));
  const remove = (room: number) => office.operate(`DELETE /operator/v1/rooms/${room}`);
  const count = async (room: number) =>
    (await office.ownRows()).find(([key]) => key === `bookings,exists(rooms, roomId),${room}`)?.[1];

  await assertError(await remove(1), 409, "room_in_use");
  assertEquals([await count(1), await count(2)], [2, undefined]);
  await office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json: { roomId: 2 } });
  await office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json: { title: "Same room" } });
  assertEquals([await count(1), await count(2)], [1, 1]);
  await office.operate(`DELETE /operator/v1/bookings/${other}`);
  assertEquals((await remove(1)).status, 204);
  await assertError(await remove(2), 409, "room_in_use");
  await office.invite(office.ann, "a@b", { bookingId: id });
  const refused = await office.fetch(`DELETE /v1/bookings/${id}`, { key: office.ann });
  await assertError(refused, 409, "booking_in_use");
  await office.fetch("PATCH /v1/guests/1", { key: office.ann, json: { bookingId: null } });
  assertEquals((await office.fetch(`DELETE /v1/bookings/${id}`, { key: office.ann })).status, 204);
  assertEquals((await remove(2)).status, 204);
  await assertConsistent(office.kv, OF_ROOMS.resources);
});

Deno.test("unique() refuses a value that another item has, whoever it belongs to, until that item gives it up", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.invite(office.ann, "a@b"));
  const second = await idIn(await office.invite(office.ben, "c@d"));
  const patch = (email: string) =>
    office.fetch(`PATCH /v1/guests/${second}`, { key: office.ben, json: { email } });

  const refused = await office.invite(office.ben, "a@b");
  assertEquals((await refused.clone().json()).message.includes("email"), true);
  await assertError(refused, 409, "guest_exists");
  await assertError(await patch("a@b"), 409, "guest_exists");
  await office.fetch(`PATCH /v1/guests/${id}`, { key: office.ann, json: { email: "e@f" } });
  assertEquals((await patch("a@b")).status, 200);
  await office.operate(`DELETE /operator/v1/guests/${id}`);
  assertEquals((await patch("e@f")).status, 200);
  assertEquals((await office.ownRows()).map(([, value]) => value), [second]);
});

Deno.test("a slot lets one confirmed booking have a room on a day, and a move reads exactly five rows", async () => {
  await using office = await Office.open();
  await office.addRooms(1);
  const confirmed = { state: "confirmed" } as const;
  const id = await idIn(await office.book(office.ann, confirmed));
  const patch = (json: object) => office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json });

  await assertError(await office.book(office.ben, confirmed), 409, "slot_taken");
  const planned = await office.book(office.ben);
  const confirming = await office.fetch(`PATCH /v1/bookings/${await idIn(planned)}`, {
    key: office.ben,
    json: confirmed,
  });
  await assertError(confirming, 409, "slot_taken");
  assertEquals((await patch({ roomId: 2, ...DAY })).status, 200);
  assertEquals((await office.book(office.ben, confirmed)).status, 201);
  assertEquals(
    (await office.ownRows()).filter(([key]) => key.includes("slot")),
    [["bookings,slot,1,2027-01-11", 3], ["bookings,slot,2,2027-01-12", id]],
  );
  const before = { id, ...REVIEW, ...confirmed };
  const move = { id, before, after: { ...before, roomId: 2, ...DAY }, now: 0 };
  assertEquals(new Hooks(BOOKINGS, OF_ROOMS.resources).keysOf(move).size, 5);
  await patch({ state: "planned" });
  assertEquals((await office.ownRows()).filter(([key]) => key.includes("slot")).length, 1);
});

Deno.test("a creation that is repeated with its Idempotency-Key passes by rules and hooks", async () => {
  await using office = await Office.open();
  const once = { headers: { "idempotency-key": "once" } };
  const confirmed = { state: "confirmed" } as const;

  const first = await (await office.book(office.ann, confirmed, once)).json();
  await office.book(office.ann, { ...confirmed, ...DAY });
  const again = await office.book(office.ann, confirmed, once);

  assertEquals([again.headers.get("idempotency-replayed"), await again.json()], ["true", first]);
});

Deno.test("the document lists the errors of rules and hooks with the operations that they refuse", async () => {
  await using office = await Office.open();
  const codesOf = (id: string) =>
    office.app.operations.find((operation) => operation.id === id)?.errors.map(({ code }) => code) ?? [];
  const own = ["slot_taken", "guest_gone", "guest_exists", "booking_in_use", "room_in_use"];
  const listed = (id: string) => codesOf(id).filter((code) => own.includes(code));

  for (const prefix of ["", "Owned"]) {
    assertEquals(listed(`create${prefix}Booking`), ["slot_taken"]);
    assertEquals(listed(`update${prefix}Guest`), ["guest_gone", "guest_exists"]);
    assertEquals(listed(`delete${prefix}Booking`), ["booking_in_use"]);
  }
  assertEquals(listed("deleteOwnedRoom"), ["room_in_use"]);
  assertEquals(listed("deleteGuest"), []);
});

/** An office whose bookings have this hook. */
function withHook(...extend: (Hook | HookOf)[]): Promise<Office> {
  const bookings = resource({ ...BOOKING_DECLARATION, extend });
  return Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, bookings] } });
}

const NOTHING: Pick<Hook, "name" | "apply"> = { name: "mine", apply() {} };

Deno.test.each<[reason: string, hook: Hook]>([
  ["The hooks of bookings read 6 rows for one change of an item: at most 5 are possible", {
    ...NOTHING,
    keys: () => [1, 2, 3, 4, 5, 6].map((part) => ["own", "bookings", part]),
  }],
  ['The hook mine of bookings writes a row whose key does not begin with "own" and "bookings"', {
    ...NOTHING,
    keys: () => [],
    apply: (_rows, write) => write.set(["accounts", "me"], encodeJson({})),
  }],
  ['The hook mine of bookings writes a row whose key does not begin with "own" and "bookings"', {
    ...NOTHING,
    keys: () => [],
    apply: (_rows, write) => write.set(["own", "rooms", 1], encodeJson({})),
  }],
  ["The hook mine of bookings gets a row that its keys do not name", {
    ...NOTHING,
    keys: () => [],
    apply: (rows) => void rows.get(["own", "bookings", 1]),
  }],
])(
  "a hook that breaks its rules is a 500 that stores nothing and is named in the log: %s",
  async (reason, hook) => {
    await using office = await withHook(hook);
    office.expectsErrors = true;

    await assertError(await office.book(office.ann), 500, "internal_error");

    assertEquals(office.errors.map(({ reason }) => reason), [reason]);
    assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ann })).json(), []);
  },
);

Deno.test("a hook gets the account of the item, whoever changes it, and the time of arrival", async () => {
  const seen: unknown[] = [];
  await using office = await withHook({
    ...NOTHING,
    keys: () => [["own", "bookings", "all"]],
    apply(_rows, _write, { id, before, after, accountId, now }) {
      seen.push([id, before?.title, after?.title, accountId, now]);
    },
  });
  const accountId = await office.idOf(office.ann);

  await office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, accountId } });
  office.now += 5;
  await office.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { title: "Review" } });
  await office.operate("PATCH /operator/v1/bookings/1", { json: { title: "Demo" } });
  await office.operate("DELETE /operator/v1/bookings/1");

  assertEquals(seen, [
    [1, undefined, "Review", accountId, office.now - 5],
    [1, "Review", "Demo", accountId, office.now],
    [1, "Demo", undefined, accountId, office.now],
  ]);
});
