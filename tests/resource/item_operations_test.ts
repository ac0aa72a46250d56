import { assertEquals, assertMatch } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";
import { HAMMER, OF_THINGS, SUNSET, THINGS } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

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

Deno.test.each(["\u00a0\u3000", "R\u0000e\nx\u009b"])(
  "service lists, changes and removes a stored item whose name %j is invalid in requests",
  async (name) => {
    await using workshop = await Workshop.open();
    await workshop.add({});
    await storeName(workshop.kv, 1, name, THINGS);
    const match = { "if-match": (await workshop.call("GET /v1/things/1")).headers.get("etag") ?? "" };

    const listed = await workshop.call("GET /v1/things?state=new");
    const lost = await workshop.patch(1, { state: "lost" }, match);
    const kept = await workshop.patch(1, {});
    const removed = await workshop.call("DELETE /v1/things/1");

    assertEquals([listed, lost, kept, removed].map(({ status }) => status), [200, 200, 200, 204]);
    for (const [response, state] of [[listed, "new"], [lost, "lost"], [kept, "lost"]] as const) {
      assertEquals(await thingsIn(response), [{ id: 1, ...STORED, name, state }]);
    }
    await assertConsistent(workshop.kv);
  },
);

Deno.test("operations of a resource refuse unknown names, even without Prefer, unless it is lenient", async () => {
  const { isLenient: _, ...strict } = THINGS;
  await using workshop = await Workshop.open({ catalogue: { ...OF_THINGS, resources: [strict] } });
  await workshop.add({});
  const headers = { prefer: "handling=lenient" };

  for (
    const [target, json] of [
      ["GET /v1/things?stat=new"],
      ["GET /v1/things/1?x=1"],
      ["POST /v1/things", { ...HAMMER, colour: "red" }],
      ["PATCH /v1/things/1", { colour: "red" }],
    ] as const
  ) {
    const response = await workshop.call(target, { json, headers });
    await assertError(response, 400, "invalid_request", /^The (query parameter|field) \w+ is unknown/);
  }
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

Deno.test("a deprecated operation announces its removal in every response and in a document, and returns 410 from then on", async () => {
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
  await ask(401, "/1", { key: "nobody" });
  await workshop.stop();
  await ask(503);
});

Deno.test("operations that are not deprecated go on after the sunset of another, which Allow no longer names", async () => {
  await using workshop = await Workshop.open();
  const allowed = async (method: string) =>
    (await workshop.call(`${method} /v1/things/1`)).headers.get("allow");
  const all = "DELETE, GET, HEAD, OPTIONS, PATCH";

  assertEquals([await allowed("OPTIONS"), await allowed("PUT")], [all, all]);
  workshop.now = SUNSET;
  assertEquals([await allowed("OPTIONS"), await allowed("PUT")], Array(2).fill("DELETE, OPTIONS, PATCH"));
  assertEquals([await workshop.add({}), await workshop.ids()], [[1], [1]]);
  for (
    const response of [await workshop.patch(1, { name: "Tom" }), await workshop.call("DELETE /v1/things/1")]
  ) {
    assertEquals(Math.floor(response.status / 100), 2);
  }
});
