import { assertEquals, assertLess } from "@std/assert";
import { residentMemory } from "../support/process.ts";
import {
  assertAlive,
  jsonHeaders,
  type RawAnswer,
  type RawCase,
  RawConnection,
  rawRequest,
  runCases,
} from "../support/raw_connection.ts";
import { ServedStore } from "../support/temporary_store.ts";

const ANIMAL = '{"name":"Rex","categoryId":1}';
const MAX_BYTES = 65_536;
const CHUNKED = { "transfer-encoding": "chunked" };
const MIB = 1_048_576;

Deno.test("server responds correctly to unusual request bodies and stays up", async (t) => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const post = (headers: Record<string, string>, body = "") =>
    rawRequest("POST /v1/pets", { ...jsonHeaders(key), ...headers }, body);

  const cases: readonly RawCase[] = [
    ["a body", post({}, ANIMAL), 201],
    ["the largest body", post({}, ANIMAL.padEnd(MAX_BYTES)), 201],
    ["a body one byte too large", post({}, ANIMAL.padEnd(MAX_BYTES + 1)), 413],
    ["a length that is too large, before the body", post({ "content-length": "12582912" }), 413],
    ["a length beyond int64", post({ "content-length": "9".repeat(30) }), "refused"],
    ["a length that is not a number", post({ "content-length": "some" }, ANIMAL), "refused"],
    ["a negative length", post({ "content-length": "-1" }, ANIMAL), "refused"],
    ["a length that is too short", post({ "content-length": "5" }, ANIMAL), 400],
    ["no body", post({}), 400],
    ["a body in chunks", post(CHUNKED, chunk(ANIMAL) + chunk("")), 411],
    ["both a length and chunks", post({ ...CHUNKED, "content-length": "4" }, chunk(ANIMAL)), "refused"],
    ["a transfer coding other than chunked", post({ "transfer-encoding": "gzip" }, ANIMAL), "refused"],
    ["chunked before another coding", post({ "transfer-encoding": "chunked, gzip" }, ANIMAL), "refused"],
    ["a body where none is expected", rawRequest("GET /v1/pets", jsonHeaders(key), ANIMAL), 200],
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

for (const [target, status] of [["POST /v1/pets", 411], ["GET /v1/pets", 200]] as const) {
  Deno.test(`server charges for ${target} with endless trailers and closes the connection`, async () => {
    await using served = await ServedStore.start({ perDay: 10 });
    const { server, key } = served;
    using connection = await RawConnection.open(server.port);
    const before = await residentMemory(server.pid);

    await connection.send(rawRequest(target, { ...jsonHeaders(key), ...CHUNKED }, `${chunk(ANIMAL)}0\r\n`));
    const answering = connection.receive();
    const trailers = `x-a: ${"b".repeat(1_000)}\r\n`.repeat(1_000);
    for (let megabytes = 0; megabytes < 50; megabytes++) await connection.send(trailers);
    const answer = await answering;

    assertEquals(answer?.status, status);
    assertEquals(answer?.headers.get("x-ratelimit-remaining"), "9");
    assertEquals(await connection.send(trailers), false);
    assertLess(await residentMemory(server.pid) - before, 32 * MIB);
  });
}

Deno.test("server sends 100 Continue if the client expects it, unless it refuses the request", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const expecting = { ...jsonHeaders(key), "content-length": `${ANIMAL.length}`, expect: "100-continue" };
  using connection = await RawConnection.open(server.port);

  await connection.send(rawRequest("POST /v1/pets", expecting));
  assertEquals((await connection.receive())?.status, 100);
  await connection.send(ANIMAL);
  assertEquals((await connection.receive())?.status, 201);

  for (
    const [status, headers] of [
      [401, { authorization: "Bearer nonsense" }],
      [413, { "content-length": "65537" }],
      [400, { "content-type": "text/plain" }],
    ] as const
  ) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("POST /v1/pets", { ...expecting, ...headers }));
    assertEquals((await finalAnswer(connection))?.status, status);
  }
  await assertAlive(server);
});

Deno.test("server keeps a connection open after a 411 without Connection: close", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  using connection = await RawConnection.open(server.port);

  await connection.send(
    rawRequest("POST /v1/pets", { ...jsonHeaders(key), ...CHUNKED }, chunk(ANIMAL) + chunk("")),
  );
  const refused = await connection.receive();
  await connection.send(rawRequest("GET /health"));
  const next = await connection.receive();

  assertEquals([refused?.status, refused?.headers.get("connection"), next?.status], [411, null, 200]);
});

/** The final response, after any interim ones. */
async function finalAnswer(connection: RawConnection): Promise<RawAnswer | undefined> {
  let answer = await connection.receive();
  while (answer?.status === 100) answer = await connection.receive();
  return answer;
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
