import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { resource } from "../../src/resource/mod.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, JSON_TYPE, nextTarget } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";
import { HAMMER, OF_THINGS, SUNSET, THING_DECLARATION, THINGS } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

const STORED = { ...HAMMER, state: "new", isSpare: false };

Deno.test("create returns the item, its location and its ETag", async () => {
  await using workshop = await Workshop.open();

  const response = await workshop.call("POST /v1/things", { json: HAMMER });

  assertEquals(response.status, 201);
  assertEquals(response.headers.get("location"), "http://localhost:8000/v1/things/1");
  assertEquals(response.headers.get("content-location"), "http://localhost:8000/v1/things/1");
  assertEquals(response.headers.get("content-type"), "application/json");
  assertMatch(response.headers.get("etag") ?? "", /^"[\da-f]{16}"$/);
  assertEquals(await response.json(), { id: 1, ...STORED });
});

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

Deno.test("update removes an optional field with null, but no other field", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ labels: ["mine"] });

  const removed = await workshop.patch(1, { labels: null });
  const again = await workshop.call("GET /v1/things/1");

  assertEquals([removed.status, await removed.json()], [200, { id: 1, ...STORED }]);
  assertEquals(again.headers.get("etag"), removed.headers.get("etag"));
  for (const name of ["name", "weight", "state", "isSpare"]) {
    const refused = await workshop.patch(1, { [name]: null });
    await assertError(
      refused,
      400,
      "invalid_request",
      RegExp(`^The field ${name} must not be null: leave it out\\.$`),
    );
  }
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

Deno.test("delete removes the item, and no process uses its ID again", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, { state: "lost" }, { state: "lost" });

  const response = await workshop.call("DELETE /v1/things/3");

  assertEquals([response.status, response.headers.get("content-type")], [204, null]);
  assertEquals(await response.text(), "");
  assertEquals([await workshop.ids(), await workshop.ids("?state=lost")], [[1, 2], [2]]);
  await workshop.app.settle();
  await using later = workshop.beside();
  assertEquals(await later.add({ state: "lost" }), [4]);
  await assertConsistent(workshop.kv);
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
  ["a changed item", 2, MISMATCH, 412, "precondition_failed"],
  ["an existing item", 2, NONE, 412, "precondition_failed"],
])("update and delete report %s", async (_, id, headers, status, code) => {
  await using workshop = await Workshop.open();
  const { apiKey: key } = await workshop.createAccount();
  await workshop.fetch("POST /v1/things", { key, json: HAMMER });
  await workshop.add({});
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

Deno.test("service applies one of many simultaneous changes with the same If-Match, in two processes", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();
  const created = await workshop.call("POST /v1/things", { json: HAMMER });
  const headers = { "if-match": created.headers.get("etag") ?? "" };
  const services = Array.from({ length: 24 }, (_, turn) => turn % 2 ? workshop : beside);

  const responses = await Promise.all(
    services.map((service, turn) => service.patch(1, { name: `Saw ${turn}` }, headers)),
  );

  const changed = responses.filter(({ status }) => status === 200);
  assertEquals([changed.length, responses.filter(({ status }) => status === 412).length], [1, 23]);
  const stored = await thingsIn(await workshop.call("GET /v1/things/1"));
  assertEquals(stored, (await Promise.all(changed.map(thingsIn))).flat());
});

Deno.test("service loses no simultaneous change to fields of one item, in two processes", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();
  await workshop.add({});
  const patches = [{ name: "Saw" }, { weight: 8 }, { state: "lost" }, {}];

  const responses = await Promise.all(
    patches.flatMap((patch) => [workshop.patch(1, patch), beside.patch(1, patch)]),
  );

  assertEquals(responses.map((response) => response.status), new Array(8).fill(200));
  const stored = await (await workshop.call("GET /v1/things/1")).json();
  assertEquals(stored, Object.assign({ id: 1, ...STORED }, ...patches));
  await assertConsistent(workshop.kv);
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

Deno.test("service lets clients cache and revalidate lists and items", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, { state: "lost" });

  for (const path of ["/v1/things", "/v1/things?limit=1", "/v1/things?state=lost", "/v1/things/1"]) {
    const { headers } = await workshop.call(`GET ${path}`);
    assertEquals(headers.get("cache-control"), "private, no-cache");
    for (const [tag, status] of [[headers.get("etag") ?? "", 304], ['"other"', 200]] as const) {
      const again = await workshop.call(`GET ${path}`, { headers: { "if-none-match": tag } });
      assertEquals([again.status, again.headers.get("etag")], [status, headers.get("etag")]);
    }
  }
});

