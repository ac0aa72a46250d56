import { assertEquals } from "@std/assert";
import { addAnimal } from "../support/client.ts";
import {
  exchange,
  jsonHeaders,
  type RawCase,
  RawConnection,
  rawRequest,
  runCases,
} from "../support/raw_connection.ts";
import { ServedStore } from "../support/temporary_store.ts";

const LONG = "a".repeat(1_000_000);

Deno.test("server responds correctly to unusual request heads and stays up", async (t) => {
  await using served = await ServedStore.start();
  const { authorization } = jsonHeaders(served.key);
  const send = (target: string, headers = {}) => rawRequest(target, { authorization, ...headers });
  const get = (path: string) => send(`GET ${path}`);
  const plain = (...lines: readonly string[]) =>
    [...lines, `authorization: ${authorization}`, "", ""].join("\r\n");
  const list = (...lines: readonly string[]) => plain("GET /v1/pets HTTP/1.1", ...lines);

  const cases: readonly RawCase[] = [
    ["OPTIONS *", rawRequest("OPTIONS *"), 204],
    ["OPTIONS of an unknown path", rawRequest("OPTIONS /nothing"), 404],
    ["TRACE", send("TRACE /v1/pets"), 405],
    ["a lowercase method", send("get /v1/pets"), 405],
    ["a method with the name of a property", send("constructor /v1/pets"), 405],
    ["a long method", send(`${"A".repeat(2_000)} /v1/pets`), 405],
    ["CONNECT", send("CONNECT localhost:80"), 405],
    ["a method that is not a token", send("G@T /v1/pets"), "refused"],
    ["a long path", get(`/v1/pets/${LONG.slice(0, 8_000)}`), 404],
    ["an absurdly long path", get(`/v1/pets/${LONG}`), "refused"],
    ["an absurdly long header", send("GET /v1/pets", { "x-long": LONG }), "refused"],
    ["two slashes before the path", get("//v1/pets"), 404],
    ["a path above the root", get("/.."), 404],
    ["a path with a .. segment", get("/v1/../v1/pets"), 404],
    ["an escaped .. segment", get("/v1/x/%2e%2e/pets"), 404],
    ["an escaped slash", get("/v1%2Fpets"), 404],
    ["the absolute form", get("http://localhost/v1/pets"), 200],
    ["the absolute form with another host", get("http://other.example/v1/pets"), 200],
    ["the absolute form with an invalid host", get("http://other.example;a='b'/v1/pets"), 400],
    ["the absolute form without a path", send("POST http://other.example"), 405],
    ["a malformed escape", get("/v1/pets/%zz"), 404],
    ["an escaped NUL", get("/v1/pets/%00"), 404],
    ["a space in the path", get("/v1/pets 1"), "refused"],
    ["a NUL in the path", get("/v1/pets/\0"), "refused"],
    ["a non-ASCII letter in the path", get("/v1/pets/é"), "refused"],
    ["a fragment", get("/v1/pets#1"), 404],
    ["a path without a slash", get("v1/pets"), "refused"],
    ["an empty target", get(""), "refused"],
    ["two Authorization headers", list("host: a", "authorization: Bearer x"), 401],
    ["two X-Request-Id headers", list("host: a", "x-request-id: 1", "x-request-id: 2"), 200],
    ["two Host headers", list("host: a", "host: b"), "refused"],
    ["no Host", list(), 200],
    ["an empty Host", list("host:"), 200],
    ["a Host with a path", plain("GET /health HTTP/1.1", "host: a/v1/pets?"), 400],
    ["a Host with a space", plain("GET /health HTTP/1.1", "host: a b"), 400],
    ["HTTP/1.0", plain("GET /v1/pets HTTP/1.0"), 200],
    ["HTTP/0.9", "GET /v1/pets\r\n\r\n", "refused"],
    ["an unknown version", plain("GET /v1/pets HTTP/3.7", "host: a"), "refused"],
    ["a header without a colon", list("host: a", "nonsense"), "refused"],
    ["a space before the colon", list("host: a", "x : y"), "refused"],
    ["a NUL in a header", list("host: a", "x: \0"), "refused"],
    ["a non-ASCII letter in a header", send("GET /v1/pets", { "x-a": "é" }), 200],
    ["empty lines before the request", `\r\n\r\n${get("/v1/pets")}`, 200],
    ["a TLS handshake", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "refused"],
  ];
  await runCases(t, served.server, cases);
});

