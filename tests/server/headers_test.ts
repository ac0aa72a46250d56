import { assertEquals, assertGreater, assertMatch, assertNotEquals, assertStringIncludes } from "@std/assert";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import type { ServerProcess } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

const ANIMAL = '{"name":"Rex","categoryId":9007199254740993}';
const JSON_TYPE = { "content-type": "application/json" };

Deno.test("server sends limit headers with every status when the path is below /v1", async (t) => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  const spent = await store.issueKey({ perDay: 1 });
  await using server = await store.serve();
  const send = (request: string) => exchange(server, request);
  const listed = await send(rawRequest("GET /v1/pets", { authorization }));
  const etag = listed.headers.get("etag") ?? "";
  await send(rawRequest("GET /v1/pets", { authorization: spent.authorization }));

  const cases: readonly [status: number, request: string][] = [
    [200, rawRequest("GET /v1/pets", { authorization })],
    [200, rawRequest("HEAD /v1/pets", { authorization })],
    [304, rawRequest("GET /v1/pets", { authorization, "if-none-match": etag })],
    [201, rawRequest("POST /v1/pets", { authorization, ...JSON_TYPE }, ANIMAL)],
    [202, rawRequest("POST /v1/messages", { authorization, ...JSON_TYPE }, '{"message":"Hello"}')],
    [204, rawRequest("OPTIONS /v1/pets")],
    [400, rawRequest("GET /v1/pets?limit=0", { authorization })],
    [401, rawRequest("GET /v1/pets")],
    [401, rawRequest("GET /v1/pets", { authorization: "Bearer nonsense" })],
    [404, rawRequest("GET /v1/pets/77", { authorization })],
    [404, rawRequest("GET /v1/nothing", { authorization })],
    [405, rawRequest("DELETE /v1/pets", { authorization })],
    [413, rawRequest("POST /v1/pets", { authorization, ...JSON_TYPE, "content-length": "65537" })],
    [429, rawRequest("GET /v1/pets", { authorization: spent.authorization })],
  ];
  for (const [status, request] of cases) {
    await t.step(`${status} for ${request.split(" HTTP", 1)[0]}`, async () => {
      const { headers, ...answer } = await send(request);
      assertEquals(answer.status, status);
      assertMatch(headers.get("x-ratelimit-limit") ?? "", /^[1-9]\d*$/);
      assertMatch(headers.get("x-ratelimit-remaining") ?? "", /^\d+$/);
      assertMatch(headers.get("x-ratelimit-reset") ?? "", /^[1-9]\d{9}$/);
      assertMatch(headers.get("ratelimit-policy") ?? "", /^"minute";q=\d+;w=60(, "day";q=\d+;w=86400)?$/);
      assertMatch(headers.get("ratelimit") ?? "", /^"minute";r=\d+;t=\d+(, "day";r=\d+;t=\d+)?$/);
      assertEquals(headers.has("retry-after"), status === 429);
      assertEquals(headers.has("www-authenticate"), status === 401);
    });
  }
});

Deno.test("server answers a preflight without a key and charges nobody when a page asks", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();
  const preflight = rawRequest("OPTIONS /v1/pets", {
    origin: "https://shop.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,idempotency-key",
  });

  for (let time = 0; time < 3; time++) {
    const { status, headers, body } = await exchange(server, preflight);

    assertEquals(status, 204);
    assertEquals(headers.get("access-control-allow-origin"), "*");
    assertEquals(headers.get("access-control-allow-credentials"), null);
    assertEquals(members(headers, "access-control-allow-methods"), ["get", "head", "options", "post"]);
    const allowed = members(headers, "access-control-allow-headers");
    for (const name of ["authorization", "content-type", "idempotency-key", "if-none-match"]) {
      assertEquals(allowed.includes(name), true, name);
    }
    assertGreater(Number(headers.get("access-control-max-age")), 0);
    assertEquals(headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-limit"));
    assertEquals(body, "");
  }
});

