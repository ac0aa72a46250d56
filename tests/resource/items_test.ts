import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { encodeText, Store, Transactions, Versions } from "../../src/engine/mod.ts";
import { type Item, type ItemPage, Items } from "../../src/resource/mod.ts";
import { cursorSchema } from "../../src/resource/list_parameters.ts";
import { Pages } from "../../src/resource/pages.ts";
import { Invalid } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, JSON_TYPE, nextTarget, upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { type Disturbance, disturbed, onFile } from "../support/fake_kv.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { HAMMER, SUNSET, type Thing, THINGS } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

const ACCOUNT = "a";

/** Things as one process sees and changes them. */
function collectionOn(kv: Deno.Kv, disturbance: Disturbance = {}) {
  const store = new Store(onFile(disturbed(kv, disturbance), { clock: () => 0 }));
  const transactions = new Transactions(store, () => 0);
  const items = new Items(THINGS, { store, transactions, versions: new Versions(store) });
  return {
    items,
    async add(fields: Omit<Thing, "id">): Promise<unknown> {
      const acting = { by: "account", accountId: ACCOUNT, now: 0 } as const;
      return (await transactions.run(items.adding(fields, acting))).result.item;
    },
    /** Changes fields of an item, or deletes it. */
    async change(id: number, change: Partial<Thing> | null): Promise<Item | null> {
      const changed = await items.change(id, (owned) => change && owned && { ...owned.item, ...change }, {
        acting: { by: "operator", accountId: "", now: 0 },
        transact: async (transaction) => (await transactions.run(transaction)).result,
      });
      return changed?.item ?? null;
    },
  };
}

function numbered(number: number) {
  return { name: `Hammer ${number}`, weight: 7, state: "used", isSpare: true } as const;
}

function idsIn({ json }: ItemPage): number[] {
  return JSON.parse(json).map(({ id }: Item) => id);
}

/** Keys and texts of the rows of a collection, without versions, ids and markers. */
async function rowsOf(kv: Deno.Kv): Promise<Map<string, string>> {
  const entries = await Array.fromAsync(kv.list<Uint8Array>({ prefix: [] }));
  const rows = entries.filter(({ key: [table] }) => table === "items" || table === "items_by");
  return new Map(rows.map(({ key, value }) => [key.join("/"), new TextDecoder().decode(value)]));
}

Deno.test("Items.find() reads once for simultaneous calls", async () => {
  using kv = await Deno.openKv(":memory:");
  let reads = 0;
  const things = collectionOn(kv, { read: () => void reads++ });
  await Promise.all([things.add(numbered(1)), things.add(numbered(2))]);
  reads = 0;

  const found = await Promise.all([1, 2, 1, 2, 9].map((id) => things.items.find(id)));

  assertEquals(reads, 1);
  assertEquals(found.map((one) => one && JSON.parse(one.json()).id), [1, 2, 1, 2, null]);
});

Deno.test("Items.list() combines filters in either order, and reads only the rows that it returns and the next", async () => {
  using kv = await Deno.openKv(":memory:");
  const things = collectionOn(kv);
  const kinds = (["new", "used", "lost"] as const).flatMap((state) =>
    [true, false].map((isSpare) => ({ state, isSpare }))
  );
  const all = [...kinds, ...kinds].map((kind, index) => ({ id: index + 1, ...numbered(1), ...kind }));
  for (const { id: _, ...thing } of all) await things.add(thing);

  for (const filters of [{}, ...kinds, { state: "lost" }, { isSpare: true }]) {
    const isListed = (thing: object) =>
      Object.entries({ ...thing, ...filters }).join() === Object.entries(thing).join();
    const expected = all.filter(isListed).map(({ id }) => id);
    for (const sort of ["id", "-id"] as const) {
      const seen: number[] = [];
      let page: ItemPage | undefined;
      do {
        page = await things.items.list({ ...filters, limit: 1, sort, cursor: page?.next }, ACCOUNT);
        assertEquals(idsIn(page).length, 1);
        seen.push(...idsIn(page));
      } while (page.next !== undefined);
      assertEquals([filters, seen], [filters, sort === "id" ? expected : expected.toReversed()]);
    }
  }
});

