import { assertEquals } from "@std/assert";
import { exists, resource } from "../../src/resource/mod.ts";
import { int64 } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import type { Disturbance } from "../support/fake_kv.ts";
import { BLUE, BOOKINGS, idIn, OF_ROOMS, Office } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";

const MINUTE = 60_000;

/** Closes an account, and returns what deletes it. */
async function closing(office: Office, key: string): Promise<() => Promise<Response>> {
  const id = await office.idOf(key);
  await office.operate(`POST /operator/v1/accounts/${id}/close`);
  return () => office.operate(`DELETE /operator/v1/accounts/${id}`);
}

/** The numbers of rows of items, without those of rooms, and of hooks. */
async function countRows(office: Office): Promise<readonly [items: number, own: number]> {
  const items = await Array.fromAsync(office.kv.list({ prefix: ["items"] }));
  return [items.filter(({ key }) => key[1] !== "rooms").length, (await office.ownRows()).length];
}

Deno.test("deleteAccount() waits a minute after the account was closed, so that its last requests have ended", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const remove = await closing(office, office.ann);

  for (const [now, seconds] of [[0, "60"], [1, "60"], [MINUTE - 1, "1"]] as const) {
    const at = office.now;
    office.now += now;
    const refused = await remove();
    assertEquals(refused.headers.get("retry-after"), seconds);
    await assertError(refused, 409, "account_open");
    office.now = at;
  }
  assertEquals(await countRows(office), [1, 1]);
  office.now += MINUTE;

  assertEquals((await remove()).status, 204);
  assertEquals(await countRows(office), [0, 0]);
});

Deno.test("deleteAccount() deletes nothing while a part refuses", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  await office.fetch("POST /v1/messages", { key: office.ann, json: { message: "Hello" } });
  const remove = await closing(office, office.ann);
  office.now += MINUTE;

  await assertError(await remove(), 409, "messages_waiting");

  assertEquals(await countRows(office), [1, 1]);
});

Deno.test("deleteAccount() deletes what only the account can read, and frees what that held", async () => {
  await using office = await Office.open();
  const accountId = await office.idOf(office.ann);
  const json = { ...BLUE, accountId };
  const room = await idIn(await office.operate("POST /operator/v1/rooms", { json }));
  const confirmed = { state: "confirmed" } as const;
  const bookingId = await idIn(await office.book(office.ann, { ...confirmed, roomId: room }));
  for (let count = 0; count < 250; count++) await office.invite(office.ann, `${count}@b`, { bookingId });
  await office.invite(office.ben, "c@d");
  const remove = await closing(office, office.ann);
  office.now += MINUTE;

  assertEquals((await remove()).status, 204);

  assertEquals(await countRows(office), [1, 1]);
  assertEquals((await office.book(office.ben, { ...confirmed, roomId: room })).status, 201);
  assertEquals((await office.invite(office.ben, "0@b")).status, 201);
  await assertConsistent(office.kv, OF_ROOMS.resources.filter(({ name }) => name !== "rooms"));
});

Deno.test("deleteAccount() can be repeated after a failure in between", async () => {
  let left = Infinity;
  const disturbance: Disturbance = {
    commit: ({ apply, keys }) => {
      const changesGuests = keys.some(([table, name]) => table === "versions" && name === "guests");
      return changesGuests && left-- <= 0 ? Promise.reject(new Error("disk I/O error")) : apply();
    },
  };
  await using office = await Office.open({ disturbance });
  office.expectsErrors = true;
  const bookingId = await idIn(await office.book(office.ann));
  for (let count = 0; count < 150; count++) await office.invite(office.ann, `${count}@b`, { bookingId });
  const remove = await closing(office, office.ann);
  office.now += MINUTE;

  left = 1;
  await assertError(await remove(), 503, "store_unavailable");
  left = Infinity;
  const [items] = await countRows(office);
  assertEquals([items > 1, items < 151], [true, true]);
  assertEquals((await remove()).status, 204);

  assertEquals(await countRows(office), [0, 0]);
});

Deno.test("deleteAccount() refuses while an item that stays refers to one that would go, and the account stays closed", async () => {
  const EVENTS = resource({
    name: "events",
    item: "Event",
    tag: { name: "Events", description: "All events" },
    noun: ["an event", "events"],
    fields: { bookingId: int64() },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    extend: [exists(BOOKINGS, "bookingId")],
    examples: { item: { bookingId: 1 }, change: {} },
  });
  await using office = await Office.open({
    catalogue: { ...OF_ROOMS, resources: [...OF_ROOMS.resources, EVENTS] },
  });
  const bookingId = await idIn(await office.book(office.ann));
  const id = await idIn(
    await office.fetch("POST /v1/events", { key: office.ann, json: { bookingId } }),
  );
  const remove = await closing(office, office.ann);
  office.now += MINUTE;

  await assertError(await remove(), 409, "booking_in_use");
  assertEquals((await office.fetch("GET /v1/account", { key: office.ann })).status, 401);
  await office.operate(`DELETE /operator/v1/events/${id}`);

  assertEquals((await remove()).status, 204);
});

Deno.test("an unused account that signed up stays if an operator has added an item for it", async () => {
  await using office = await Office.open();
  const made = await (await office.fetch("POST /v1/accounts", { json: { name: "me" } })).json();
  const json = { email: "a@b", accountId: made.id };
  await office.operate("POST /operator/v1/guests", { json });

  for (const sweep of office.app.sweeps) await sweep(office.now + 31 * 24 * 60 * MINUTE);

  const list = await office.fetch("GET /v1/guests", { key: made.apiKey });
  assertEquals((await list.json()).length, 1);
});
