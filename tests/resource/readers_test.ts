import { assertEquals } from "@std/assert";
import { encodeText } from "../../src/engine/mod.ts";
import type { HarnessRequest } from "../support/client.ts";
import { assertError } from "../support/assertions.ts";
import { BOOKINGS, idIn, Office, REVIEW, ROOMS } from "../support/office.ts";
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

  for (const method of ["GET", "PATCH", "DELETE"] as const) {
    const json = method === "PATCH" ? { json: {} } : {};
    const refused = await office.fetch(`${method} /v1/bookings/1`, { key: office.ben, ...json });
    await assertError(refused, 404, "booking_not_found");
  }
});

Deno.test("two accounts that ask the same URLs get their own bookings, from every cache and from the store", async () => {
  await using office = await Office.open();
  const own = new Map<string, number[]>([[office.ann, []], [office.ben, []]]);
  for (let count = 0; count < 3; count++) {
    for (const [key, ids] of own) ids.push(await idIn(await office.book(key, { title: key })));
  }
  const urls = (["", "?state=planned", "?limit=2", "?limit=2&state=planned"] as const).map((query) =>
    `GET /v1/bookings${query}`
  );
  const ask = async (key: string, target: string): Promise<string> => {
    const response = await office.fetch(target, { key });
    const some = (await response.json()).map(({ id, title }: { id: number; title: string }) => {
      assertEquals(title, key);
      return id;
    });
    const [, next] = /\/v1\/bookings([^>]*)>/.exec(response.headers.get("link") ?? "") ?? [];
    return next === undefined ? `${some}` : `${some},${await ask(key, `GET /v1/bookings${next}`)}`;
  };
  const keys = [office.ann, office.ben, office.ann, office.ben];

  for (const change of [undefined, "changed", "changed again"]) {
    if (change) {
      await office.book(office.ben, { title: office.ben }).then(idIn).then((id) =>
        own.get(office.ben)?.push(id)
      );
    }
    for (const target of urls) {
      const together = await Promise.all(keys.map((key) => ask(key, target)));
      const apart: string[] = [];
      for (const key of keys) apart.push(await ask(key, target));
      const expected = keys.map((key) => `${own.get(key)}`);
      assertEquals([together, apart], [expected, expected]);
    }
    for (const [owner, ids] of own) {
      for (const id of ids) {
        const get = async (key: string) =>
          (await office.fetch(`GET /v1/bookings/${id}`, { key })).status === (key === owner ? 200 : 404);
        const together = await Promise.all(keys.map(get));
        const apart = [await get(office.ann), await get(office.ben), await get(office.ann)];
        assertEquals([...together, ...apart].includes(false), false);
      }
    }
  }
  await assertConsistent(office.kv, [ROOMS, BOOKINGS]);
});

Deno.test("lists of an account read only its rows", async () => {
  await using office = await Office.open();
  for (let count = 0; count < 3; count++) await office.book(office.ann);
  const id = await idIn(await office.book(office.ben));
  const [ann, ben] = [await office.idOf(office.ann), await office.idOf(office.ben)];

  const keys = await Array.fromAsync(office.kv.list({ prefix: ["items_by"] }), ({ key }) => key);

  const ofAnn = [1, 2, 3].flatMap((id) => [
    ["items_by", "bookings", "", ann, id],
    ["items_by", "bookings", "state", ann, "planned", id],
  ]);
  const ofBen = [["items_by", "bookings", "", ben, id], [
    "items_by",
    "bookings",
    "state",
    ben,
    "planned",
    id,
  ]];
  const sorted = (keys: readonly Deno.KvKey[]) => keys.map((key) => JSON.stringify(key)).sort();
  assertEquals(sorted(keys), sorted([...ofAnn, ...ofBen]));
});

Deno.test("clients have no operation that only operators may call", async () => {
  await using office = await Office.open();
  const [id] = await office.addRooms(1);

  for (const target of ["POST /v1/rooms", `PATCH /v1/rooms/${id}`, `DELETE /v1/rooms/${id}`]) {
    await assertError(await office.fetch(target, { key: office.ann, json: {} }), 405, "method_not_allowed");
  }
  const { paths } = await (await office.fetch("GET /v1/openapi.json")).json();

  assertEquals((await office.fetch(`GET /v1/rooms/${id}`, { key: office.ann })).status, 200);
  assertEquals([paths["/rooms"], paths["/rooms/{roomId}"]].map(Object.keys), [["get"], ["get"]]);
});

Deno.test("operators add items for an account, or for none if everyone may read them", async () => {
  await using office = await Office.open();
  const accountId = await office.idOf(office.ann);
  const add = (name: string, json: object, headers = {}) =>
    office.operate(`POST /operator/v1/${name}`, { json, headers });

  const room = await add("rooms", { name: "Blue" });
  assertEquals([room.status, await room.json()], [201, { id: 2, name: "Blue" }]);
  const own = await add("rooms", { name: "Green", accountId });
  assertEquals(await own.json(), { id: 3, name: "Green", accountId });
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
  const { accountId: _, ...seen } = booking;
  assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ann })).json(), [seen]);
  assertEquals(await (await office.fetch("GET /v1/bookings", { key: office.ben })).json(), []);

  await office.operate(`POST /operator/v1/accounts/${accountId}/close`);
  const closed = await add("bookings", { ...REVIEW, accountId });
  await assertError(closed, 404, "account_not_found");
  assertEquals(office.operations.flatMap(({ ids }) => ids).slice(0, 3), ["1", "2", "3"]);
});
