import { assertEquals, assertGreater, assertMatch, assertNotEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call, JSON_TYPE } from "../support/client.ts";
import { RecordingService } from "../support/harness.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";
import { HAMMER, THINGS } from "../support/things.ts";
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

  const response = await workshop.call("PATCH /v1/things/1", {
    body: JSON.stringify(patch),
    headers: { "content-type": type },
  });

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(await response.json(), changed);
  const got = await workshop.call("GET /v1/things/1");
  assertEquals(got.headers.get("etag"), response.headers.get("etag"));
  assertEquals(await got.json(), changed);
  for (const state of ["new", "used", "lost"]) {
    const ids = [...(changed.state === state ? [1] : []), ...(state === "lost" ? [2] : [])];
    assertEquals(await workshop.ids(`?state=${state}`), ids);
  }
  await assertConsistent(workshop.kv);
});

Deno.test("create rejects a merge patch", async () => {
  await using workshop = await Workshop.open();
  const headers = { "content-type": "application/merge-patch+json" };

  const response = await workshop.call("POST /v1/things", { body: JSON.stringify(HAMMER), headers });

  await assertError(response, 400, "invalid_content_type", /must be application\/json\.$/);
});

Deno.test("delete removes the item, and no process uses its ID again", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, { state: "lost" }, { state: "lost" });

  const response = await workshop.call("DELETE /v1/things/3");

  assertEquals(response.status, 204);
  assertEquals(response.headers.get("content-type"), null);
  assertEquals(await response.text(), "");
  for (const method of ["GET", "DELETE", "PATCH"]) {
    const gone = await workshop.call(`${method} /v1/things/3`, method === "PATCH" ? { json: {} } : {});
    await assertError(gone, 404, "thing_not_found");
  }
  assertEquals([await workshop.ids(), await workshop.ids("?state=lost")], [[1, 2], [2]]);
  await using later = workshop.beside();
  assertGreater((await later.add({ state: "lost" }))[0] ?? 0, 3);
  await assertConsistent(workshop.kv);
});

Deno.test.each(["2", "0", "01", "1e0", "%201", "%00", "nut", "__proto__", "9223372036854775808"])(
  "service returns 404 for the ID %s",
  async (id) => {
    await using workshop = await Workshop.open();
    await workshop.add({});

    for (const init of [{}, { method: "PATCH", json: {} }, { method: "DELETE" }]) {
      const response = await workshop.call(`${init.method ?? "GET"} /v1/things/${id}`, init);

      const isId = /^[1-9]\d*$/.test(id);
      const reason = isId ? /^No thing has this thingId\.$/ : /; thingId must be an integer from 1\.$/;
      await assertError(response, 404, "thing_not_found", reason);
    }
    assertEquals(await workshop.ids(), [1]);
  },
);

const MISMATCH = { "if-match": '"other"' };
const ANY = { "if-match": "*" };
const NONE = { "if-none-match": "*" };

Deno.test.each<[string, string, object | undefined, object, number, string]>([
  ["an invalid body first", "PATCH /v1/things/9", { name: null }, MISMATCH, 400, "invalid_request"],
  ["a missing item", "PATCH /v1/things/9", {}, MISMATCH, 404, "thing_not_found"],
  ["a missing item despite If-Match: *", "PATCH /v1/things/9", {}, ANY, 404, "thing_not_found"],
  ["another account's item", "PATCH /v1/things/1", {}, MISMATCH, 403, "not_your_thing"],
  ["a changed item", "PATCH /v1/things/2", {}, MISMATCH, 412, "precondition_failed"],
  ["an existing item", "PATCH /v1/things/2", {}, NONE, 412, "precondition_failed"],
  ["a missing item despite If-Match: *", "DELETE /v1/things/9", undefined, ANY, 404, "thing_not_found"],
  ["another account's item", "DELETE /v1/things/1", undefined, MISMATCH, 403, "not_your_thing"],
  ["a changed item", "DELETE /v1/things/2", undefined, MISMATCH, 412, "precondition_failed"],
  ["an existing item", "DELETE /v1/things/2", undefined, NONE, 412, "precondition_failed"],
])("service reports %s: %s", async (_, target, json, headers, status, code) => {
  await using workshop = await Workshop.open();
  const { apiKey: key } = await workshop.createAccount();
  await workshop.fetch("POST /v1/things", { key, json: HAMMER });
  await workshop.add({});
  const before = await (await workshop.call("GET /v1/things")).text();

  const response = await workshop.call(target, { ...(json && { json }), headers: { ...headers } });

  await assertError(response, status, code);
  assertEquals(await (await workshop.call("GET /v1/things")).text(), before);
});

