import { assertEquals } from "@std/assert";
import { createMatcher, type Match, type Route } from "../../src/http/router.ts";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "./assertions.ts";

const handler = () => new Response();
const LIST: Route = { method: "GET", path: "/v1/pets", access: "key", handler };
const CREATE: Route = { method: "POST", path: "/v1/pets", access: "key", handler };
const GET: Route = { method: "GET", path: "/v1/pets/:petId", access: "key", handler };
const match = createMatcher([CREATE, LIST, GET]);

Deno.test.each([
  ["GET", "/v1/pets", LIST, {}],
  ["HEAD", "/v1/pets", LIST, {}],
  ["POST", "/v1/pets", CREATE, {}],
  ["GET", "/v1/p%65ts", LIST, {}],
  ["GET", "/v1/pets/1", GET, { petId: "1" }],
  ["HEAD", "/v1/pets/1", GET, { petId: "1" }],
  ["GET", "/v1/pets/a%2Fb%20%C3%A9", GET, { petId: "a/b é" }],
  ["GET", "/v1/pets/__proto__", GET, { petId: "__proto__" }],
  ["GET", "/v1/pets/constructor", GET, { petId: "constructor" }],
  ["GET", "/v1/pets/:petId", GET, { petId: ":petId" }],
])("match() finds the route of %s %s", (method, path, route, params) => {
  assertEquals(match(method, path), { kind: "route", route, params });
});

Deno.test.each([
  ["PUT", "/v1/pets"],
  ["OPTIONS", "/v1/pets"],
  ["get", "/v1/p%65ts"],
  ["PROPFIND", "/v1/pets"],
  ["__proto__", "/v1/pets"],
  ["constructor", "/v1/pets"],
  ["", "/v1/pets"],
])("match() gives the path's pattern and sorted methods to '%s' %s", (method, path) => {
  assertEquals(match(method, path), { kind: "allow", path: "/v1/pets", allow: "GET, HEAD, OPTIONS, POST" });
});

Deno.test("match() allows a path's own methods only", () => {
  const allowed: Match = { kind: "allow", path: "/v1/pets/:petId", allow: "GET, HEAD, OPTIONS" };
  assertEquals(match("POST", "/v1/pets/1"), allowed);
});

Deno.test("match() gives the methods of the whole table to OPTIONS *, which comes as /*", () => {
  assertEquals(match("OPTIONS", "/*"), { kind: "allow", path: "*", allow: "GET, HEAD, OPTIONS, POST" });
  assertEquals(match("GET", "/*"), { kind: "none" });
});

const NOWHERE = [
  "/",
  "/v1",
  "/v1/",
  "/v1/pets/",
  "/v1/pets/1/",
  "/v1/pets/1/2",
  "//v1/pets",
  "/v1//pets",
  "/V1/pets",
  "/v1/Pets",
  "/v1%2Fpets",
  "/v1/pets/%",
  "/v1/pets/%zz",
  "/v1/pets/%ff",
  "/v1/%C3/pets",
  "/__proto__",
  "/constructor",
  "/v1/__proto__",
  "/v1/toString",
  "/v1/:petId",
];

Deno.test.each(NOWHERE)("match() finds nothing at %s", (path) => {
  assertEquals(match("GET", path), { kind: "none" });
});

Deno.test.each(NOWHERE)("app() answers not_found at %s", async (path) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch(`GET ${path}`, { key });

  if (path === "/v1" || path.startsWith("/v1/")) assertLimitHeaders(response);
  await assertError(response, 404, "not_found");
});

Deno.test.each([
  ["PUT", "/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["DELETE", "/v1/pets/1", "GET, HEAD, OPTIONS"],
  ["GET", "/v1/messages", "OPTIONS, POST"],
  ["HEAD", "/v1/messages", "OPTIONS, POST"],
  ["PROPFIND", "/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["__proto__", "/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["constructor", "/v1/pets/1", "GET, HEAD, OPTIONS"],
  ["POST", "/health", "GET, HEAD, OPTIONS"],
])("app() answers method_not_allowed to %s %s", async (method, path, allow) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch(`${method} ${path}`, { key });

  assertEquals(response.headers.get("allow"), allow);
  if (path.startsWith("/v1/")) assertLimitHeaders(response);
  await assertError(response, 405, "method_not_allowed", new RegExp(allow));
});

Deno.test.each([
  ["/v1/pets", "GET, HEAD, OPTIONS, POST"],
  ["/v1/pets/1", "GET, HEAD, OPTIONS"],
  ["/v1/messages", "OPTIONS, POST"],
  ["/health", "GET, HEAD, OPTIONS"],
  ["/ready", "GET, HEAD, OPTIONS"],
])("app() answers OPTIONS %s without a key", async (path, allow) => {
  using service = await Harness.open();

  const response = await service.fetch(`OPTIONS ${path}`);

  assertEquals(response.status, 204);
  assertEquals(response.headers.get("allow"), allow);
  if (path.startsWith("/v1/")) assertLimitHeaders(response);
  assertEquals(response.body, null);
});

Deno.test.each([
  ["/v1/pets", 200],
  ["/v1/pets/1", 200],
  ["/v1/pets/2", 404],
  ["/v1/nothing", 404],
  ["/docs/deprecations", 200],
  ["/health", 200],
  ["/ready", 200],
])("app() answers HEAD %s like GET", async (path, status) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });

  const get = await service.fetch(`GET ${path}`, { key });
  const head = await service.fetch(`HEAD ${path}`, { key });

  assertEquals([get.status, head.status], [status, status]);
  assertEquals(lastingHeaders(head), lastingHeaders(get));
});

Deno.test("app() tells the limits when the path's segments are escaped", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("GET /%761/p%65ts", { key });

  assertEquals(response.status, 200);
  assertLimitHeaders(response);
  assertEquals(await response.text(), "[]");
});

/** Headers without those that differ from one request to the next. */
function lastingHeaders({ headers }: Response): [string, string][] {
  const passing = ["ratelimit", "x-ratelimit-remaining", "x-request-id"];
  return [...headers].filter(([name]) => !passing.includes(name));
}
