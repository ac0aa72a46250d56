import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { assertAlive, type RawCase, runCases } from "./expectations.ts";
import { type RawAnswer, RawConnection, rawRequest } from "./raw_connection.ts";
import { TemporaryStore } from "./temporary_store.ts";

const ANIMAL = '{"name":"Rex","categoryId":1}';
const MAX_BYTES = 65_536;

Deno.test("server answers sensibly and goes on when the request's body is unusual", async (t) => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const post = (headers: Record<string, string>, body = "") =>
    rawRequest("POST /v1/pets", { authorization, "content-type": "application/json", ...headers }, body);
  const chunked = { "transfer-encoding": "chunked" };
  const tooMuch = "x".repeat(MAX_BYTES + 1);

  const cases: readonly RawCase[] = [
    ["a body", post({}, ANIMAL), 201],
    ["a body in one chunk", post(chunked, chunk(ANIMAL) + chunk("")), 201],
    ["a body in many chunks", post(chunked, [...ANIMAL].map(chunk).join("") + chunk("")), 201],
    ["a chunk extension and a trailer", post(chunked, `1d;a=b\r\n${ANIMAL}\r\n0\r\nx-a: b\r\n\r\n`), 201],
    ["the largest body", post({}, ANIMAL + " ".repeat(MAX_BYTES - ANIMAL.length)), 201],
    ["a body too large by a byte", post({}, ANIMAL + " ".repeat(MAX_BYTES - ANIMAL.length + 1)), 413],
    ["a chunk too large", post(chunked, chunk(tooMuch) + chunk("")), 413],
    ["chunks too large together", post(chunked, chunk("x".repeat(1_000)).repeat(70) + chunk("")), 413],
    ["a length too large, before any of it", post({ "content-length": "12582912" }), 413],
    ["a length beyond int64", post({ "content-length": "9".repeat(30) }), "refused"],
    ["a length that is no number", post({ "content-length": "some" }, ANIMAL), "refused"],
    ["a negative length", post({ "content-length": "-1" }, ANIMAL), "refused"],
    ["a length too short", post({ "content-length": "5" }, ANIMAL), 400],
    ["no body", post({}), 400],
    [
      "length and chunks both",
      post({ ...chunked, "content-length": "4" }, chunk(ANIMAL) + chunk("")),
      "refused",
    ],
    ["a transfer coding other than chunked", post({ "transfer-encoding": "gzip" }, ANIMAL), "refused"],
    ["chunked not as the last coding", post({ "transfer-encoding": "chunked, gzip" }, ANIMAL), "refused"],
    ["a chunk size that is no number", post(chunked, `zz\r\n${ANIMAL}\r\n`), "refused"],
    ["a bad chunk size after a good one", post(chunked, `${chunk(ANIMAL)}zz\r\n`), "refused"],
    ["an absurd chunk size", post(chunked, "fffffffffffffffff\r\n"), "refused"],
    ["a body where none is expected", rawRequest("GET /v1/pets", { authorization }, ANIMAL), 200],
    ["no key, before the body", rawRequest("POST /v1/pets", { "content-length": "29" }), 401],
    [
      "two content types",
      post({ "content-type": "application/json\r\ncontent-type: text/csv" }, ANIMAL),
      400,
    ],
    ["two idempotency keys", post({ "idempotency-key": '"a"\r\nidempotency-key: "b"' }, ANIMAL), 400],
  ];
  await runCases(t, server, cases);
});

Deno.test("server says 100 and then answers when the client expects to be asked for the body", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);
  const headers = {
    authorization,
    "content-type": "application/json",
    "content-length": `${ANIMAL.length}`,
    expect: "100-continue",
  };

  await connection.send(rawRequest("POST /v1/pets", headers));
  const first = await connection.receive();
  await connection.send(ANIMAL);
  const second = await connection.receive();

  assertEquals(first?.status, 100);
  assertEquals(second?.status, 201);
  assertEquals(second?.body, '{"id":1,"name":"Rex","categoryId":1,"status":"available"}');
});

Deno.test("server refuses without waiting for the body when a client that expects 100 has no chance", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const expecting = { "content-type": "application/json", expect: "100-continue" };

  for (
    const [status, headers] of [
      [401, { ...expecting, "content-length": "29" }],
      [413, { ...expecting, "content-length": "65537", authorization }],
      [400, { ...expecting, "content-length": "29", "content-type": "text/plain", authorization }],
    ] as const
  ) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("POST /v1/pets", headers));
    assertEquals((await finalAnswer(connection))?.status, status);
  }
  await assertAlive(server);
});

Deno.test("server answers 408 and goes on when a body does not arrive in time", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);
  const headers = { authorization, "content-type": "application/json", "content-length": "29" };

  await connection.send(rawRequest("POST /v1/pets", headers, ANIMAL.slice(0, 9)));
  const answer = await connection.receive();

  assertEquals(answer?.status, 408);
  // Deno 2.9 says it as well, so it may come twice.
  assertEquals(new Set(answer?.headers.get("connection")?.split(", ")), new Set(["close"]));
  assertMatch(answer?.headers.get("x-ratelimit-remaining") ?? "", /^\d+$/);
  assertStringIncludes(answer?.body ?? "", '"code":"request_timeout"');
  await assertAlive(server);
});

/** The answer after any number of interim ones. */
async function finalAnswer(connection: RawConnection): Promise<RawAnswer | undefined> {
  while (true) {
    const answer = await connection.receive();
    if (answer?.status !== 100) return answer;
  }
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
