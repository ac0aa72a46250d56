import { assertEquals, assertMatch } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { HAMMER, SUNSET } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

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

Deno.test("a deprecated operation announces its removal in every response, and returns 410 from its sunset on", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({});
  const suspended = await workshop.createAccount();
  await workshop.accounts.suspend(suspended.account.id, workshop.now);
  const spent = await workshop.createAccount({ minute: 1, day: 1 });
  const etag = (await workshop.call("GET /v1/things/1")).headers.get("etag") ?? "";
  workshop.now = SUNSET - 1;

  const responses = [
    await workshop.call("GET /v1/things/1"),
    await workshop.call("HEAD /v1/things/1"),
    await workshop.call("GET /v1/things/1", { headers: { "if-none-match": etag } }),
    await workshop.call("GET /v1/things/1?x=1", { headers: { prefer: "handling=strict" } }),
    await workshop.fetch("GET /v1/things/1"),
    await workshop.fetch("GET /v1/things/1", { key: suspended.apiKey }),
    await workshop.call("GET /v1/things/nut"),
    await workshop.call("GET /v1/things/2"),
    await workshop.fetch("GET /v1/things/1", { key: spent.apiKey }),
    await workshop.fetch("GET /v1/things/1", { key: spent.apiKey }),
  ];
  workshop.now = SUNSET;
  const gone = [await workshop.call("GET /v1/things/1"), await workshop.call("GET /v1/things/nut")];
  responses.push(...gone, await workshop.fetch("GET /v1/things/1"));
  await workshop.stop();
  responses.push(await workshop.call("GET /v1/things/1"));

  assertEquals(
    responses.map(({ status }) => status),
    [200, 200, 304, 400, 401, 403, 404, 404, 200, 429, 410, 410, 401, 503],
  );
  for (const response of responses) assertDeprecated(response);
  for (const response of gone) await assertError(response, 410, "gone", /Use `?GET \/v1\/things/);
});

Deno.test("operations that are not deprecated announce nothing, and go on after the sunset of another", async () => {
  await using workshop = await Workshop.open();
  const allowed = async () => {
    const responses = [await workshop.call("OPTIONS /v1/things/1"), await workshop.call("PUT /v1/things/1")];
    return responses.map(({ headers }) => headers.get("allow"));
  };

  assertEquals(await allowed(), Array(2).fill("DELETE, GET, HEAD, OPTIONS, PATCH"));
  workshop.now = SUNSET;
  assertEquals(await allowed(), Array(2).fill("DELETE, OPTIONS, PATCH"));
  const responses = [
    await workshop.call("POST /v1/things", { json: HAMMER }),
    await workshop.call("GET /v1/things"),
    await workshop.patch(1, { name: "Tom" }),
    await workshop.call("DELETE /v1/things/1"),
  ];

  assertEquals(responses.map(({ status }) => status), [201, 200, 200, 204]);
  for (const { headers } of responses) {
    assertEquals(["deprecation", "sunset", "link"].map((name) => headers.get(name)), [null, null, null]);
  }
});

Deno.test("a deprecated operation links to a public document about its deprecation", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({});
  const { headers } = await workshop.call("GET /v1/things/1");
  const path = /<([^>]+)>; rel="deprecation"/.exec(headers.get("link") ?? "")?.[1];

  const document = await workshop.fetch(`GET ${path}`);

  assertEquals(document.status, 200);
  assertEquals(document.headers.get("content-type"), "text/plain; charset=utf-8");
  assertEquals(document.headers.get("x-ratelimit-limit"), null);
  assertMatch(await document.text(), /31 December 2029[^]+GET \/v1\/things/);
});
