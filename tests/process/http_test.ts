// HTTP as Deno's server speaks it: unusual requests on one server, which stays up.
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { assert, assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { upTo } from "../support/client.ts";
import { residentMemory, type ServerProcess } from "./process.ts";
import { exchange, jsonHeaders, type RawAnswer, RawConnection, rawRequest } from "./raw_connection.ts";
import { addItem, ITEM, LIST, listIds, PATH, SHIPPED } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

const MAX_BYTES = 65_536;
const MIB = 1_048_576;
const CHUNKED = { "transfer-encoding": "chunked" };
const LONG = "a".repeat(1_000_000);

let served: ServedStore;
Deno.test.beforeAll(async () => {
  served = await ServedStore.start();
});
Deno.test.afterAll(() => served[Symbol.asyncDispose]());

/** What a request may get: a status of the service or, if the HTTP layer refuses it, one from 400 to 499 or the end. */
type Expected = 200 | 201 | 204 | 400 | 401 | 404 | 405 | 413 | "refused";

/** Sends each request on its own connection, and checks that the server still responds. */
async function tryAll(cases: readonly (readonly [name: string, request: string, expected: Expected])[]) {
  const seen = await Promise.all(cases.map(async ([name, request, expected]) => {
    using connection = await RawConnection.open(served.server.port);
    await connection.send(request);
    const { status, body } = await connection.receive() ?? { status: 400, body: "" };
    const isError = /^\{"code":"[a-z_]+","message":".+","status":\d{3}(?:,"field":"[^"]+")?\}$/.test(body);
    const isBody = expected === 204 ? body === "" : expected === "refused" || expected < 400 || isError;
    return [name, expected === "refused" && status >= 400 && status < 500 ? expected : status, isBody];
  }));

  assertEquals(seen, cases.map(([name, , expected]) => [name, expected, true]));
  await assertAlive();
}

async function assertAlive(): Promise<void> {
  assertEquals((await exchange(served.server, rawRequest("GET /health"))).status, 200);
}

function post(headers: Record<string, string>, body = ""): string {
  return rawRequest(`POST ${PATH}`, { ...jsonHeaders(served.key), ...headers }, body);
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

Deno.test("server responds correctly to unusual request heads and stays up", async () => {
  const { authorization } = jsonHeaders(served.key);
  const send = (target: string, headers = {}) => rawRequest(target, { authorization, ...headers });
  const get = (path: string) => send(`GET ${path}`);
  const plain = (...lines: readonly string[]) =>
    [...lines, `authorization: ${authorization}`, "", ""].join("\r\n");
  const list = (...lines: readonly string[]) => plain(`${LIST} HTTP/1.1`, ...lines);
  // A method of `/`: without the page, nothing is there.
  const unlisted = (await served.server.fetch("HEAD /")).ok ? 405 : 404;

  await tryAll([
    ["OPTIONS *", rawRequest("OPTIONS *"), 204],
    ["TRACE", send(`TRACE ${PATH}`), 405],
    ["a long method", send(`${"A".repeat(2_000)} ${PATH}`), 405],
    ["CONNECT", send("CONNECT localhost:80"), unlisted],
    ["a method that is not a token", send(`G@T ${PATH}`), "refused"],
    ["an absurdly long path", get(`${PATH}/${LONG}`), "refused"],
    ["an absurdly long header", send(LIST, { "x-long": LONG }), "refused"],
    ["200 headers", send(LIST, Object.fromEntries(upTo(200).map((name) => [`x-${name}`, "1"]))), "refused"],
    ["a path above the root", get("/.."), 404],
    ["a path with a .. segment", get(`/v1/..${PATH}`), 404],
    ["an escaped .. segment", get(`/v1/x/%2e%2e/${SHIPPED.name}`), 404],
    ["the absolute form", get(`http://localhost${PATH}`), 200],
    ["the absolute form with another host", get(`http://other.example${PATH}`), 200],
    ["the absolute form with an invalid host", get(`http://other.example;a='b'${PATH}`), 400],
    ["the absolute form without a path", send("POST http://other.example"), unlisted],
    ["a space in the path", get(`${PATH} 1`), "refused"],
    ["a non-ASCII letter in the path", get(`${PATH}/é`), "refused"],
    ["a fragment", get(`${PATH}#1`), 404],
    ["a path without a slash", get(PATH.slice(1)), "refused"],
    ["an empty target", get(""), "refused"],
    ["two Authorization headers", list("host: a", "authorization: Bearer x"), 401],
    ["two X-Request-Id headers", list("host: a", "x-request-id: 1", "x-request-id: 2"), 200],
    ["two Host headers", list("host: a", "host: b"), "refused"],
    ["no Host", list(), 200],
    ["an empty Host", list("host:"), 200],
    ["lines that end with a line feed alone", list("host: a").replaceAll("\r\n", "\n"), 200],
    ["a Host with a path", plain("GET /health HTTP/1.1", `host: a${PATH}?`), 400],
    ["HTTP/1.0", plain(`${LIST} HTTP/1.0`), 200],
    ["HTTP/0.9", `${LIST}\r\n\r\n`, "refused"],
    ["an unknown version", plain(`${LIST} HTTP/3.7`, "host: a"), "refused"],
    ["a header without a colon", list("host: a", "nonsense"), "refused"],
    ["a NUL in a header", list("host: a", "x: \0"), "refused"],
    ["empty lines before the request", `\r\n\r\n${get(PATH)}`, 200],
    ["a TLS handshake", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "refused"],
  ]);
});

Deno.test("server responds correctly to unusual request bodies and stays up", async () => {
  const { authorization } = jsonHeaders(served.key);

  await tryAll([
    ["a body", post({}, ITEM), 201],
    ["the largest body", post({}, ITEM.padEnd(MAX_BYTES)), 201],
    ["a body one byte too large", post({}, ITEM.padEnd(MAX_BYTES + 1)), 413],
    ["a length that is too large, before the body", post({ "content-length": "12582912" }), 413],
    ["a length beyond int64", post({ "content-length": "9".repeat(30) }), "refused"],
    ["a negative length", post({ "content-length": "-1" }, ITEM), "refused"],
    [
      "two lengths, before the body",
      post({ "content-length": "300000000\r\ncontent-length: 300000000" }, ITEM),
      400,
    ],
    ["a body in chunks", post(CHUNKED, chunk(ITEM) + chunk("")), 201],
    ["the largest body in chunks", post(CHUNKED, chunk(ITEM.padEnd(MAX_BYTES)) + chunk("")), 201],
    ["a body in chunks that is too large", post(CHUNKED, chunk(ITEM.padEnd(MAX_BYTES + 1))), 413],
    ["two transfer codings", post({ "transfer-encoding": "gzip, chunked" }, chunk(ITEM) + chunk("")), 400],
    ["a transfer coding other than chunked", post({ "transfer-encoding": "gzip" }, ITEM), "refused"],
    ["a body where none is expected", rawRequest(LIST, jsonHeaders(served.key), ITEM), 200],
    ["no body where none is required", rawRequest("POST /v1/account/key", { authorization }), 201],
    ["no key, before the body", rawRequest(`POST ${PATH}`, { "content-length": "29" }), 401],
  ]);
});

/** A request inside the body of another. It has no key, so it would get 401. */
const INNER = `${LIST}/777 HTTP/1.1\r\nhost: a\r\n\r\n`;
const LENGTH = `content-length: ${INNER.length}`;
const CHUNKS = chunk(INNER) + chunk("");

Deno.test.each<[name: string, lines: readonly string[], body: string]>([
  ["a length and chunks", [LENGTH, "transfer-encoding: chunked"], chunk("") + INNER],
  ["chunks and a length", ["transfer-encoding: chunked", LENGTH], chunk("") + INNER],
  ["two lengths", ["content-length: 0", LENGTH], INNER],
  ["lengths in a list", [`content-length: 0, ${INNER.length}`], INNER],
  ["a length with a sign", [`content-length: +${INNER.length}`], INNER],
  ["a length in hexadecimal", [`content-length: 0x${INNER.length.toString(16)}`], INNER],
  ["a space before the colon", ["transfer-encoding : chunked"], CHUNKS],
  ["a tab before the coding", ["transfer-encoding:\tchunked"], CHUNKS],
  ["an unknown coding", ["transfer-encoding: xchunked", LENGTH], INNER],
  ["chunked and identity", ["transfer-encoding: chunked, identity"], CHUNKS],
  ["chunked twice", ["transfer-encoding: chunked", "transfer-encoding: chunked"], CHUNKS],
  ["a folded line", ["transfer-encoding:\r\n chunked", LENGTH], INNER],
  ["a vertical tab in the coding", ["transfer-encoding: \vchunked", LENGTH], INNER],
  ["a chunk's size beyond 64 bits", ["transfer-encoding: chunked"], `10000000000000000\r\n${INNER}`],
  ["a chunk extension with a line feed", ["transfer-encoding: chunked"], `1;\n${CHUNKS}`],
])("server never responds to a request inside the body of another: %s", async (_, lines, body) => {
  const { authorization } = jsonHeaders(served.key);
  const head = [`POST ${PATH} HTTP/1.1`, "host: a", `authorization: ${authorization}`, ...lines, "", ""];
  using connection = await RawConnection.open(served.server.port);

  await connection.send(head.join("\r\n") + body);
  await connection.closeWrite().catch(() => {});

  const statuses = [];
  for (let answer; (answer = await connection.receive()) !== undefined;) statuses.push(answer.status);
  assertEquals(statuses.filter((status) => status < 400 || status === 401), []);
});

Deno.test("server stores nothing and stays up if clients disconnect before a body or response ends", async () => {
  const { server, key } = served;
  const before = await listIds(server, key);

  for (const ending of ["close", "half-close"] as const) {
    using connection = await RawConnection.open(server.port);
    await connection.send(post({ "content-length": `${ITEM.length}`, expect: "100-continue" }));
    assertEquals((await connection.receive())?.status, 100);
    await connection.send(ITEM.slice(0, -1));
    if (ending === "close") continue;
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 400);
  }
  await Promise.all(
    upTo(50).map(async () => {
      using connection = await RawConnection.open(server.port);
      await connection.send(rawRequest(LIST, jsonHeaders(key)));
    }),
  );

  assertEquals(await listIds(server, key), before);
  assertEquals((await addItem(server, key)).status, 201);
});

Deno.test("server charges for requests with endless trailers, and ends their connections and memory", async () => {
  await using own = await ServedStore.start({ perDay: 10 });
  const { server, key } = own;
  const headers = { ...jsonHeaders(key), ...CHUNKED };
  const before = await residentMemory(server.pid);

  const ends = await Promise.all([
    sendTrailers(server, rawRequest(`POST ${PATH}`, headers, chunk(ITEM))),
    sendTrailers(server, rawRequest(`POST ${PATH}`, headers, chunk("{"))),
    sendTrailers(server, rawRequest(LIST, headers, chunk(ITEM))),
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

Deno.test("server frames responses as HTTP/1.0 and HTTP/1.1 require, and compresses none", async () => {
  const { server, key } = served;
  for (let count = 0; count < 3; count++) await addItem(server, key);
  const namesIn = (headers?: Headers) =>
    [...headers?.keys() ?? []].filter((name) => !["content-length", "transfer-encoding"].includes(name));

  for (const path of [PATH, "/health"]) {
    const headers = { authorization: `Bearer ${key}`, connection: "close", "accept-encoding": "gzip, br" };
    const get = rawRequest(`GET ${path}`, headers);
    const newer = await exchange(server, get);
    const older = await exchange(server, get.replace("HTTP/1.1", "HTTP/1.0"));
    using connection = await RawConnection.open(server.port);
    await connection.send(get.replace("GET", "HEAD"));
    const head = await connection.receive({ bodiless: true });
    const size = new TextEncoder().encode(newer.body).length;
    // A long body is chunked.
    const framing = size > 100 ? ["chunked", null] : [null, `${size}`];

    const framings = [newer, older, head].map((answer) => [
      answer?.status,
      ...["transfer-encoding", "content-length", "content-encoding"].map((name) => answer?.headers.get(name)),
    ]);
    const sized = [newer.status, null, `${size}`, null];
    assertEquals([path, ...framings], [path, [newer.status, ...framing, null], sized, sized]);
    assertEquals(await connection.receiveRest(), "");
    assertEquals([older.body.length, namesIn(head?.headers)], [newer.body.length, namesIn(newer.headers)]);
  }
});

Deno.test("server ends its response to HEAD with the headers over HTTP/2, and 304 has no length", async () => {
  const client = connect(served.server.origin);

  for (const [tag, status] of [['"other"', 200], ["*", 304]] as const) {
    const sent = { ":method": "HEAD", ":path": "/v1/openapi.json", "if-none-match": tag };
    const [headers, flags] = await once(client.request(sent).end(), "response");
    const isLast = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    assertEquals([headers[":status"], "content-length" in headers, isLast], [status, status === 200, true]);
  }

  client.destroy();
});
