import { assertEquals, assertMatch } from "@std/assert";
import { upTo } from "../support/client.ts";
import {
  exchange,
  jsonHeaders,
  type RawCase,
  RawConnection,
  rawRequest,
  runCases,
} from "./raw_connection.ts";
import { addItem, LIST, PATH, SHIPPED } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

const LONG = "a".repeat(1_000_000);

Deno.test("server responds correctly to unusual request heads and stays up", async (t) => {
  await using served = await ServedStore.start();
  const { authorization } = jsonHeaders(served.key);
  const send = (target: string, headers = {}) => rawRequest(target, { authorization, ...headers });
  const get = (path: string) => send(`GET ${path}`);
  const plain = (...lines: readonly string[]) =>
    [...lines, `authorization: ${authorization}`, "", ""].join("\r\n");
  const list = (...lines: readonly string[]) => plain(`${LIST} HTTP/1.1`, ...lines);

  // A method of `/`: without the page, nothing is there.
  const unlisted = (await served.server.fetch("HEAD /")).ok ? 405 : 404;
  const cases: readonly RawCase[] = [
    ["OPTIONS *", rawRequest("OPTIONS *"), 204],
    ["OPTIONS of an unknown path", rawRequest("OPTIONS /nothing"), 404],
    ["TRACE", send(`TRACE ${PATH}`), 405],
    ["a lowercase method", send(`get ${PATH}`), 405],
    ["a method with the name of a property", send(`constructor ${PATH}`), 405],
    ["a long method", send(`${"A".repeat(2_000)} ${PATH}`), 405],
    ["CONNECT", send("CONNECT localhost:80"), unlisted],
    ["a method that is not a token", send(`G@T ${PATH}`), "refused"],
    ["a long path", get(`${PATH}/${LONG.slice(0, 8_000)}`), 404],
    ["an absurdly long path", get(`${PATH}/${LONG}`), "refused"],
    ["an absurdly long header", send(LIST, { "x-long": LONG }), "refused"],
    ["200 headers", send(LIST, Object.fromEntries(upTo(200).map((name) => [`x-${name}`, "1"]))), "refused"],
    ["two slashes before the path", get(`/${PATH}`), 404],
    ["a path above the root", get("/.."), 404],
    ["a path with a .. segment", get(`/v1/..${PATH}`), 404],
    ["an escaped .. segment", get(`/v1/x/%2e%2e/${SHIPPED.name}`), 404],
    ["an escaped slash", get(`/v1%2F${SHIPPED.name}`), 404],
    ["the absolute form", get(`http://localhost${PATH}`), 200],
    ["the absolute form with another host", get(`http://other.example${PATH}`), 200],
    ["the absolute form with an invalid host", get(`http://other.example;a='b'${PATH}`), 400],
    ["the absolute form without a path", send("POST http://other.example"), unlisted],
    ["a malformed escape", get(`${PATH}/%zz`), 404],
    ["an escaped NUL", get(`${PATH}/%00`), 404],
    ["a space in the path", get(`${PATH} 1`), "refused"],
    ["a NUL in the path", get(`${PATH}/\0`), "refused"],
    ["a non-ASCII letter in the path", get(`${PATH}/é`), "refused"],
    ["a fragment", get(`${PATH}#1`), 404],
    ["a path without a slash", get(PATH.slice(1)), "refused"],
    ["an empty target", get(""), "refused"],
    ["two Authorization headers", list("host: a", "authorization: Bearer x"), 401],
    ["two X-Request-Id headers", list("host: a", "x-request-id: 1", "x-request-id: 2"), 200],
    ["two Host headers", list("host: a", "host: b"), "refused"],
    ["no Host", list(), 200],
    ["an empty Host", list("host:"), 200],
    ["a Host with a path", plain("GET /health HTTP/1.1", `host: a${PATH}?`), 400],
    ["a Host with a space", plain("GET /health HTTP/1.1", "host: a b"), 400],
    ["HTTP/1.0", plain(`${LIST} HTTP/1.0`), 200],
    ["HTTP/0.9", `${LIST}\r\n\r\n`, "refused"],
    ["an unknown version", plain(`${LIST} HTTP/3.7`, "host: a"), "refused"],
    ["a header without a colon", list("host: a", "nonsense"), "refused"],
    ["a space before the colon", list("host: a", "x : y"), "refused"],
    ["a NUL in a header", list("host: a", "x: \0"), "refused"],
    ["a non-ASCII letter in a header", send(LIST, { "x-a": "é" }), 200],
    ["empty lines before the request", `\r\n\r\n${get(PATH)}`, 200],
    ["a TLS handshake", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "refused"],
  ];
  await runCases(t, served.server, cases);
});

