import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { IN_HASTE, residentMemory, type ServerProcess } from "./process.ts";
import {
  assertAlive,
  jsonHeaders,
  type RawAnswer,
  type RawCase,
  RawConnection,
  rawRequest,
  runCases,
} from "./raw_connection.ts";
import { ITEM, LIST, PATH } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

const MAX_BYTES = 65_536;
const CHUNKED = { "transfer-encoding": "chunked" };
const MIB = 1_048_576;

Deno.test("server responds correctly to unusual request bodies and stays up", async (t) => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const post = (headers: Record<string, string>, body = "") =>
    rawRequest(`POST ${PATH}`, { ...jsonHeaders(key), ...headers }, body);
  const inLines = chunk(`${ITEM}\n`) + chunk("");

  const cases: readonly RawCase[] = [
    ["a body", post({}, ITEM), 201],
    ["the largest body", post({}, ITEM.padEnd(MAX_BYTES)), 201],
    ["a body one byte too large", post({}, ITEM.padEnd(MAX_BYTES + 1)), 413],
    ["a length that is too large, before the body", post({ "content-length": "12582912" }), 413],
    ["a length beyond int64", post({ "content-length": "9".repeat(30) }), "refused"],
    ["a length that is not a number", post({ "content-length": "some" }, ITEM), "refused"],
    ["a negative length", post({ "content-length": "-1" }, ITEM), "refused"],
    ["a length that is too short", post({ "content-length": "5" }, ITEM), 400],
    [
      "two lengths, before the body",
      post({ "content-length": "300000000\r\ncontent-length: 300000000" }),
      400,
    ],
    ["no body", post({}), 400],
    ["a body in chunks", post(CHUNKED, chunk(ITEM) + chunk("")), 201],
    ["the largest body in chunks", post(CHUNKED, chunk(ITEM.padEnd(MAX_BYTES)) + chunk("")), 201],
    ["a body in chunks that is too large", post(CHUNKED, chunk(ITEM.padEnd(MAX_BYTES + 1))), 413],
    ["no bytes in chunks", post(CHUNKED, chunk("")), 400],
    ["a newline after the value", post({ ...CHUNKED, "idempotency-key": "1" }, inLines), 201],
    ["the same again", post({ ...CHUNKED, "idempotency-key": "1" }, inLines), 201],
    ["a body in 1,000 chunks and more", post(CHUNKED, chunk(" ").repeat(1_100) + chunk("")), 400],
    ["two transfer codings", post({ "transfer-encoding": "gzip, chunked" }, chunk(ITEM) + chunk("")), 400],
    ["both a length and chunks", post({ ...CHUNKED, "content-length": "4" }, chunk(ITEM)), "refused"],
    ["a transfer coding other than chunked", post({ "transfer-encoding": "gzip" }, ITEM), "refused"],
    ["chunked before another coding", post({ "transfer-encoding": "chunked, gzip" }, ITEM), "refused"],
    ["a body where none is expected", rawRequest(LIST, jsonHeaders(key), ITEM), 200],
    ["no key, before the body", rawRequest(`POST ${PATH}`, { "content-length": "29" }), 401],
    [
      "two content types",
      post({ "content-type": "application/json\r\ncontent-type: text/csv" }, ITEM),
      400,
    ],
    [
      "no body where none is required",
      rawRequest("POST /v1/account/key", { authorization: `Bearer ${key}` }),
      201,
    ],
    ["two idempotency keys", post({ "idempotency-key": '"a"\r\nidempotency-key: "b"' }, ITEM), 400],
  ];
  await runCases(t, server, cases);
});

Deno.test("server charges for requests with endless trailers, and ends their connections and memory", async () => {
  await using served = await ServedStore.start({ perDay: 10, process: IN_HASTE });
  const { server, key } = served;
  const before = await residentMemory(server.pid);

  const ends = await Promise.all([
    sendTrailers(server, rawRequest(`POST ${PATH}`, { ...jsonHeaders(key), ...CHUNKED }, chunk(ITEM))),
    sendTrailers(server, rawRequest(`POST ${PATH}`, { ...jsonHeaders(key), ...CHUNKED }, chunk("{"))),
    sendTrailers(server, rawRequest(LIST, { ...jsonHeaders(key), ...CHUNKED }, chunk(ITEM))),
  ]);

  assertEquals(ends.map((answer) => answer?.status), [408, 408, 200]);
  assertEquals(ends.map((answer) => answer?.headers.get("x-ratelimit-remaining")).sort(), ["7", "8", "9"]);
  // Ends only if the memory comes back.
  while (await residentMemory(server.pid) - before > 32 * MIB) await pause(50);
});

/** Sends 50 MB of trailers before the response, and more after it until the server closes the connection. */
async function sendTrailers(server: ServerProcess, request: string): Promise<RawAnswer | undefined> {
  using connection = await RawConnection.open(server.port);
  const trailers = `x-a: ${"b".repeat(1_000)}\r\n`.repeat(1_000);
  await connection.send(`${request}0\r\n`);
  const answering = connection.receive();
  for (let megabytes = 0; megabytes < 50; megabytes++) await connection.send(trailers);
  const answer = await answering;
  while (await connection.send(trailers));
  return answer;
}

Deno.test("server sends 100 Continue if the client expects it, unless it refuses the request", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const expecting = { ...jsonHeaders(key), expect: "100-continue" };
  const length = { "content-length": `${ITEM.length}` };

  for (const [framing, body] of [[length, ITEM], [CHUNKED, chunk(ITEM) + chunk("")]] as const) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(`POST ${PATH}`, { ...expecting, ...framing }));
    assertEquals((await connection.receive())?.status, 100);
    await connection.send(body);
    assertEquals((await connection.receive())?.status, 201);
  }

  for (
    const [status, headers] of [
      [401, { ...length, authorization: "Bearer nonsense" }],
      [413, { "content-length": "65537" }],
      [400, { ...length, "content-type": "text/plain" }],
    ] as const
  ) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(`POST ${PATH}`, { ...expecting, ...headers }));
    assertEquals((await finalAnswer(connection))?.status, status);
  }
  await assertAlive(server);
});

Deno.test("server returns 400 if the client ends before an optional body in chunks is complete", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  using connection = await RawConnection.open(server.port);

  await connection.send(rawRequest("POST /v1/account/key", { ...jsonHeaders(key), ...CHUNKED }));
  await connection.closeWrite();

  assertEquals((await connection.receive())?.status, 400);
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