Deno.test("Items.list() returns an earlier page exactly if none of its rows has changed", async () => {
  using kv = await Deno.openKv(":memory:");
  const things = collectionOn(kv);
  const { items } = things;
  const rename = (id: number) => things.change(id, { name: "Saw" });
  // All in one commit, so that their rows have the same version.
  await Promise.all([1, 2, 3, 4].map((number) => things.add(numbered(number))));
  const query = { limit: 2 };

  const first = await items.list(query, ACCOUNT);
  await things.add(numbered(5));
  assertStrictEquals(await items.list(query, ACCOUNT, first), first);
  await rename(5);
  assertStrictEquals(await items.list(query, ACCOUNT, first), first);
  await things.change(1, null);
  const second = await items.list(query, ACCOUNT, first);
  assertEquals([idsIn(second), second.next], [[2, 3], 3]);
  await rename(3);
  const third = await items.list(query, ACCOUNT, second);
  assertEquals(JSON.parse(third.json).map(({ name }: { name: string }) => name), ["Hammer 2", "Saw"]);
  await things.change(4, null);
  await things.change(5, null);
  assertEquals((await items.list(query, ACCOUNT, third)).next, undefined);
});

/** Fields that a later release stores in things. The numbers must not lose digits. */
const LATER = '"later":["shy",{"since":1.5}],"laterChip":9007199254740993,"__proto__":{"id":0}';

Deno.test("Items reads fields that were added later as their defaults, in the declared order, and keeps unknown ones", async () => {
  using kv = await Deno.openKv(":memory:");
  await kv.set(["items", "things", 1], encodeText(`{"id":1,"weight":7,"name":"Hammer",${LATER}}\na`));
  const things = collectionOn(kv);
  const shown = '{"id":1,"name":"Hammer","weight":7,"state":"new","isSpare":false}';

  const found = await things.items.find(1);
  assertEquals([found?.json(), found?.ownerId], [shown, ACCOUNT]);
  assertEquals((await things.items.list({ limit: 9 }, ACCOUNT)).json, `[${shown}]`);
  assertEquals((await things.items.listOwned(9)).items.map(({ item }) => JSON.stringify(item)), [shown]);
  const changed = await things.change(1, { state: "used" });

  assertEquals(changed, { id: 1, name: "Hammer", weight: 7, state: "used", isSpare: false });
  const text = `{"id":1,"name":"Hammer","weight":7,"state":"used","isSpare":false,${LATER}}\na`;
  assertEquals([...new Set((await rowsOf(kv)).values())], [text]);
  assertEquals(idsIn(await things.items.list({ limit: 9, state: "used", isSpare: false }, ACCOUNT)), [1]);
});

const LOST = { state: "lost" } as const;
const USED = { state: "used" } as const;

/** The pages of a workshop's things, with room for responses of this size. */
function pagesOf({ store }: Workshop, maxBytes: number): Pages {
  const transactions = new Transactions(store, () => 0);
  const items = new Items(THINGS, { store, transactions, versions: new Versions(store) });
  return new Pages(items, { maxBytes, itemHeaders: {} });
}

/** The cursor of the page after a thing. */
function cursorOf(id: number | string): string {
  return btoa(`${id}`).replaceAll("=", "");
}

Deno.test.each([["", 20], ["?limit=1", 1], ["?limit=5&state=lost", 5], ["?limit=100", 100]])(
  "list with '%s' links to a next page only if there are more than %i items",
  async (query, fits) => {
    await using workshop = await Workshop.open();
    const ids = await workshop.add(...Array(fits).fill(LOST));

    const full = await workshop.call(`GET /v1/things${query}`);
    await workshop.add(LOST, {});
    const headers = { "if-none-match": full.headers.get("etag") ?? "" };
    const first = await workshop.call(`GET /v1/things${query}`, { headers });
    const next = await workshop.call(nextTarget(first) ?? "");

    assertEquals(nextTarget(full), undefined);
    assertEquals(first.status, 200);
    assertEquals((await thingsIn(first)).map(({ id }) => id), ids);
    assertEquals((await thingsIn(next))[0]?.id, fits + 1);
  },
);

