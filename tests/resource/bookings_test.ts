import { assert, assertEquals } from "@std/assert";
import { hash } from "node:crypto";
import { encodeJson, encodeText } from "../../src/engine/mod.ts";
import { Hooks } from "../../src/resource/hooks.ts";
import type { Hook } from "../../src/resource/mod.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, nextTarget, upTo } from "../support/client.ts";
import type { Disturbance } from "../support/fake_kv.ts";
import { BLUE, BOOKINGS, idIn, OF_ROOMS, Office, REVIEW, ROOMS } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { seededRandom } from "../support/time.ts";

const NEXT_DAY = { startsAt: "2027-01-12T09:00:00Z", endsAt: "2027-01-12T10:00:00Z" };
const CONFIRMED = { state: "confirmed" } as const;

/** All that a client sees of a response, except what differs for every request. */
async function bytesOf(response: Response): Promise<unknown> {
  const headers = [...response.headers].filter(([name]) => !/^x-request-id|ratelimit/.test(name));
  return [response.status, headers, await response.text()];
}

Deno.test.each<[target: string, request: HarnessRequest]>([
  ["GET", {}],
  ["HEAD", {}],
  ["GET", { headers: { "if-none-match": "*" } }],
  ["PATCH", { json: { title: "Mine" } }],
  ["PATCH", { json: {} }],
  ["PATCH", { json: { title: "Mine" }, headers: { "if-match": '"other"' } }],
  ["DELETE", {}],
  ["DELETE", { headers: { "if-match": '"other"' } }],
  ["DELETE", { headers: { "if-none-match": "*" } }],
])("%s of another account's booking gets the bytes of an id that never was: %j", async (method, request) => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const ask = async (key: string, id: number) =>
    await bytesOf(await office.fetch(`${method} /v1/bookings/${id}`, { key, ...request }));

  const missing = await ask(office.ben, 99);
  assertEquals(await ask(office.ben, id), missing);
  await office.fetch(`GET /v1/bookings/${id}`, { key: office.ann }); // It is in memory from now on.
  assertEquals(await ask(office.ben, id), missing);

  assertEquals((await office.fetch(`GET /v1/bookings/${id}`, { key: office.ann })).status, 200);
});

Deno.test("a booking that this release cannot decode is one that never was for another account", async () => {
  await using office = await Office.open();
  const row = JSON.stringify({ id: 1, ...REVIEW, state: "dropped" });
  await office.kv.set(["items", "bookings", 1], encodeText(`${row}\n${await office.idOf(office.ann)}`));

  for (const request of [{ method: "GET" }, { method: "PATCH", json: {} }, { method: "DELETE" }]) {
    const refused = await office.fetch(`${request.method} /v1/bookings/1`, { key: office.ben, ...request });
    await assertError(refused, 404, "booking_not_found");
  }
});

Deno.test("two accounts that ask the same URLs get their own bookings, from every cache and from the store", async () => {
  await using office = await Office.open();
  const keys = [office.ann, office.ben];
  const own = new Map<string, number[]>(keys.map((key) => [key, []]));
  const book = async (key: string) => own.get(key)?.push(await idIn(await office.book(key, { title: key })));
  /** Ids of all pages of a list. */
  const idsAt = async (key: string, target: string): Promise<number[]> => {
    const page = await office.fetch(target, { key });
    const bookings: { id: number; title: string }[] = await page.json();
    assertEquals(bookings.filter(({ title }) => title !== key), []);
    const next = nextTarget(page);
    return [...bookings.map(({ id }) => id), ...next ? await idsAt(key, next) : []];
  };
  const isSeen = async (key: string, id: number) =>
    (await office.fetch(`GET /v1/bookings/${id}`, { key })).status === 200;
  /** Asks with both keys, twice at once and then in turn. */
  const assertOwn = async <Result>(
    ask: (key: string) => Promise<Result>,
    expected: (key: string) => Result | undefined,
  ) => {
    const asked = [...keys, ...keys];
    assertEquals(await Promise.all(asked.map(ask)), asked.map(expected));
    for (const key of asked) assertEquals(await ask(key), expected(key));
  };
  for (const key of [...keys, ...keys, ...keys]) await book(key);

  for (const change of [() => {}, () => book(office.ben), () => book(office.ben)]) {
    await change();
    for (const query of ["", "?state=planned", "?limit=2", "?limit=2&state=planned"]) {
      await assertOwn((key) => idsAt(key, `GET /v1/bookings${query}`), (key) => own.get(key));
    }
    for (const [owner, ids] of own) {
      for (const id of ids) await assertOwn((key) => isSeen(key, id), (key) => key === owner);
    }
  }
  await assertConsistent(office.kv, [ROOMS, BOOKINGS]);
});

