import { assertEquals } from "@std/assert";
import { encodeText } from "../../src/engine/mod.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, nextTarget } from "../support/client.ts";
import { BLUE, BOOKINGS, idIn, Office, REVIEW, ROOMS } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";

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