Deno.test("server frames responses as HTTP/1.0, HTTP/1.1 and HTTP/2 require, and compresses none", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  for (let count = 0; count < 3; count++) await addItem(server, key);
  /** Sends a request whose response must have no body. */
  const bare = async (request: string) => {
    using connection = await RawConnection.open(server.port);
    await connection.send(request);
    const answer = await connection.receive({ bodiless: true });
    assertEquals(await connection.receiveRest(), "");
    return answer;
  };
  const namesIn = (headers?: Headers) =>
    [...headers?.keys() ?? []].filter((name) => !["content-length", "transfer-encoding"].includes(name));

  for (const path of [PATH, `${PATH}/1`, "/v1/account", "/nothing"]) {
    const authorization = `Bearer ${key}`;
    const headers = { authorization, connection: "close", "accept-encoding": "gzip, br" };
    const get = rawRequest(`GET ${path}`, headers);
    const newer = await exchange(server, get);
    const older = await exchange(server, get.replace("HTTP/1.1", "HTTP/1.0"));
    const head = await bare(get.replace("GET", "HEAD"));
    const size = new TextEncoder().encode(newer.body).length;
    // A long body is chunked.
    const framing = size > 100 ? ["chunked", null] : [null, `${size}`];
    const etag = newer.headers.get("etag");

    const framings = [newer, older, head].map((answer) => [
      answer?.status,
      ...["transfer-encoding", "content-length", "content-encoding"].map((name) => answer?.headers.get(name)),
    ]);
    const sized = [newer.status, null, `${size}`, null];
    assertEquals([path, ...framings], [path, [newer.status, ...framing, null], sized, sized]);
    assertEquals([older.body.length, namesIn(head?.headers)], [newer.body.length, namesIn(newer.headers)]);
    if (etag) {
      assertEquals(
        (await bare(rawRequest(`GET ${path}`, { ...headers, "if-none-match": etag })))?.status,
        304,
      );
    }
    for (const [method, frames] of [["GET", ["HEADERS", "DATA"]], ["HEAD", ["HEADERS"]]] as const) {
      const fields = { ":method": method, ":scheme": "http", ":path": path, authorization };
      assertEquals((await answerOf(server.port, Object.entries(fields))).frames, frames);
    }
  }
});

Deno.test("server refuses an HTTP/2 request with two lengths before its body arrives", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const length: [string, string] = ["content-length", "300000000"];
  const headers = { ":method": "POST", ":scheme": "http", ":path": PATH, ...jsonHeaders(key) };

  const { body } = await answerOf(server.port, [...Object.entries(headers), length, length], true);

  assertMatch(body, /"The Content-Length was sent twice\.","status":400/);
});

const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const [END_STREAM, END_HEADERS] = [1, 4];

/** Sends the headers of a request over HTTP/2. Resolves to the frames and the body of the response (RFC 9113 section 4.1). */
async function answerOf(
  port: number,
  headers: readonly (readonly [name: string, value: string])[],
  hasBody = false,
): Promise<{ readonly frames: readonly string[]; readonly body: string }> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const encode = (text: string) => [...new TextEncoder().encode(text)];
  const frame = (
    type: number,
    flags: number,
    id: number,
    content: readonly number[],
  ) => [0, 0, content.length, type, flags, 0, 0, 0, id, ...content];
  // Literal header fields without indexing (RFC 7541 section 6.2.2).
  const fields = headers.flatMap(([name, value]) => [
    ...[0, name.length, ...encode(name)],
    ...[value.length, ...encode(value)],
  ]);
  const preface = [...encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ...frame(SETTINGS, 0, 0, [])];
  await connection.write(
    Uint8Array.from([
      ...preface,
      ...frame(HEADERS, hasBody ? END_HEADERS : END_STREAM | END_HEADERS, 1, fields),
    ]),
  );

  const frames: string[] = [];
  let body = "";
  let received: number[] = [];
  for await (const chunk of connection.readable) {
    received.push(...chunk);
    while (received.length >= 9) {
      const [high = 0, middle = 0, low = 0, type, flags = 0, , , , id] = received;
      const end = 9 + (high << 16) + (middle << 8) + low;
      if (received.length < end) break;
      const content = received.slice(9, end);
      received = received.slice(end);
      if (id !== 1 || (type !== DATA && type !== HEADERS)) continue;
      frames.push(type === DATA ? "DATA" : "HEADERS");
      if (type === DATA) body += new TextDecoder().decode(Uint8Array.from(content));
      if (flags & END_STREAM) return { frames, body };
    }
  }
  throw new Error("The server closed the connection");
}