Deno.test("clients have no operation that only operators may call", async () => {
  await using office = await Office.open();

  for (const target of ["POST /v1/rooms", "PATCH /v1/rooms/1", "DELETE /v1/rooms/1"]) {
    await assertError(await office.fetch(target, { key: office.ann, json: {} }), 405, "method_not_allowed");
  }
  const { paths } = await (await office.fetch("GET /v1/openapi.json")).json();

  assertEquals((await office.fetch("GET /v1/rooms/1", { key: office.ann })).status, 200);
  assertEquals([paths["/rooms"], paths["/rooms/{roomId}"]].map(Object.keys), [["get"], ["get"]]);
});

Deno.test("operators add items for an account, or for none if everyone may read them", async () => {
  await using office = await Office.open();
  const accountId = await office.idOf(office.ann);
  const add = (name: string, json: object, headers = {}) =>
    office.operate(`POST /operator/v1/${name}`, { json, headers });

  const [room, own] = [await add("rooms", BLUE), await add("rooms", { ...BLUE, accountId })];
  assertEquals([room.status, await room.json()], [201, { id: 2, ...BLUE }]);
  assertEquals(await own.json(), { id: 3, ...BLUE, accountId });
  await assertError(await add("bookings", REVIEW), 400, "invalid_request");
  const unknown = await add("bookings", { ...REVIEW, accountId: "acct_9" });
  await assertError(unknown, 404, "account_not_found");

  const headers = { "idempotency-key": "once" };
  const first = await add("bookings", { ...REVIEW, accountId }, headers);
  const again = await add("bookings", { ...REVIEW, accountId }, headers);
  const other = await add("bookings", { ...REVIEW, accountId: await office.idOf(office.ben) }, headers);

  const booking = { id: 1, ...REVIEW, accountId };
  assertEquals([first.status, await first.json(), await again.json()], [201, booking, booking]);
  assertEquals([first, again].map((one) => one.headers.get("idempotency-replayed")), [null, "true"]);
  await assertError(other, 422, "idempotency_key_reused");
  const seen = await (await office.fetch("GET /v1/bookings", { key: office.ann })).json();
  assertEquals(seen, [{ id: 1, ...REVIEW }]);
  assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ben })).json(), []);

  await office.operate(`POST /operator/v1/accounts/${accountId}/close`);
  await assertError(await add("bookings", { ...REVIEW, accountId }), 404, "account_not_found");
  assertEquals(office.operations.flatMap(({ ids }) => ids).slice(0, 3), ["1", "2", "3"]);
});

Deno.test("a rule refuses creations and changes that break it, by clients and by operators", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const accountId = await office.idOf(office.ann);
  const json = { endsAt: REVIEW.startsAt };

  const refused = [
    await office.book(office.ann, json),
    await office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json }),
    await office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, ...json, accountId } }),
    await office.operate(`PATCH /operator/v1/bookings/${id}`, { json }),
  ];

  for (const response of refused) {
    await assertError(
      response,
      400,
      "invalid_request",
      /^The field endsAt must be after startsAt, on the same/,
    );
  }
  const list = await office.fetch("GET /v1/bookings", { key: office.ann });
  assertEquals(await list.json(), [{ id, ...REVIEW }]);
});

Deno.test("a rule can forbid a transition, with an error of its own", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const patch = (json: object) => office.fetch("PATCH /v1/bookings/1", { key: office.ann, json });

  assertEquals((await patch({ state: "cancelled" })).status, 200);
  await assertError(await patch({ state: "planned" }), 409, "booking_cancelled");
  assertEquals((await patch({ state: "cancelled", title: "Over" })).status, 200);
});