Deno.test("list follows sort and cursors in either order, and refuses a cursor of the other order", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  for (let count = 0; count < 3; count++) await workshop.add(USED, {});

  for (const [path, key] of [["/operator/v1", OPERATOR_TOKEN], ["/v1", workshop.key]] as const) {
    const call = (query: string) => workshop.fetch(`GET ${path}/things?limit=4${query}`, { key });
    const idsAt = async (query: string) => (await thingsIn(await call(query))).map(({ id }) => id);
    const cursorAt = async (query: string) =>
      nextTarget(await call(query))?.replace(/^.*(?=&cursor)/, "") ?? "";
    const [ascending, descending] = [await cursorAt("&sort=id"), await cursorAt("&sort=-id")];

    for (const sort of ["", "&sort=id"]) {
      assertEquals([await idsAt(sort), await idsAt(ascending + sort)], [[1, 2, 3, 4], [5, 6]]);
    }
    assertEquals(await idsAt("&sort=-id"), [6, 5, 4, 3]);
    for (const sort of ["", "&sort=-id"]) assertEquals(await idsAt(descending + sort), [2, 1]);
    for (
      const [wrong, right] of [[`${ascending}&sort=-id`, "id"], [`${descending}&sort=id`, "-id"]] as const
    ) {
      const message = RegExp(`^The query parameter sort must be ${right}, as in the list .* or be left out`);
      await assertError(await call(wrong), 400, "invalid_request", message);
    }
  }

  assertEquals(await workshop.ids("?state=used&sort=-id&limit=2"), [5, 3]);
  const page = await workshop.call("GET /v1/things?sort=-id&state=used&limit=2");
  assertEquals(nextTarget(page), "GET /v1/things?limit=2&state=used&sort=-id&cursor=LTM");
});

Deno.test("service always shows its own changes, regardless of MAX_STALENESS_MS", async () => {
  await using workshop = await Workshop.open({ maxStalenessMs: 60_000 });
  assertEquals(await workshop.ids(), []);

  await workshop.add({});
  assertEquals(await workshop.ids(), [1]);
  await workshop.patch(1, { name: "Saw" });
  const [saw] = await thingsIn(await workshop.call("GET /v1/things/1"));
  assertEquals(saw?.name, "Saw");
  await workshop.call("DELETE /v1/things/1");
  assertEquals([await workshop.ids(), (await workshop.call("GET /v1/things/1")).status], [[], 404]);
});

Deno.test("Pages keeps as many responses as fit, and its first pages despite any number of others", async () => {
  await using workshop = await Workshop.open();
  await workshop.add(...Array(3).fill({ name: "x".repeat(100) }));
  const pages = pagesOf(workshop, 200_000);
  const pageOf = async (limit: number, cursor?: number) => await pages.page({ limit, cursor }, "a");
  const [one, single] = [await pageOf(1), await pages.single(1, "a")];
  assert(one.size > 1_000 && one.size < 10_000);

  for (const id of upTo(300)) await pageOf(1, id + 1);
  assertStrictEquals(await pageOf(1), one);
  assertStrictEquals(await pages.single(1, "a"), single);
  for (const limit of upTo(100)) await pageOf(limit + 2);
  assert(await pageOf(1) !== one);
  assertStrictEquals(await pageOf(101), await pageOf(101));
});

Deno.test("Page keeps the responses of the four hosts used last, each with its own links, also of 304", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, {});
  const page = await pagesOf(workshop, 1_000_000).page({ limit: 1 }, "a");
  const at = (host: string | number, etag?: string) => page.respondTo(etag, `https://${host}.example`);
  const real = at("workshop");

  for (const number of upTo(12)) {
    const etag = at(number).headers.get("etag") ?? "";
    for (const [response, status] of [[at(number), 200], [at(number, etag), 304]] as const) {
      const link = `<https://${number}.example/v1/things?limit=1&cursor=MQ>; rel="next"`;
      assertEquals([response.status, response.headers.get("link")], [status, link]);
    }
    if (number % 3 === 0) assertStrictEquals(at("workshop"), real);
  }
  at("workshop");
  for (const number of upTo(3)) at(number);
  assertStrictEquals(at("workshop"), real);
  for (const number of upTo(4)) at(number);
  assert(at("workshop") !== real);
});

Deno.test("cursorSchema() accepts the id of an item, or its negative, only as links encode it", () => {
  const CURSOR = cursorSchema(THINGS);
  for (const id of [1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER].flatMap((id) => [id, -id])) {
    assertEquals(CURSOR.parse(cursorOf(id), "cursor"), id);
  }
  const ids = "0 -0 +1 --1 1.5 1e3 hammer 0001 0x1 Infinity 9007199254740993".split(" ").concat(" 12");
  const texts = ["", "20", "!!!!", "é", "🐶", "MQ==", "MQ=", " MQ", "MR"];
  for (const wrong of [...ids.map(cursorOf), ...texts, 7, undefined]) {
    const parse = () => CURSOR.parse(wrong, "cursor");
    assertThrows(parse, Invalid, "cursor must be a cursor from a Link header of this service");
  }
});

const STORED = { ...HAMMER, state: "new", isSpare: false };

