import { assertEquals, assertGreater } from "@std/assert";
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

Deno.test("server answers sensibly and goes on when the request's head is unusual", async (t) => {
  await using served = await ServedStore.start();
  const { authorization } = jsonHeaders(served.key);
  const send = (target: string, headers = {}) => rawRequest(target, { authorization, ...headers });
  const get = (path: string) => send(`GET ${path}`);
  const plain = (...lines: readonly string[]) =>
    [...lines, `authorization: ${authorization}`, "", ""].join("\r\n");
  const list = (...lines: readonly string[]) => plain("GET /v1/pets HTTP/1.1", ...lines);

  const cases: readonly RawCase[] = [
    ["OPTIONS of everything", rawRequest("OPTIONS *"), 204],
    ["OPTIONS of no path", rawRequest("OPTIONS /nothing"), 404],
    ["TRACE", send("TRACE /v1/pets"), 405],
    ["a method in lower case", send("get /v1/pets"), 405],
    ["a method named like a property", send("constructor /v1/pets"), 405],
    ["a long method", send(`${"A".repeat(2_000)} /v1/pets`), 405],
    ["CONNECT", send("CONNECT localhost:80"), 405],
    ["a method that is no token", send("G@T /v1/pets"), "refused"],
    ["a long path", get(`/v1/pets/${LONG.slice(0, 8_000)}`), 404],
    ["an absurdly long path", get(`/v1/pets/${LONG}`), "refused"],
    ["an absurdly long header", send("GET /v1/pets", { "x-long": LONG }), "refused"],
    ["two slashes before the path", get("//v1/pets"), 404],
    ["a path up from the root", get("/.."), 404],
    ["a path up and down", get("/v1/../v1/pets"), 404],
    ["an escaped path up", get("/v1/x/%2e%2e/pets"), 404],
    ["an escaped slash", get("/v1%2Fpets"), 404],
    ["the absolute form", get("http://localhost/v1/pets"), 200],
    ["the absolute form of another host", get("http://other.example/v1/pets"), 200],
    ["the absolute form of no host", get("http://other.example;a='b'/v1/pets"), 400],
    ["the absolute form without a path", send("POST http://other.example"), 405],
    ["a malformed escape", get("/v1/pets/%zz"), 404],
    ["an escaped NUL", get("/v1/pets/%00"), 404],
    ["a space in the path", get("/v1/pets 1"), "refused"],
    ["a NUL in the path", get("/v1/pets/\0"), "refused"],
    ["a letter beyond ASCII in the path", get("/v1/pets/é"), "refused"],
    ["a fragment", get("/v1/pets#1"), 404],
    ["a path without a slash", get("v1/pets"), "refused"],
    ["no path", get(""), "refused"],
    ["two Authorization headers", list("host: a", "authorization: Bearer x"), 401],
    ["two X-Request-Id", list("host: a", "x-request-id: 1", "x-request-id: 2"), 200],
    ["two Host headers", list("host: a", "host: b"), "refused"],
    ["no Host", list(), 200],
    ["an empty Host", list("host:"), 200],
    ["a Host with a path in it", plain("GET /health HTTP/1.1", "host: a/v1/pets?"), 400],
    ["a Host with a space in it", plain("GET /health HTTP/1.1", "host: a b"), 400],
    ["HTTP/1.0", plain("GET /v1/pets HTTP/1.0"), 200],
    ["HTTP/0.9", "GET /v1/pets\r\n\r\n", "refused"],
    ["an unknown version", plain("GET /v1/pets HTTP/3.7", "host: a"), "refused"],
    ["a header without a colon", list("host: a", "nonsense"), "refused"],
    ["a space before the colon", list("host: a", "x : y"), "refused"],
    ["a NUL in a header", list("host: a", "x: \0"), "refused"],
    ["a letter beyond ASCII in a header", send("GET /v1/pets", { "x-a": "é" }), 200],
    ["empty lines before the request", `\r\n\r\n${get("/v1/pets")}`, 200],
    ["TLS", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "refused"],
  ];
  await runCases(t, served.server, cases);
});

Deno.test("server answers HEAD with the length of GET's body, and no body", async () => {
  await using served = await ServedStore.start();
  const { server } = served;

  for (const path of ["/v1/pets", "/health", "/nothing"]) {
    const get = await exchange(server, rawRequest(`GET ${path}`));
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(`HEAD ${path}`, { connection: "close" }));
    const head = await connection.receive({ bodiless: true });

    const length = head?.headers.get("content-length");
    assertEquals([head?.status, length], [get.status, get.headers.get("content-length")]);
    assertGreater(Number(length), 0);
    assertEquals(await connection.receiveRest(), "");
  }
});
