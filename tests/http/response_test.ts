import { assertEquals, assertMatch } from "@std/assert";
import { createResponse, jsonResponse } from "../../src/http/response.ts";
import { Harness } from "../harness.ts";

const PET = '{"name":"Rex","categoryId":7}';
const ALWAYS = { "x-content-type-options": "nosniff", "vary": "Origin" };

Deno.test("createResponse() sends what every response has", () => {
  const response = createResponse(null, { status: 204, headers: { allow: "GET" } });

  assertEquals(response.status, 204);
  assertEquals(Object.fromEntries(response.headers), { ...ALWAYS, allow: "GET" });
  assertEquals(response.body, null);
});

Deno.test("jsonResponse() sends JSON text", async () => {
  const response = jsonResponse('{"id":9007199254740993}');

  assertEquals(response.status, 200);
  assertEquals(Object.fromEntries(response.headers), { ...ALWAYS, "content-type": "application/json" });
  assertEquals(await response.text(), '{"id":9007199254740993}');
});

Deno.test("jsonResponse() can be sent many times", async () => {
  const original = jsonResponse("[]", { status: 201, headers: { location: "/v1/pets/1" } });

  const clones = [original.clone(), original.clone()];
  clones[0]?.headers.set("x-request-id", "first");

  assertEquals(clones.map(({ status }) => status), [201, 201]);
  assertEquals(clones.map(({ headers }) => headers.get("x-request-id")), ["first", null]);
  assertEquals(await Promise.all(clones.map((clone) => clone.text())), ["[]", "[]"]);
});

Deno.test.each<[status: number, target: string, headers: Record<string, string>]>([
  [200, "GET /v1/pets", {}],
  [200, "GET /v1/pets/1", {}],
  [201, "POST /v1/pets", { "content-type": "application/json" }],
  [304, "GET /v1/pets", { "if-none-match": "*" }],
  [204, "OPTIONS /v1/pets", {}],
  [204, "OPTIONS /v1/pets", { "access-control-request-method": "GET" }],
  [400, "GET /v1/pets?limit=0", {}],
  [401, "GET /v1/pets", { authorization: "Bearer x" }],
  [404, "GET /v1/pets/2", {}],
  [404, "GET /nowhere", {}],
  [405, "DELETE /v1/pets", {}],
  [200, "GET /health", {}],
  [200, "GET /docs/deprecations", {}],
])("app() sends with every %i what every response has: %s", async (status, target, headers) => {
  using service = await Harness.open();
  const { secret } = await service.issueKey();
  const init = {
    headers: { authorization: `Bearer ${secret}`, ...headers },
    body: target.startsWith("POST") ? PET : null,
  };
  await (await service.fetch("POST /v1/pets", { key: secret, json: JSON.parse(PET) })).body?.cancel();

  const response = await service.fetch(target, init);

  assertEquals(response.status, status);
  for (const [name, value] of Object.entries(ALWAYS)) assertEquals(response.headers.get(name), value);
  assertMatch(response.headers.get("x-request-id") ?? "", /^[\x21-\x7e]+$/);
  await response.body?.cancel();
});

Deno.test("app() sends with a 429 and a 503 what every response has", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey({ minute: 1, day: 9 });
  await (await service.fetch("GET /v1/pets", { key })).body?.cancel();

  const responses = [
    await service.fetch("GET /v1/pets", { key }),
    await service.fetch("GET /v1/pets", { key }),
  ];
  service.kv.getMany = () => Promise.reject(new Error("No answer"));
  responses.push(await service.fetch("GET /v1/pets", { key }));

  assertEquals(responses.map(({ status }) => status), [429, 429, 503]);
  for (const { headers } of responses) {
    for (const [name, value] of Object.entries(ALWAYS)) assertEquals(headers.get(name), value);
  }
});