Deno.test("an item that broke a rule before stays changeable, but breaks no other, and none again", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const old = JSON.stringify({ id: 1, ...REVIEW, endsAt: REVIEW.startsAt, state: "cancelled" });
  await office.kv.set([...BOOKINGS.rows.items, 1], encodeText(`${old}\n${await office.idOf(office.ann)}`));
  const patch = (json: object) => office.fetch("PATCH /v1/bookings/1", { key: office.ann, json });

  for (const json of [{ title: "Old" }, {}]) assertEquals((await patch(json)).status, 200);
  await assertError(await patch({ state: "planned" }), 409, "booking_cancelled");
  assertEquals((await patch({ endsAt: REVIEW.endsAt })).status, 200);
  await assertError(await patch({ endsAt: REVIEW.startsAt }), 400, "invalid_request");
});

Deno.test("exists() refuses an id of no item, and one that the account may not read, in the same bytes", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const bodies = new Set<string>();

  for (const bookingId of [id, 99, 0, -1, 2n ** 60n]) {
    const body = `{"email":"a@b","bookingId":${bookingId}}`;
    const headers = { "content-type": "application/json" };
    const response = await office.fetch("POST /v1/guests", { key: office.ben, body, headers });
    bodies.add(await response.clone().text());
    await assertError(
      response,
      400,
      "invalid_request",
      /^The field bookingId must be the id of a booking\.$/,
    );
  }

  assertEquals(bodies.size, 1);
  assertEquals((await office.invite(office.ann, "a@b", { bookingId: id })).status, 201);
  await assertError(await office.book(office.ann, { roomId: 99 }), 400, "invalid_request");
});

Deno.test("exists() keeps an item while others refer to it, whoever deletes it", async () => {
  await using office = await Office.open();
  await office.addRooms(1);
  const id = await idIn(await office.book(office.ann));
  const other = await idIn(await office.book(office.ben));
  const remove = (room: number) => office.operate(`DELETE /operator/v1/rooms/${room}`);
  const patch = (target: string, json: object) => office.fetch(`PATCH ${target}`, { key: office.ann, json });
  const counts = async () => {
    const rows = new Map(await office.ownRows());
    return [1, 2].map((room) => rows.get(`bookings,exists(rooms, roomId),${room}`));
  };

  await assertError(await remove(1), 409, "room_in_use");
  assertEquals(await counts(), [2, undefined]);
  await patch(`/v1/bookings/${id}`, { roomId: 2 });
  await patch(`/v1/bookings/${id}`, { title: "Same room" });
  assertEquals(await counts(), [1, 1]);
  await office.operate(`DELETE /operator/v1/bookings/${other}`);
  assertEquals((await remove(1)).status, 204);
  await assertError(await remove(2), 409, "room_in_use");
  await office.invite(office.ann, "a@b", { bookingId: id });
  const refused = await office.fetch(`DELETE /v1/bookings/${id}`, { key: office.ann });
  await assertError(refused, 409, "booking_in_use");
  await patch("/v1/guests/1", { bookingId: null });
  assertEquals((await office.fetch(`DELETE /v1/bookings/${id}`, { key: office.ann })).status, 204);
  assertEquals((await remove(2)).status, 204);
  await assertConsistent(office.kv, OF_ROOMS.resources);
});

Deno.test("unique() refuses a value that another item has, whoever it belongs to, until that item gives it up", async () => {
  await using office = await Office.open();
  await office.invite(office.ann, "a@b");
  const second = await idIn(await office.invite(office.ben, "c@d"));
  const patch = (email: string) =>
    office.fetch(`PATCH /v1/guests/${second}`, { key: office.ben, json: { email } });

  await assertError(await office.invite(office.ben, "a@b"), 409, "guest_exists", /email/);
  await assertError(await patch("a@b"), 409, "guest_exists");
  await office.fetch("PATCH /v1/guests/1", { key: office.ann, json: { email: "e@f" } });
  assertEquals((await patch("a@b")).status, 200);
  await office.operate("DELETE /operator/v1/guests/1");
  assertEquals((await patch("e@f")).status, 200);
  assertEquals((await office.ownRows()).map(([, value]) => value), [second]);
});

