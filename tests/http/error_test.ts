import { assertEquals, assertMatch } from "@std/assert";
import { createSecret } from "../../src/access/secret.ts";
import { usageRow } from "../../src/access/key_rows.ts";
import { ApiError, type ErrorCode, problemResponse } from "../../src/http/error.ts";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "./assertions.ts";

Deno.test.each<[ErrorCode, number]>([
  ["invalid_request", 400],
  ["invalid_json", 400],
  ["invalid_content_type", 400],
  ["missing_api_key", 401],
  ["invalid_api_key", 401],
  ["pet_not_found", 404],
  ["not_found", 404],
  ["method_not_allowed", 405],
  ["request_timeout", 408],
  ["gone", 410],
  ["payload_too_large", 413],
  ["idempotency_key_reused", 422],
  ["rate_limit_minute", 429],
  ["rate_limit_day", 429],
  ["key_banned", 429],
  ["internal_error", 500],
  ["store_unavailable", 503],
])("problemResponse() sends %s with status %i", async (code, status) => {
  const response = problemResponse(new ApiError(code, "What went wrong.", { "retry-after": "7" }));

  assertEquals(response.headers.get("retry-after"), "7");
  await assertError(response, status, code, /^What went wrong\.$/);
});

Deno.test.each([undefined, "", "Bearer", "Bearer ", "Basic bWU6bWU=", "bearer a b", "Token as_test_1"])(
  "app() asks for a bearer key when Authorization is %s",
  async (authorization) => {
    using service = await Harness.open();
    const headers = authorization === undefined ? new Headers() : { authorization };

    const response = await service.fetch("GET /v1/pets", { headers });

    assertEquals(response.headers.get("www-authenticate"), 'Bearer realm="animal-store"');
    assertLimitHeaders(response);
    await assertError(response, 401, "missing_api_key", /Authorization: Bearer/);
  },
);

Deno.test("app() has one text for every bad key", async () => {
  using service = await Harness.open();
  const revoked = await service.issueKey();
  await service.keys.revoke(revoked.key.id, service.now);
  const valid = await service.issueKey();
  const bad = [
    "nonsense",
    createSecret("staging"),
    createSecret("production"),
    valid.secret.slice(0, -1),
    valid.secret + "0",
    valid.secret.toUpperCase(),
    revoked.secret,
  ];

  const texts = new Set<string>();
  for (const key of bad) {
    const response = await service.fetch("GET /v1/pets", { key });
    assertEquals(
      response.headers.get("www-authenticate"),
      'Bearer realm="animal-store", error="invalid_token"',
    );
    assertLimitHeaders(response);
    texts.add(await response.clone().text());
    await assertError(response, 401, "invalid_api_key");
  }
  assertEquals(texts.size, 1);
});

Deno.test.each(["bearer", "BEARER", "Bearer "])("app() takes a key after %s", async (scheme) => {
  using service = await Harness.open();
  const { secret } = await service.issueKey();

  const response = await service.fetch("GET /v1/pets", { headers: { authorization: `${scheme} ${secret}` } });

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("www-authenticate"), null);
});

Deno.test("app() answers a bare 500 and logs where it comes from when a handler fails", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: key } = await service.issueKey();
  await service.kv.set(usageRow(id), new TextEncoder().encode("confidential"));

  const response = await service.fetch("GET /v1/pets/1", { key, headers: { "x-request-id": "r1" } });

  assertEquals(response.headers.get("x-request-id"), "r1");
  assertLimitHeaders(response);
  assertEquals(service.errors.map(({ at: _, ...record }) => record), [
    { time: "2027-01-15T12:00:00.000Z", id: "r1", route: "/v1/pets/:petId", error: "SyntaxError" },
  ]);
  assertMatch(service.errors[0]?.at ?? "", /^src\/kv\/json_value\.ts:\d+$/);
  assertEquals(
    /confidential|token/i.test(JSON.stringify(service.errors) + await response.clone().text()),
    false,
  );
  await assertError(response, 500, "internal_error");
});

Deno.test.each([
  ["GET", "/v1/pets"],
  ["GET", "/v1/pets/1"],
  ["POST", "/v1/pets"],
  ["POST", "/v1/messages"],
  ["GET", "/v1/nothing"],
])("app() answers store_unavailable to %s %s when KV fails", async (method, path) => {
  const service = await Harness.open();
  const { secret: key } = await service.issueKey();
  service.kv.close();

  const response = await service.fetch(`${method} ${path}`, { key, headers: { "x-request-id": "r1" } });

  assertEquals(response.headers.get("retry-after"), "5");
  assertEquals(response.headers.get("x-request-id"), "r1");
  assertLimitHeaders(response);
  assertEquals(service.errors.map(({ id, error }) => [id, error]), [[
    "r1",
    "StoreUnavailable (BadResource)",
  ]]);
  await assertError(response, 503, "store_unavailable");
});

Deno.test("app() logs no error for what the client did wrong", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  await service.fetch("GET /v1/pets?limit=0", { key });
  await service.fetch("GET /v1/nothing");
  await service.fetch("GET /v1/pets");

  assertEquals(service.errors, []);
});