Deno.test("service lets an account change its items with a rotated key", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey } = await workshop.createAccount();
  await workshop.fetch("POST /v1/things", { key: apiKey, json: HAMMER });
  const rotated = await workshop.accounts.rotate(account.id, 0, workshop.now);

  const response = await workshop.fetch("DELETE /v1/things/1", { key: rotated?.apiKey ?? "" });

  assertEquals(response.status, 204);
});

for (const method of ["PATCH", "DELETE"]) {
  const json = { state: "used" };
  const change = (workshop: Workshop, headers: Record<string, string>, id = 1) =>
    workshop.call(`${method} /v1/things/${id}`, method === "PATCH" ? { json, headers } : { headers });

  Deno.test.each<[string, (etag: string) => string]>([
    ["the tag", (etag) => etag],
    ["one of several tags", (etag) => `"a" , ${etag},"b"`],
    ["*", () => "*"],
    ["a tag with a comma, and empty elements", (etag) => `, "a,b" ,, ${etag} ,`],
  ])(`${method} succeeds with %s in If-Match`, async (_, value) => {
    await using workshop = await Workshop.open();
    const created = await workshop.call("POST /v1/things", { json: HAMMER });

    const response = await change(workshop, { "if-match": value(created.headers.get("etag") ?? "") });

    assertEquals(Math.floor(response.status / 100), 2);
    assertEquals(await workshop.ids("?state=new"), []);
  });

  Deno.test(`${method} rejects a malformed If-Match or If-None-Match, even for a missing item`, async () => {
    await using workshop = await Workshop.open();
    const { apiKey: key } = await workshop.createAccount();
    await workshop.fetch("POST /v1/things", { key, json: HAMMER });
    await workshop.add({});

    for (const name of ["If-Match", "If-None-Match"]) {
      for (const id of [1, 2, 9]) {
        const response = await change(workshop, { [name]: "3f42" }, id);
        await assertError(response, 400, "invalid_request", RegExp(`^${name} must be \\* or entity tags`));
      }
    }

    assertEquals(await workshop.ids("?state=new"), [1, 2]);
  });

  const isThere = /^If-None-Match is \*, or contains .*, which is in the ETag header/;
  Deno.test.each<[string, string, (etag: string) => string, RegExp]>([
    ["If-Match", "another tag", () => '"other"', /^If-Match does not contain .* in the ETag header of this/],
    ["If-Match", "its tag as a weak one", (etag) => `"a", W/${etag}`, /^If-Match .*weak tag \(W\/\)/],
    ["If-Match", "a strong tag that ends in W/", () => `"aW/"`, /^If-Match does not contain [^(]*$/],
    ["If-None-Match", "its tag", (etag) => etag, isThere],
    ["If-None-Match", "its tag as a weak one", (etag) => `W/${etag}`, isThere],
    ["If-None-Match", "*", () => "*", isThere],
  ])(
    `${method} reports that %s failed for %s, and returns the current ETag`,
    async (name, _, value, message) => {
      await using workshop = await Workshop.open();
      const created = await workshop.call("POST /v1/things", { json: HAMMER });
      const etag = created.headers.get("etag") ?? "";

      const response = await change(workshop, { [name]: value(etag) });

      assertEquals(response.headers.get("etag"), etag);
      await assertError(response, 412, "precondition_failed", message);
      assertEquals(await workshop.ids("?state=new"), [1]);
    },
  );
}

Deno.test("service checks If-Match before If-None-Match", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({});

  const response = await workshop.patch(1, {}, { ...MISMATCH, ...NONE });

  await assertError(response, 412, "precondition_failed", /^If-Match /);
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

Deno.test.each(["/v1/things", "/v1/things?limit=1", "/v1/things?state=lost", "/v1/things/1"])(
  "service lets clients cache and revalidate GET and HEAD %s",
  async (path) => {
    await using workshop = await Workshop.open();
    await workshop.add({}, { state: "lost" });
    const first = await workshop.call(`GET ${path}`);
    const etag = first.headers.get("etag") ?? "";

    const again = await workshop.call(`GET ${path}`, { headers: { "if-none-match": etag } });
    const other = await workshop.call(`HEAD ${path}`, { headers: { "if-none-match": '"other"' } });

    assertEquals([first.status, again.status, other.status], [200, 304, 200]);
    for (const { headers } of [first, again, other]) {
      assertEquals(headers.get("etag"), etag);
      assertEquals(headers.get("cache-control"), "private, no-cache");
      assertEquals(headers.get("vary"), "Origin");
      assertEquals(headers.get("link"), first.headers.get("link"));
    }
    assertEquals([again.headers.get("content-type"), again.body], [null, null]);
  },
);

Deno.test("service returns the same ETag for the same content, and different ones otherwise", async () => {
  await using workshop = await Workshop.open();
  const tagOf = async (response: Response | Promise<Response>) => (await response).headers.get("etag") ?? "";
  const created = await tagOf(workshop.call("POST /v1/things", { json: HAMMER }));
  const listed = await tagOf(workshop.call("GET /v1/things?state=new"));
  await workshop.add({ state: "lost" });

  const lost = await tagOf(workshop.patch(1, { state: "lost" }));
  const refused = await workshop.patch(1, { state: "lost" }, { "if-match": created });
  const again = await tagOf(workshop.patch(1, { state: "new" }, { "if-match": lost }));
  const got = await workshop.call("GET /v1/things/1", { headers: { "if-none-match": created } });
  const list = await workshop.call("GET /v1/things?state=new", { headers: { "if-none-match": listed } });

  assertNotEquals(lost, created);
  assertEquals(again, created);
  assertEquals([refused.status, got.status, list.status], [412, 304, 304]);
});

Deno.test("service applies one of many simultaneous changes with the same If-Match, in two processes", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();
  const created = await workshop.call("POST /v1/things", { json: HAMMER });
  const headers = { "if-match": created.headers.get("etag") ?? "" };

  const responses = await Promise.all(
    Array.from(
      { length: 24 },
      (_, turn) => (turn % 2 ? workshop : beside).patch(1, { name: `Saw ${turn}` }, headers),
    ),
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

Deno.test("service loses no change that another process makes between its read and its commit", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { apiKey: key } = await service.createAccount();
  await call(service, key, "POST /v1/things", { json: HAMMER });
  let isBeaten = false;
  service.disturbance = {
    commit: async ({ keys, apply }) => {
      if (!isBeaten && keys.some(([table]) => table === "items")) {
        isBeaten = true;
        await call(other, key, "PATCH /v1/things/1", { json: { state: "lost" } });
      }
      return await apply();
    },
  };

  const reply = await time.until(call(service, key, "PATCH /v1/things/1", { json: { name: "Saw" } }), 1_000);

  assertEquals([reply.status, isBeaten], [200, true]);
  const [thing] = await thingsIn(await time.until(other.fetch("GET /v1/things/1", { key }), 1_000));
  assertEquals(thing, { id: 1, ...STORED, name: "Saw", state: "lost" });
});
