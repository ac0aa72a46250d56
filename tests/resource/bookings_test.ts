import { assertEquals } from "@std/assert";
import { encodeJson, encodeText } from "../../src/engine/mod.ts";
import type { Hook } from "../../src/resource/mod.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, nextTarget } from "../support/client.ts";
import type { Commit } from "../support/fake_kv.ts";
import { BOOKINGS, idIn, OF_ROOMS, Office, REVIEW, ROOMS } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";

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

Deno.test("operations of a collection that is not lenient refuse unknown names, even if the client prefers otherwise", async () => {
  await using office = await Office.open();
  const headers = { prefer: "handling=lenient" };

  for (
    const [target, json] of [["GET /v1/rooms?x=1"], ["GET /v1/rooms/1?x=1"], ["POST /v1/bookings", {
      x: 1,
    }]] as const
  ) {
    const response = await office.fetch(target, { key: office.ann, json, headers });
    await assertError(response, 400, "invalid_request", /The (query parameter|field) x is unknown/);
  }
});

Deno.test("operators add items that only their account can read for an open account, once for each Idempotency-Key", async () => {
  await using office = await Office.open();
  const [accountId, otherId] = [await office.idOf(office.ann), await office.idOf(office.ben)];
  const add = (owner: object, headers = { "idempotency-key": "once" }) =>
    office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, ...owner }, headers });

  const [first, again] = [await add({ accountId }), await add({ accountId })];

  for (const response of [first, again]) assertEquals(await response.json(), { id: 1, ...REVIEW, accountId });
  assertEquals([first, again].map((one) => one.headers.get("idempotency-replayed")), [null, "true"]);
  const changed = [["roomId", "title", "startsAt", "endsAt", "state"], undefined];
  assertEquals(office.operations.slice(-2).map((line) => line.changed), changed);
  await assertError(await add({ accountId: otherId }), 422, "idempotency_key_reused");
  await assertError(await add({}), 400, "invalid_request");
  const list = async (key: string) => await (await office.fetch("GET /v1/bookings", { key })).json();
  assertEquals([await list(office.ann), await list(office.ben)], [[{ id: 1, ...REVIEW }], []]);
  await office.operate(`POST /operator/v1/accounts/${accountId}/close`);
  await assertError(await add({ accountId }, { "idempotency-key": "later" }), 404, "account_not_found");
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
  // That the booking is referred to now tells nobody else that it is there.
  await assertError(await office.invite(office.ben, "b@c", { bookingId: id }), 400, "invalid_request");
  await assertError(await office.book(office.ann, { roomId: 99 }), 400, "invalid_request");
});

/** The code of an error, and how many items it says refer to another. */
async function referencesIn(response: Response): Promise<[code: string, references?: number]> {
  const { code, references } = await response.json();
  return [code, references];
}

Deno.test("exists() keeps an item while others refer to it, and tells operators how many do", async () => {
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

  assertEquals(await referencesIn(await remove(1)), ["room_in_use", 2]);
  assertEquals(await counts(), [2, undefined]);
  await patch(`/v1/bookings/${id}`, { roomId: 2 });
  await patch(`/v1/bookings/${id}`, { title: "Same room" });
  assertEquals(await counts(), [1, 1]);
  await office.operate(`DELETE /operator/v1/bookings/${other}`);
  assertEquals((await remove(1)).status, 204);
  assertEquals(await referencesIn(await remove(2)), ["room_in_use", 1]);
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

Deno.test("a creation that is repeated with its Idempotency-Key passes by rules and hooks", async () => {
  await using office = await Office.open();
  const once = { headers: { "idempotency-key": "once" } };

  const first = await (await office.book(office.ann, CONFIRMED, once)).json();
  const again = await office.book(office.ann, CONFIRMED, once);

  assertEquals([again.headers.get("idempotency-replayed"), await again.json()], ["true", first]);
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
  [
    "gets more than 2 rows: say in rows how many it gets at most",
    (rows, write) => {
      for (const id of [1, 2]) rows.get(["items", "rooms", id]);
      write.set(["own", "bookings", 1], encodeJson({}));
    },
  ],
])("a hook that %s is a 500 that stores nothing and is named in the log", async (fault, apply) => {
  await using office = await withHook({ apply });
  office.expectsErrors = true;

  await assertError(await office.book(office.ann), 500, "internal_error");

  assertEquals(office.errors.map(({ reason }) => reason), [`The hook mine of bookings ${fault}`]);
  assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ann })).json(), []);
});

Deno.test("a hook gets the account of the item, whoever changes it, and the time of arrival", async () => {
  const seen: unknown[] = [];
  await using office = await withHook({
    apply(_rows, _write, { id, before, after, accountId, now }) {
      // A run that had no id yet does not count.
      if (id < Number.MAX_SAFE_INTEGER) seen.push([id, before?.title, after?.title, accountId, now]);
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

Deno.test("a change of a reference finds all its rows in its first run, so they are read at once", async () => {
  await using office = await Office.open();
  await office.addRooms(1);
  await office.book(office.ann, CONFIRMED);
  const reads: string[][] = [];
  const read = (keys: readonly Deno.KvKey[]) => void reads.push(keys.map(([table]) => String(table)));
  await using other = office.beside({ disturbance: { read } });

  await other.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { roomId: 2 } });

  assertEquals(reads.filter((tables) => tables.includes("own")).map((tables) => tables.length), [6]);
});

Deno.test("a change that another one precedes reads the rows of hooks again, so references stay counted", async () => {
  await using office = await Office.open();
  await office.addRooms(2);
  await office.book(office.ann, CONFIRMED);
  const move = (process: Office, roomId: number) =>
    process.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { roomId } });
  let isMoved = false;
  const commit = async ({ apply, keys }: Commit) => {
    if (!isMoved && keys.some(([table]) => table === "items")) {
      isMoved = true;
      await move(office, 2);
    }
    return await apply();
  };
  await using other = office.beside({ disturbance: { commit } });

  assertEquals((await move(other, 3)).status, 200);

  assertEquals(await office.ownRows(), [
    ["bookings,exists(rooms, roomId),3", 1],
    ["bookings,slot,3,2027-01-11", 1],
  ]);
});