Deno.test.each([
  ["9007199254740993", "9007199254740993"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["9007199254740993.0", "9007199254740993"],
  ["-1.2e1", "-12"],
])("service stores the weight %s as %s, digit for digit", async (sent, weight) => {
  await using workshop = await Workshop.open();
  const thing = `{"id":1,"name":"Hammer","weight":${weight},"state":"lost","isSpare":false}`;
  const request = { body: `{"weight":${sent},"name":"Hammer"}`, headers: JSON_TYPE };

  const added = await workshop.call("POST /v1/things", request);
  const same = await workshop.call("PATCH /v1/things/1", request);
  const changed = await workshop.patch(1, { state: "lost" });

  for (const response of [added, same]) assertEquals(await response.text(), thing.replace("lost", "new"));
  assertEquals(await changed.text(), thing);
  assertEquals(await (await workshop.call("GET /v1/things/1")).text(), thing);
  for (const query of ["", "?state=lost"]) {
    assertEquals(await (await workshop.call(`GET /v1/things${query}`)).text(), `[${thing}]`);
  }
});

Deno.test.each([
  [{ state: "lost" }, "application/json"],
  [{ name: "Saw" }, "application/merge-patch+json"],
  [{ weight: 8 }, "Application/Merge-Patch+JSON; charset=utf-8"],
  [{ name: "Saw", weight: 8, state: "used", id: 9 }, "application/json"],
])("update changes only the fields in %j, sent as %s", async (patch, type) => {
  await using workshop = await Workshop.open();
  await workshop.add({}, { state: "lost" });
  const changed = { ...STORED, ...patch, id: 1 };
  const request = { body: JSON.stringify(patch), headers: { "content-type": type } };

  const response = await workshop.call("PATCH /v1/things/1", request);
  const got = await workshop.call("GET /v1/things/1");

  assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"]);
  assertEquals(got.headers.get("etag"), response.headers.get("etag"));
  for (const one of [response, got]) assertEquals(await one.json(), changed);
  for (const state of ["new", "used", "lost"]) {
    const ids = [...(changed.state === state ? [1] : []), ...(state === "lost" ? [2] : [])];
    assertEquals(await workshop.ids(`?state=${state}`), ids);
  }
  await assertConsistent(workshop.kv);
});

Deno.test("a patch that changes nothing writes nothing, whether an operator or the owner sends it", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await workshop.add({ state: "used" });
  const rows = async () => {
    const entries = await Array.fromAsync(workshop.kv.list({ prefix: [] }));
    return entries.filter(({ key: [table] }) => /^(items|items_by|versions)$/.test(String(table)));
  };
  const before = await rows();

  for (const patch of [{}, { state: "used", name: HAMMER.name }]) {
    for (const [target, key] of [["/operator/v1", OPERATOR_TOKEN], ["/v1", workshop.key]] as const) {
      const response = await workshop.fetch(`PATCH ${target}/things/1`, { key, json: patch });
      assertEquals([response.status, (await response.json()).state], [200, "used"]);
    }
  }

  assertEquals(await rows(), before);
});

Deno.test("service returns 404 for an ID that no item has, whether one could have it or not", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, {});
  await workshop.call("DELETE /v1/things/2");

  for (const id of ["2", "9223372036854775808", "0", "01", "1e0", "%201", "%00", "nut", "__proto__"]) {
    for (const [method, json] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
      const response = await workshop.call(`${method} /v1/things/${id}`, { json });
      const reason = /^[1-9]\d*$/.test(id) ? "" : "; thingId must be an integer from 1";
      await assertError(response, 404, "thing_not_found", RegExp(`^No thing has this thingId${reason}\\.$`));
    }
  }
  assertEquals(await workshop.ids(), [1]);
});

const MISMATCH = { "if-match": '"other"' };
const ANY = { "if-match": "*" };
const NONE = { "if-none-match": "*" };