Deno.test("server lets a page read its headers when the request has an Origin", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const origin = "https://shop.example";

  for (
    const request of [
      rawRequest("POST /v1/pets", { origin, authorization, ...JSON_TYPE }, ANIMAL),
      rawRequest("GET /v1/pets?limit=1", { origin, authorization }),
      rawRequest("GET /v1/pets/1", { origin, authorization }),
      rawRequest("GET /v1/pets", { origin }),
      rawRequest("GET /v1/nothing", { origin, authorization }),
    ]
  ) {
    const { headers } = await exchange(server, request);
    assertEquals(headers.get("access-control-allow-origin"), "*");
    const exposed = members(headers, "access-control-expose-headers");
    for (const name of ["ratelimit", "ratelimit-policy", "retry-after", "idempotency-replayed"]) {
      assertEquals(exposed.includes(name), true, name);
    }
    const safelisted = ["cache-control", "content-length", "content-type"];
    const unreadable = ["allow", "connection", "date", "vary", "x-content-type-options"];
    for (const [name] of headers) {
      if (name.startsWith("access-control-") || unreadable.includes(name)) continue;
      assertEquals([...exposed, ...safelisted].includes(name), true, name);
    }
  }
});

Deno.test("server sends no body with 304 and goes on when the client has the list already", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);
  await connection.send(rawRequest("POST /v1/pets", { authorization, ...JSON_TYPE }, ANIMAL));
  assertEquals((await connection.receive())?.status, 201);
  await connection.send(rawRequest("GET /v1/pets", { authorization }));
  const etag = (await connection.receive())?.headers.get("etag") ?? "";
  assertMatch(etag, /^(W\/)?"[\x21\x23-\x7e]+"$/);

  for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, `"other",W/${etag} , "more"`, "*"]) {
    await connection.send(rawRequest("GET /v1/pets", { authorization, "if-none-match": tags }));
    const answer = await connection.receive({ bodiless: true });
    assertEquals(answer?.status, 304, tags);
    assertEquals(answer?.headers.get("etag"), etag);
    assertEquals(answer?.headers.get("cache-control"), "private, no-cache");
    assertEquals(answer?.headers.get("content-type"), null);
  }
  await connection.send(rawRequest("GET /v1/pets", { authorization, "if-none-match": '"other"' }));
  const changed = await connection.receive();
  assertEquals(changed?.status, 200);
  assertStringIncludes(changed?.body ?? "", '"categoryId":9007199254740993');
});

Deno.test("server sends a body that decodes to the same when the client takes gzip", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  for (let count = 0; count < 20; count++) {
    await exchange(server, rawRequest("POST /v1/pets", { authorization, ...JSON_TYPE }, ANIMAL));
  }
  const list = async (headers: Record<string, string>) => {
    const response = await fetch(`${server.origin}/v1/pets`, { headers: { authorization, ...headers } });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };

  const plain = await list({ "accept-encoding": "identity" });
  const zipped = await list({ "accept-encoding": "gzip" });
  const etag = zipped.headers.get("etag") ?? "";
  const unchanged = await list({ "accept-encoding": "gzip", "if-none-match": etag });

  assertEquals([plain.status, zipped.status, unchanged.status], [200, 200, 304]);
  assertNotEquals(plain.body, "[]");
  assertEquals(zipped.body, plain.body);
  assertEquals(unchanged.body, "");
  assertEquals(etag.replace(/^W\//, ""), plain.headers.get("etag"));
});

/** The answer on a connection of its own. */
async function exchange(server: ServerProcess, request: string): Promise<{
  status: number;
  headers: Headers;
  body: string;
}> {
  using connection = await RawConnection.open(server.port);
  await connection.send(request);
  const answer = await connection.receive({ bodiless: request.startsWith("HEAD") });
  if (answer === undefined) throw new Error("The server closed the connection");
  return answer;
}

/** The members of a comma-separated header, in lower case. */
function members(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? "").toLowerCase().split(", ");
}
