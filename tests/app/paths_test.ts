import { needsToken } from "../../src/resource/access.ts";
import { assertError, assertLimitHeaders } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { assertEquals } from "@std/assert";

const OPERATOR = { operatorToken: "the-operators-token-in-this-one-test" };

Deno.test.each([
  ["/things", "/v1/things"],
  ["/v1/things/", "/v1/things"],
  ["/v1/Things", "/v1/things"],
  ["/V1/THINGS//", "/v1/things"],
  ["//v1///things", "/v1/things"],
  ["/v1/Th%69ngs", "/v1/things"],
  ["/Things/?limit=7", "/v1/things"],
  ["/things/7", "/v1/things/{thingId}"],
  ["/v1//things/7/", "/v1/things/{thingId}"],
  ["/account/key", "/v1/account/key"],
  ["/openapi.json", "/v1/openapi.json"],
  ["/Health/", "/health"],
])("service returns 404 to GET %s and suggests %s", async (path, meant) => {
  await using service = await Harness.open(OPERATOR);
  const { apiKey: key } = await service.createAccount();

  for (const request of [{ key }, {}]) {
    const response = await service.fetch(`GET ${path}`, request);
    const body = await response.clone().json();
    await assertError(response, 404, "not_found");
    assertEquals(body.message, `There is nothing at this path. Did you mean ${meant}?`);
  }
});

Deno.test.each([
  ["with a different word", "/v1/thing"],
  ["with an extra segment", "/v1/things/7/owner"],
  ["of another version", "/v2/things"],
  ["that cannot be decoded", "/things/%zz"],
  ["that is only the base path", "/v1/"],
  ["that is long", `/${"/".repeat(50_000)}x`],
  ["of the operator, below the base path", "/v1/metrics"],
])("service suggests nothing for a path %s", async (_, path) => {
  await using service = await Harness.open(OPERATOR);

  await assertError(
    await service.fetch(`GET ${path}`),
    404,
    "not_found",
    /^There is nothing at this path\. See \/v1\/openapi\.json\.$/,
  );
});

Deno.test("service names the operators' document for an unknown path below it", async () => {
  await using service = await Harness.open(OPERATOR);

  const response = await service.fetch("GET /operator/v1/accounts/");

  assertEquals(response.headers.get("link"), '</operator/v1/openapi.json>; rel="service-desc"');
  await assertError(response, 404, "not_found", /See \/operator\/v1\/openapi\.json\.$/);
});

Deno.test("service suggests each client path for its uppercase form with a trailing slash", async () => {
  await using service = await Harness.open(OPERATOR);
  const operations = service.app.operations.filter(({ access }) => !needsToken(access));
  const paths = new Set(operations.map(({ path }) => path));
  paths.delete("/"); // Its uppercase form is the path itself.

  for (const path of paths) {
    const response = await service.fetch(`GET ${path.toUpperCase()}/`);
    const { message } = await response.json();
    assertEquals([response.status, message], [404, `There is nothing at this path. Did you mean ${path}?`]);
  }
});

Deno.test.each([
  ["PUT", "/v1/things", "GET, HEAD, OPTIONS, POST"],
  ["POST", "/v1/things/1", "DELETE, GET, HEAD, OPTIONS, PATCH"],
  ["HEAD", "/v1/account/key", "OPTIONS, POST"],
  ["PROPFIND", "/health", "GET, HEAD, OPTIONS"],
])(
  "service returns 405 to %s %s and 204 to OPTIONS, both with Allow",
  async (method, path, allow) => {
    await using service = await Harness.open();
    const { apiKey: key } = await service.createAccount();

    const refused = await service.fetch(`${method} ${path}`, { key });
    const options = await service.fetch(`OPTIONS ${path}`);

    assertEquals([options.status, options.headers.get("allow"), options.body], [204, allow, null]);
    assertEquals(refused.headers.get("allow"), allow);
    if (path.startsWith("/v1/")) [options, refused].forEach(assertLimitHeaders);
    await assertError(refused, 405, "method_not_allowed", RegExp(`^Allowed methods: ${allow}\\.$`));
  },
);

Deno.test("service returns 404 not_found for unknown paths, with limit headers below /v1", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  for (const path of ["/v1", "/v1/nothing", "/nothing"]) {
    await assertError(await service.fetch(`GET ${path}`, { key }), 404, "not_found");
  }
  for (const path of ["/v1", "/v1/nothing", "/%761/th%69ngs"]) {
    assertLimitHeaders(await service.fetch(`GET ${path}`));
  }
});
