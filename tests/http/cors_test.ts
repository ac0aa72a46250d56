import { assertEquals } from "@std/assert";
import { Harness, type HarnessRequest } from "../harness.ts";

const ORIGIN = { origin: "https://shop.example" };
const PET = { name: "Rex", categoryId: 7 };

/** Response headers that any page may read (Fetch standard). */
const SAFELISTED = [
  "cache-control",
  "content-language",
  "content-length",
  "content-type",
  "expires",
  "last-modified",
  "pragma",
];
/** Response headers for the browser itself or for the connection. */
const FOR_BROWSERS = [
  "access-control-allow-origin",
  "access-control-expose-headers",
  "connection",
  "vary",
  "x-content-type-options",
];

Deno.test.each([
  ["GET", "/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["POST", "/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["GET", "/v1/pets/1", "GET, HEAD, OPTIONS"],
  ["POST", "/v1/messages", "OPTIONS, POST"],
])("optionsResponse() lets a page of any origin send %s to %s", async (method, path, allow) => {
  using service = await Harness.open();

  const response = await service.fetch(`OPTIONS ${path}`, {
    headers: {
      ...ORIGIN,
      "access-control-request-method": method,
      "access-control-request-headers":
        "authorization,content-type,idempotency-key,if-none-match,x-request-id",
    },
  });

  assertEquals(response.status, 204);
  assertEquals(response.headers.get("access-control-allow-origin"), "*");
  assertEquals(response.headers.get("access-control-allow-credentials"), null);
  assertEquals(response.headers.get("access-control-allow-methods"), allow);
  assertEquals(
    names(response.headers.get("access-control-allow-headers")),
    ["authorization", "content-type", "idempotency-key", "if-none-match", "x-request-id"],
  );
  assertEquals(response.headers.get("access-control-max-age"), "86400");
  assertEquals(response.body, null);
});

Deno.test("optionsResponse() says nothing of preflights to an OPTIONS that is none", async () => {
  using service = await Harness.open();

  const { headers } = await service.fetch("OPTIONS /v1/pets", { headers: ORIGIN });

  assertEquals(headers.get("access-control-allow-origin"), "*");
  assertEquals(headers.get("access-control-allow-methods"), null);
  assertEquals(headers.get("access-control-allow-headers"), null);
  assertEquals(headers.get("access-control-max-age"), null);
});

Deno.test("optionsResponse() is charged neither to the address nor to the key", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey("free");
  const headers = { ...ORIGIN, "access-control-request-method": "GET" };
  for (let count = 0; count < 70; count++) {
    const response = await service.fetch("OPTIONS /v1/pets", { headers, ...(count % 2 ? { key } : {}) });
    assertEquals(response.status, 204);
  }

  const withKey = await service.fetch("GET /v1/pets", { key });
  const without = await service.fetch("GET /v1/pets");

  assertEquals(withKey.headers.get("x-ratelimit-remaining"), "59");
  assertEquals(without.headers.get("x-ratelimit-remaining"), "59");
});

Deno.test("setCorsHeaders() exposes every header that a client has a use for", async () => {
  const sent = new Set<string>();
  for (const { headers } of await variedResponses(ORIGIN)) {
    assertEquals(headers.get("access-control-allow-origin"), "*");
    assertEquals(headers.get("access-control-allow-credentials"), null);
    const exposed = names(headers.get("access-control-expose-headers"));
    for (const name of headers.keys()) {
      sent.add(name);
      const readable = [...SAFELISTED, ...FOR_BROWSERS, ...exposed].includes(name);
      assertEquals([name, readable], [name, true]);
    }
  }
  for (
    const name of ["link", "etag", "idempotency-replayed", "ratelimit", "retry-after", "www-authenticate"]
  ) {
    assertEquals([name, sent.has(name)], [name, true]);
  }
});

Deno.test("setCorsHeaders() is left out where no origin asks", async () => {
  for (const { headers } of await variedResponses({})) {
    assertEquals([...headers.keys()].filter((name) => name.startsWith("access-control-")), []);
  }
});

Deno.test.each([
  ["/v1/pets", 200],
  ["/v1/pets/1", 200],
  ["/v1/pets/2", 404],
  ["/v1/messages", 405],
  ["/docs/deprecations", 200],
  ["/health", 200],
])("app() tells caches at GET %s that the origin matters", async (path, status) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await service.fetch("POST /v1/pets", { key, json: PET });

  for (const headers of [{}, ORIGIN]) {
    const response = await service.fetch(`GET ${path}`, { key, headers });
    assertEquals(response.status, status);
    assertEquals(response.headers.get("vary"), "Origin");
  }
});

/** Responses with, between them, every header that the service sends. */
async function variedResponses(headers: Record<string, string>): Promise<Response[]> {
  const service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const { secret: spent } = await service.issueKey({ minute: 0, day: 10 });
  const once = { ...headers, "idempotency-key": "1" };
  const exchanges: readonly [status: number, target: string, init: HarnessRequest][] = [
    [201, "POST /v1/pets", { key, json: PET, headers: once }],
    [201, "POST /v1/pets", { key, json: PET, headers: once }],
    [422, "POST /v1/pets", { key, json: { ...PET, name: "Tom" }, headers: once }],
    [201, "POST /v1/pets", { key, json: PET, headers }],
    [202, "POST /v1/messages", { key, json: { message: "Hello" }, headers }],
    [200, "GET /v1/pets?limit=1", { key, headers }],
    [304, "GET /v1/pets?limit=1", { key, headers: { ...headers, "if-none-match": "*" } }],
    [200, "GET /v1/pets/1", { key, headers }],
    [404, "GET /v1/pets/9", { key, headers }],
    [400, "GET /v1/pets?limit=0", { key, headers }],
    [401, "GET /v1/pets", { headers }],
    [404, "GET /v1/nothing", { key, headers }],
    [405, "PUT /v1/pets", { key, headers }],
    [413, "POST /v1/pets", { key, json: { ...PET, pad: "x".repeat(65_536) }, headers }],
    [429, "GET /v1/pets", { key: spent, headers }],
    [204, "OPTIONS /v1/pets", { headers }],
    [200, "GET /health", { headers }],
    [200, "GET /ready", { headers }],
    [200, "GET /docs/deprecations", { headers }],
  ];
  const responses: Response[] = [];
  for (const [status, target, init] of exchanges) {
    const response = await service.fetch(target, init);
    assertEquals([target, response.status], [target, status]);
    responses.push(response);
  }
  service.kv.close();
  responses.push(await service.fetch("GET /v1/pets", { key, headers }));
  return responses;
}

function names(list: string | null): string[] {
  return list?.toLowerCase().split(", ") ?? [];
}