Deno.test("a slot lets one confirmed booking have a room on a day, and a move reads exactly five rows", async () => {
  await using office = await Office.open();
  await office.addRooms(1);
  const id = await idIn(await office.book(office.ann, CONFIRMED));
  const patch = (json: object, key = office.ann, booking = id) =>
    office.fetch(`PATCH /v1/bookings/${booking}`, { key, json });
  const slots = async () => (await office.ownRows()).filter(([key]) => key.includes("slot"));

  await assertError(await office.book(office.ben, CONFIRMED), 409, "room_taken");
  const planned = await idIn(await office.book(office.ben));
  await assertError(await patch(CONFIRMED, office.ben, planned), 409, "room_taken");
  assertEquals((await patch({ roomId: 2, ...NEXT_DAY })).status, 200);
  assertEquals((await office.book(office.ben, CONFIRMED)).status, 201);
  assertEquals(await slots(), [["bookings,slot,1,2027-01-11", 3], ["bookings,slot,2,2027-01-12", id]]);
  const before = { id, ...REVIEW, ...CONFIRMED };
  const move = { id, before, after: { ...before, roomId: 2, ...NEXT_DAY }, now: 0 };
  assertEquals(new Hooks(BOOKINGS, OF_ROOMS.resources).keysOf(move).size, 5);
  await patch({ state: "planned" });
  assertEquals((await slots()).length, 1);
});

Deno.test("a creation that is repeated with its Idempotency-Key passes by rules and hooks", async () => {
  await using office = await Office.open();
  const once = { headers: { "idempotency-key": "once" } };

  const first = await (await office.book(office.ann, CONFIRMED, once)).json();
  const again = await office.book(office.ann, CONFIRMED, once);

  assertEquals([again.headers.get("idempotency-replayed"), await again.json()], ["true", first]);
});

Deno.test("the document lists the errors of rules and hooks with the operations that they refuse", async () => {
  await using office = await Office.open();
  const codes = (id: string) =>
    office.app.operations.find((operation) => operation.id === id)?.errors.map(({ code }) => code)
      .filter((code) => /^(room_taken|booking_cancelled|guest_exists|\w+_in_use)$/.test(code));

  for (const owned of ["", "Owned"]) {
    assertEquals(codes(`create${owned}Booking`), ["booking_cancelled", "room_taken"]);
    assertEquals(codes(`update${owned}Guest`), ["guest_exists"]);
    assertEquals(codes(`delete${owned}Booking`), ["booking_in_use"]);
  }
  assertEquals([codes("deleteOwnedRoom"), codes("deleteGuest")], [["room_in_use"], []]);
});

/** An office whose bookings have only this hook. */
function withHook(hook: Omit<Hook, "name">): Promise<Office> {
  const bookings = { ...BOOKINGS, extend: [{ name: "mine", ...hook }] };
  return Office.open({ catalogue: { ...OF_ROOMS, resources: [ROOMS, bookings] } });
}

const WRITES = 'writes a row whose key does not begin with "own" and "bookings"';

Deno.test.each<[fault: string, apply: Hook["apply"]]>([
  [WRITES, (_rows, write) => write.set(["accounts", "me"], encodeJson({}))],
  [WRITES, (_rows, write) => write.delete(["own", "rooms", 1])],
  ["gets a row that its keys do not name", (rows) => void rows.get(["own", "bookings", 1])],
])("a hook that %s is a 500 that stores nothing and is named in the log", async (fault, apply) => {
  await using office = await withHook({ keys: () => [], apply });
  office.expectsErrors = true;

  await assertError(await office.book(office.ann), 500, "internal_error");

  assertEquals(office.errors.map(({ reason }) => reason), [`The hook mine of bookings ${fault}`]);
  assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ann })).json(), []);
});

Deno.test("a hook gets the account of the item, whoever changes it, and the time of arrival", async () => {
  const seen: unknown[] = [];
  await using office = await withHook({
    keys: () => [["own", "bookings", "all"]],
    apply(_rows, _write, { id, before, after, accountId, now }) {
      seen.push([id, before?.title, after?.title, accountId, now]);
    },
  });
  const accountId = await office.idOf(office.ann);

  await office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, accountId } });
  office.now += 5;
  await office.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { title: "Talk" } });
  await office.operate("PATCH /operator/v1/bookings/1", { json: { title: "Demo" } });
  await office.operate("DELETE /operator/v1/bookings/1");

  assertEquals(seen, [
    [1, undefined, "Review", accountId, office.now - 5],
    [1, "Review", "Talk", accountId, office.now],
    [1, "Talk", "Demo", accountId, office.now],
    [1, "Demo", undefined, accountId, office.now],
  ]);
});

