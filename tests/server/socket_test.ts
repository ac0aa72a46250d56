import { assertEquals, assertGreater } from "@std/assert";
import { type RawCase, runCases } from "./expectations.ts";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import { TemporaryStore } from "./temporary_store.ts";

const LONG = "a".repeat(1_000_000);

Deno.test("server answers sensibly and goes on when the request's head is unusual", async (t) => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const get = (target: string) => rawRequest(`GET ${target}`, { authorization });
  const plain = (...lines: readonly string[]) =>
    [...lines, `authorization: ${authorization}`, "", ""].join("\r\n");

  const cases: readonly RawCase[] = [
    ["OPTIONS of everything", rawRequest("OPTIONS *"), 204],
    ["OPTIONS of a path", rawRequest("OPTIONS /v1/pets"), 204],
    ["OPTIONS of no path", rawRequest("OPTIONS /nothing"), 404],
    ["PROPFIND", rawRequest("PROPFIND /v1/pets", { authorization }), 405],
    ["TRACE", rawRequest("TRACE /v1/pets", { authorization }), 405],
    ["a method in lower case", rawRequest("get /v1/pets", { authorization }), 405],
    ["a method named like a property", rawRequest("constructor /v1/pets", { authorization }), 405],
    ["a long method", rawRequest(`${"A".repeat(2_000)} /v1/pets`, { authorization }), 405],
    ["CONNECT", rawRequest("CONNECT localhost:80", { authorization }), 404],
    ["a method that is no token", rawRequest("G@T /v1/pets", { authorization }), "refused"],
    ["a long query", get(`/v1/pets?${LONG.slice(0, 8_000)}`), 200],
    ["a long path", get(`/v1/pets/${LONG.slice(0, 8_000)}`), 404],
    ["an absurdly long path", get(`/v1/pets/${LONG}`), "refused"],
    ["an absurdly long header", rawRequest("GET /v1/pets", { authorization, "x-long": LONG }), "refused"],
    ["two slashes", get("//"), 404],
    ["two slashes before the path", get("//v1/pets"), 404],
    ["a slash after the path", get("/v1/pets/"), 404],
    ["a path up from the root", get("/.."), 404],
    ["a path up and down", get("/v1/../v1/pets"), 404],
    ["an escaped path up", get("/v1/x/%2e%2e/pets"), 404],
    ["an escaped slash", get("/v1%2Fpets"), 404],
    ["an escaped letter", get("/v1/%70ets"), 200],
    ["a path named like a property", get("/__proto__/constructor"), 404],
    ["the absolute form", get("http://localhost/v1/pets"), 200],
    ["the absolute form of another host", get("http://other.example/v1/pets"), 200],
    ["the absolute form without a path", get("http://other.example"), 404],
    ["a malformed escape", get("/v1/pets/%zz"), 404],
    ["a cut-off escape", get("/v1/pets/%"), 404],
    ["an escape that is not UTF-8", get("/v1/pets/%ff"), 404],
    ["an escaped NUL", get("/v1/pets/%00"), 404],
    ["a malformed escape in the query", get("/v1/pets?limit=%zz"), 400],
    ["a space in the path", get("/v1/pets 1"), "refused"],
    ["a NUL in the path", get("/v1/pets/\0"), "refused"],
    ["a letter beyond ASCII in the path", get("/v1/pets/é"), "refused"],
    ["a fragment", get("/v1/pets#1"), 404],
    ["a path without a slash", get("v1/pets"), "refused"],
    ["no path", get(""), "refused"],
    ["two Authorization headers", plain("GET /v1/pets HTTP/1.1", "host: a", "authorization: Bearer x"), 401],
    [
      "two X-Request-Id",
      plain("GET /v1/pets HTTP/1.1", "host: a", "x-request-id: 1", "x-request-id: 2"),
      200,
    ],
    ["two Host headers", plain("GET /v1/pets HTTP/1.1", "host: a", "host: b"), "refused"],
    ["two values of a parameter", get("/v1/pets?limit=1&limit=1"), 400],
    ["no Host", plain("GET /v1/pets HTTP/1.1"), 200],
    ["an empty Host", plain("GET /v1/pets HTTP/1.1", "host:"), 200],
    ["a Host with a path in it", plain("GET /health HTTP/1.1", "host: a/v1/pets?"), 400],
    ["a Host with a space in it", plain("GET /health HTTP/1.1", "host: a b"), 400],
    ["HTTP/1.0", plain("GET /v1/pets HTTP/1.0"), 200],
    ["HTTP/0.9", "GET /v1/pets\r\n\r\n", "refused"],
    ["an unknown version", plain("GET /v1/pets HTTP/3.7", "host: a"), "refused"],
    ["a header without a colon", plain("GET /v1/pets HTTP/1.1", "host: a", "nonsense"), "refused"],
    ["a space before the colon", plain("GET /v1/pets HTTP/1.1", "host: a", "x : y"), "refused"],
    ["a NUL in a header", plain("GET /v1/pets HTTP/1.1", "host: a", "x: \0"), "refused"],
    ["a letter beyond ASCII in a header", rawRequest("GET /v1/pets", { authorization, "x-a": "é" }), 200],
    ["empty lines before the request", `\r\n\r\n${get("/v1/pets")}`, 200],
    ["TLS", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "refused"],
  ];
  await runCases(t, server, cases);
});

Deno.test("server answers HEAD like GET, without the body, when the method is HEAD", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);

  for (const path of ["/v1/pets", "/v1/pets/7", "/v1/nothing", "/health", "/ready", "/nothing"]) {
    await connection.send(rawRequest(`GET ${path}`, { authorization }));
    const get = await connection.receive();
    await connection.send(rawRequest(`HEAD ${path}`, { authorization }));
    const head = await connection.receive({ bodiless: true });

    assertEquals(head?.status, get?.status, path);
    for (const name of ["content-length", "content-type", "etag"]) {
      assertEquals(head?.headers.get(name), get?.headers.get(name), `${name} of ${path}`);
    }
    assertGreater(Number(head?.headers.get("content-length")), 0);
  }
});