Deno.test.each<[what: string, id: number, headers: Record<string, string>, status: number, code: string]>([
  ["a missing item", 9, MISMATCH, 404, "thing_not_found"],
  ["a missing item despite If-Match: *", 9, ANY, 404, "thing_not_found"],
  ["another account's item", 1, MISMATCH, 403, "not_your_thing"],
  ["an item of no account", 3, MISMATCH, 403, "not_your_thing"],
  ["a changed item", 2, MISMATCH, 412, "precondition_failed"],
  ["an existing item", 2, NONE, 412, "precondition_failed"],
])("update and delete report %s", async (_, id, headers, status, code) => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  const { apiKey: key } = await workshop.createAccount();
  await workshop.fetch("POST /v1/things", { key, json: HAMMER });
  await workshop.add({});
  await workshop.fetch("POST /operator/v1/things", { key: OPERATOR_TOKEN, json: HAMMER });
  const before = await workshop.call("GET /v1/things");

  await assertError(await workshop.call(`PATCH /v1/things/${id}`, { json: {}, headers }), status, code);
  await assertError(await workshop.call(`DELETE /v1/things/${id}`, { headers }), status, code);

  assertEquals(await (await workshop.call("GET /v1/things")).text(), await before.text());
});

Deno.test("update and delete succeed if If-Match has the ETag, and otherwise return the current one", async () => {
  await using workshop = await Workshop.open();
  const created = await workshop.call("POST /v1/things", { json: HAMMER });
  const etag = created.headers.get("etag") ?? "";

  const changed = await workshop.patch(1, { state: "used" }, { "if-match": `"a", ${etag}` });
  const current = changed.headers.get("etag") ?? "";
  const refused = [
    await workshop.patch(1, { state: "lost" }, { "if-match": etag }),
    await workshop.call("DELETE /v1/things/1", { headers: { "if-match": etag } }),
  ];
  const removed = await workshop.call("DELETE /v1/things/1", { headers: { "if-match": current } });

  assertEquals([changed.status, removed.status], [200, 204]);
  for (const { status, headers } of refused) assertEquals([status, headers.get("etag")], [412, current]);
});

/** Asserts the headers of RFC 9745, RFC 8594 and RFC 8288. */
function assertDeprecated({ headers, status }: Response): void {
  const also = status === 404 ? ', </v1/openapi.json>; rel="service-desc"' : "";
  assertEquals(headers.get("deprecation"), `@${Date.UTC(2025, 0, 31) / 1000}`);
  assertEquals(headers.get("sunset"), "Mon, 31 Dec 2029 00:00:00 GMT");
  assertEquals(
    headers.get("link"),
    `</docs/deprecations>; rel="deprecation"; type="text/plain", </v1/things>; rel="successor-version"${also}`,
  );
}

Deno.test("a deprecated operation announces its removal in every response and in a document, and returns 410 from then on, when Allow no longer names it", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({});
  const suspended = await workshop.createAccount();
  await workshop.accounts.suspend(suspended.account.id, workshop.now);
  const spent = await workshop.createAccount({ minute: 1, day: 1 });
  const ask = async (status: number, path = "/1", request: HarnessRequest = {}) => {
    const response = await workshop.call(`GET /v1/things${path}`, request);
    assertDeprecated(response);
    if (status === 410) await assertError(response, 410, "gone", /Use `?GET \/v1\/things/);
    else assertEquals(response.status, status);
    return response;
  };
  const allowed = async (method: string) =>
    (await workshop.call(`${method} /v1/things/1`)).headers.get("allow");
  for (const method of ["OPTIONS", "PUT"]) {
    assertEquals(await allowed(method), "DELETE, GET, HEAD, OPTIONS, PATCH");
  }
  const { headers } = await ask(200);
  const document = await workshop.fetch(
    `GET ${/<([^>]+)>; rel="deprecation"/.exec(headers.get("link") ?? "")?.[1]}`,
  );
  assertEquals([document.status, document.headers.get("content-type")], [200, "text/plain; charset=utf-8"]);
  assertMatch(await document.text(), /31 December 2029[^]+GET \/v1\/things/);
  workshop.now = SUNSET - 1;

  assertDeprecated(await workshop.call("HEAD /v1/things/1"));
  await ask(304, "/1", { headers: { "if-none-match": headers.get("etag") ?? "" } });
  await ask(400, "/1?x=1", { headers: { prefer: "handling=strict" } });
  await ask(401, "/1", { key: "nobody" });
  await ask(403, "/1", { key: suspended.apiKey });
  for (const path of ["/nut", "/2"]) await ask(404, path);
  for (const status of [200, 429]) await ask(status, "/1", { key: spent.apiKey });
  workshop.now = SUNSET;
  for (const path of ["/1", "/nut"]) await ask(410, path);
  for (const method of ["OPTIONS", "PUT"]) assertEquals(await allowed(method), "DELETE, OPTIONS, PATCH");
  assertEquals((await workshop.patch(1, { name: "Tom" })).status, 200);
  await ask(401, "/1", { key: "nobody" });
  await workshop.stop();
  await ask(503);
});