Deno.test("service returns the same ETag for the same content, and different ones otherwise", async () => {
  await using workshop = await Workshop.open();
  const tagOf = async (response: Promise<Response>) => (await response).headers.get("etag") ?? "";
  const isCurrent = async (target: string, etag: string) =>
    (await workshop.call(target, { headers: { "if-none-match": etag } })).status === 304;
  const created = await tagOf(workshop.call("POST /v1/things", { json: HAMMER }));
  const listed = await tagOf(workshop.call("GET /v1/things?state=new"));
  await workshop.add({ state: "lost" });

  assertNotEquals(await tagOf(workshop.patch(1, { state: "lost" })), created);
  assertEquals(await isCurrent("GET /v1/things?state=new", listed), false);
  assertEquals(await tagOf(workshop.patch(1, { state: "new" })), created);
  assertEquals(await isCurrent("GET /v1/things/1", created), true);
  assertEquals(await isCurrent("GET /v1/things?state=new", listed), true);
});

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

Deno.test("operators list, change and delete items of any account", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await workshop.add({ labels: ["mine"] }, {}, {});
  const call = (target: string, json?: object) => workshop.fetch(target, { key: OPERATOR_TOKEN, json });

  const page = await call("GET /operator/v1/things?limit=2");
  const changed = await call("PATCH /operator/v1/things/1", { labels: null, isSpare: true });
  const removed = await call("DELETE /operator/v1/things/2");

  assertEquals(nextTarget(page), "GET /operator/v1/things?limit=2&cursor=2");
  const [first, second]: { id: number; accountId: string }[] = await page.json();
  assertEquals([first?.id, second?.id], [1, 2]);
  assertEquals(await changed.json(), { id: 1, ...STORED, isSpare: true, accountId: first?.accountId });
  assertEquals(removed.status, 204);
  assertEquals([await workshop.ids(), await workshop.ids("?isSpare=true")], [[1, 3], [1]]);
  await assertError(await call("DELETE /operator/v1/things/2"), 404, "thing_not_found");
  assertEquals((await call("POST /operator/v1/things", HAMMER)).status, 201); // It is no account's.
  await assertError(await workshop.patch(4, { name: "Tom" }), 403, "not_your_thing");
});

Deno.test("service serves two collections side by side, in whichever order they are declared", async () => {
  const toys = resource({ ...THING_DECLARATION, name: "toys", item: "Toy", noun: ["a toy", "toys"] });
  await using workshop = await Workshop.open({ catalogue: { ...OF_THINGS, resources: [THINGS, toys] } });
  await using beside = workshop.beside({ catalogue: { ...OF_THINGS, resources: [toys, THINGS] } });
  const list = async (name: string, service = workshop) =>
    await (await service.call(`GET /v1/${name}`)).json();
  const add = async (name: string, json: object) =>
    await workshop.call(`POST /v1/${name}`, { json, headers: { "idempotency-key": "once" } });
  const versionOf = async () => (await workshop.kv.get(THINGS.rows.version)).versionstamp;
  const [ball, hammer] = [{ ...STORED, id: 1, name: "Ball" }, { ...STORED, id: 1 }];

  assertEquals((await add("things", HAMMER)).status, 201);
  const before = await versionOf();
  assertEquals((await add("toys", { ...HAMMER, name: "Ball" })).headers.get("idempotency-replayed"), null);

  assertEquals(await versionOf(), before);
  for (const service of [workshop, beside]) {
    assertEquals([await list("things", service), await list("toys", service)], [[hammer], [ball]]);
  }
  await beside.call("DELETE /v1/toys/1");
  assertEquals([await list("things"), await list("toys")], [[hammer], []]);
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

Deno.test("operations that are not deprecated announce nothing, and go on after the sunset of another", async () => {
  await using workshop = await Workshop.open();
  const allowed = async (method: string) =>
    (await workshop.call(`${method} /v1/things/1`)).headers.get("allow");
  const all = "DELETE, GET, HEAD, OPTIONS, PATCH";

  assertEquals([await allowed("OPTIONS"), await allowed("PUT")], [all, all]);
  workshop.now = SUNSET;
  assertEquals([await allowed("OPTIONS"), await allowed("PUT")], Array(2).fill("DELETE, OPTIONS, PATCH"));
  for (
    const response of [
      await workshop.call("POST /v1/things", { json: HAMMER }),
      await workshop.call("GET /v1/things"),
      await workshop.patch(1, { name: "Tom" }),
      await workshop.call("DELETE /v1/things/1"),
    ]
  ) {
    assertEquals(Math.floor(response.status / 100), 2);
    assertEquals(["deprecation", "sunset", "link"].map((name) => response.headers.get(name)), [
      null,
      null,
      null,
    ]);
  }
});