/** Lets random operations on the KV wait for some turns of the event loop, so that those of two processes interleave. */
function interleaving(random: () => number): Disturbance {
  const wait = async () => {
    for (let turns = Math.floor(random() * 6); turns > 0; turns--) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { read: wait, commit: async ({ apply }) => (await wait(), await apply()) };
}

/** Asserts that the rows of hooks are those that follow from the items, and that all references are to items. */
async function assertExact(office: Office): Promise<void> {
  const itemsOf = async (name: string) => {
    const rows = await Array.fromAsync(office.kv.list<Uint8Array>({ prefix: ["items", name] }));
    return rows.map(({ value }) => JSON.parse(new TextDecoder().decode(value).split("\n")[0] ?? ""));
  };
  const [rooms = [], bookings = [], guests = []] = await Promise.all(
    ["rooms", "bookings", "guests"].map(itemsOf),
  );
  const expected = new Map<string, number>();
  const count = (key: string, other: number | undefined, to: readonly { readonly id: number }[]) => {
    if (other === undefined) return;
    assert(to.some(({ id }) => id === other), `${key} ${other} is gone`);
    expected.set(`${key},${other}`, (expected.get(`${key},${other}`) ?? 0) + 1);
  };
  const take = (key: string, id: number) => {
    assert(!expected.has(key), `${key} is there twice`);
    expected.set(key, id);
  };
  for (const { id, roomId, startsAt, state } of bookings) {
    count("bookings,exists(rooms, roomId)", roomId, rooms);
    if (state === "confirmed") take(`bookings,slot,${roomId},${startsAt.slice(0, 10)}`, id);
  }
  for (const { id, email, bookingId } of guests) {
    count("guests,exists(bookings, bookingId)", bookingId, bookings);
    take(`guests,unique(email),${hash("sha256", JSON.stringify(email))}`, id);
  }
  assertEquals(new Map(await office.ownRows()), new Map([...expected].sort()));
}

Deno.test("two clients move a booking back and forth in two processes while both rooms are deleted, and all stays exact", async () => {
  const random = seededRandom(7);
  const seen = new Set<string>();
  await using office = await Office.open({ disturbance: interleaving(random) });
  await using other = office.beside({ disturbance: interleaving(random) });
  /** Changes an item eight times, one after the other. */
  const patch = async (process: Office, key: string, path: string, change: (turn: number) => object) => {
    for (const turn of upTo(8)) {
      const { status } = await process.fetch(`PATCH /v1/${path}`, { key, json: change(turn) });
      seen.add(`PATCH ${status}`);
    }
  };
  const remove = async (process: Office, rooms: readonly number[]) => {
    for (const room of rooms) {
      seen.add(`DELETE ${(await process.operate(`DELETE /operator/v1/rooms/${room}`)).status}`);
    }
  };

  for (let round = 0; round < 6; round++) {
    const [a = 0, b = 0] = await office.addRooms(2);
    const roomAt = (turn: number) => turn % 2 ? a : b;
    const mine = await idIn(await office.book(office.ann, { roomId: a, ...CONFIRMED }));
    const theirs = await idIn(await office.book(office.ben, { roomId: b }));
    const guest = await idIn(await office.invite(office.ann, `${round}`));
    const second = await idIn(await office.invite(office.ben, `${round}b`));
    const email = (turn: number) => ({ email: `${turn % 2} ${round}` });
    await Promise.all([
      patch(office, office.ann, `bookings/${mine}`, (turn) => ({ roomId: roomAt(turn) })),
      patch(other, office.ann, `bookings/${mine}`, (turn) => ({ roomId: roomAt(turn + 1) })),
      patch(other, office.ben, `bookings/${theirs}`, (turn) => ({
        state: turn % 2 ? "planned" : "confirmed",
        roomId: roomAt(turn + 1),
      })),
      remove(office, [a, b, a, b]),
      remove(other, [b, a, b, a]),
      patch(office, office.ann, `guests/${guest}`, email),
      patch(other, office.ben, `guests/${second}`, email),
      other.fetch(`DELETE /v1/bookings/${theirs}`, { key: office.ben }),
    ]);
    await assertExact(office);
  }

  const needed = ["DELETE 204", "DELETE 409", "PATCH 200", "PATCH 400", "PATCH 409"];
  assertEquals([...seen].filter((outcome) => !/404$/.test(outcome)).sort(), needed);
});