/** A list, an animal, the account, and an unknown path. */
const TARGETS = ["/v1/pets", "/v1/pets/1", "/v1/account", "/nothing"];

/** Starts a server and adds three animals. */
async function serveAnimals(): Promise<ServedStore> {
  const served = await ServedStore.start();
  for (const name of ["Rex", "Tom", "Ada"]) await addAnimal(served.server, served.key, name);
  return served;
}

Deno.test("server chunks long bodies over HTTP/1.1, and always sends a length over HTTP/1.0", async () => {
  await using served = await serveAnimals();
  const { server, key } = served;
  const framings: unknown[] = [];

  for (const path of TARGETS) {
    const request = rawRequest(`GET ${path}`, { authorization: `Bearer ${key}`, connection: "close" });
    const [newer, older] = [
      await exchange(server, request),
      await exchange(server, request.replace("HTTP/1.1", "HTTP/1.0")),
    ];

    assertEquals([older.status, older.body.length], [newer.status, newer.body.length]);
    assertEquals(older.headers.get("content-length"), `${older.body.length}`);
    assertEquals(older.headers.get("transfer-encoding"), null);
    framings.push([path, newer.headers.get("transfer-encoding"), newer.headers.has("content-length")]);
  }

  assertEquals(framings, [
    ["/v1/pets", "chunked", false],
    ["/v1/pets/1", null, true],
    ["/v1/account", "chunked", false],
    ["/nothing", null, true],
  ]);
});

Deno.test("server responds to HEAD with the headers of GET, a length and no body", async () => {
  await using served = await serveAnimals();
  const { server, key } = served;

  for (const path of TARGETS) {
    const headers = { authorization: `Bearer ${key}`, connection: "close" };
    const get = await exchange(server, rawRequest(`GET ${path}`, headers));
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(`HEAD ${path}`, headers));
    const head = await connection.receive({ bodiless: true });

    assertEquals([head?.status, head?.headers.get("content-length")], [get.status, `${get.body.length}`]);
    assertEquals(head?.headers.get("transfer-encoding"), null);
    assertEquals(
      [...head?.headers.keys() ?? []].filter(describesResponse),
      [...get.headers.keys()].filter(describesResponse),
    );
    assertEquals(await connection.receiveRest(), "");
  }
});

/** Whether a header describes the response, not how its body is framed. */
function describesResponse(name: string): boolean {
  return !["content-length", "transfer-encoding"].includes(name);
}

Deno.test("server ends the HTTP/2 stream of a HEAD request without a DATA frame", async () => {
  await using served = await serveAnimals();
  const { server, key } = served;

  for (const path of TARGETS) {
    const headers = { ":scheme": "http", ":path": path, authorization: `Bearer ${key}` };
    assertEquals(await framesOf(server.port, { ":method": "GET", ...headers }), ["HEADERS", "DATA"]);
    assertEquals(await framesOf(server.port, { ":method": "HEAD", ...headers }), ["HEADERS"]);
  }
});

const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const [END_STREAM, END_HEADERS] = [1, 4];

/** Sends a request over HTTP/2. Resolves to the HEADERS and DATA frames of the response (RFC 9113 section 4.1). */
async function framesOf(port: number, headers: Readonly<Record<string, string>>): Promise<string[]> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const encode = (text: string) => [...new TextEncoder().encode(text)];
  const frame = (
    type: number,
    flags: number,
    id: number,
    content: readonly number[],
  ) => [0, 0, content.length, type, flags, 0, 0, 0, id, ...content];
  // Literal header fields without indexing (RFC 7541 section 6.2.2).
  const fields = Object.entries(headers).flatMap((
    [name, value],
  ) => [0, name.length, ...encode(name), value.length, ...encode(value)]);
  const preface = [...encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ...frame(SETTINGS, 0, 0, [])];
  await connection.write(
    Uint8Array.from([...preface, ...frame(HEADERS, END_STREAM | END_HEADERS, 1, fields)]),
  );

  const names: string[] = [];
  let received: number[] = [];
  for await (const chunk of connection.readable) {
    received.push(...chunk);
    while (received.length >= 9) {
      const [high = 0, middle = 0, low = 0, type, flags = 0, , , , id] = received;
      const end = 9 + (high << 16) + (middle << 8) + low;
      if (received.length < end) break;
      received = received.slice(end);
      if (id !== 1 || (type !== DATA && type !== HEADERS)) continue;
      names.push(type === DATA ? "DATA" : "HEADERS");
      if (flags & END_STREAM) return names;
    }
  }
  throw new Error("The server closed the connection");
}
