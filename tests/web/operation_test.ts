import { ACCESS } from "../../src/service/mod.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { type Incoming, operation } from "../../src/web/operation.ts";
import { integer, object, oneOf, optional, text } from "../../src/web/schema.ts";
import { ApiError, ERRORS } from "../../src/web/error.ts";
import { allowOf, createMatcher, type Endpoint } from "../../src/web/router.ts";

/** An operation that returns its input. */
const ECHO = operation({
  id: "echo",
  method: "POST",
  path: "/{name}",
  access: ACCESS.public,
  summary: "Echo",
  isLenient: true,
  params: { name: text({ max: 3 }) },
  query: { limit: optional(integer(1, 100), 20), state: optional(oneOf(["new", "lost"])) },
  headers: { "X-One": optional(text({ max: 3 })), "X-Two": optional(text({ max: 3 })) },
  body: object({ a: text(), b: integer(0, 9), c: integer(0, 9), d: optional(text()) }),
}, ({ bytes: _, ...input }) => Response.json(input));

/** A request to `ECHO`. */
function incoming(query: string, headers: Record<string, string>, object: Record<string, unknown>): Incoming {
  return {
    request: new Request("http://localhost/", { headers }),
    params: { name: "Nut" },
    query,
    base: "",
    now: 0,
    address: () => "",
    readBody: () => Promise.resolve({ object, bytes: new Uint8Array() }),
  };
}

/** The parsed response of `ECHO`. */
async function echoed(...request: Parameters<typeof incoming>): Promise<unknown> {
  return await (await ECHO.respond(incoming(...request))).json();
}

Deno.test("answer() passes parsed input to the handler, with defaults and without unknown fields", async () => {
  const body = { a: "x", b: 1, c: 2 };

  assertEquals(await echoed("?state=l%6Fst&x=1&x=2&__proto__=1", { "x-one": "abc" }, { ...body, e: 1 }), {
    params: { name: "Nut" },
    query: { limit: 20, state: "lost" },
    headers: { "X-One": "abc" },
    body,
  });
  for (const query of ["", "?", "?Limit=5&constructor=2", "?limit=20"]) {
    const expected = { params: { name: "Nut" }, query: { limit: 20 }, headers: {}, body };
    assertEquals(await echoed(query, {}, body), expected);
    const withHeader = { ...expected, headers: { "X-One": "abc" } };
    assertEquals(await echoed(query, { "x-one": "abc" }, body), withHeader);
    assertEquals(await echoed(query, {}, body), expected);
  }
});

Deno.test.each<[faults: string, ...request: Parameters<typeof incoming>]>([
  ["The field a is required and must be a string.", "", {}, { b: 1, c: 1 }],
  [
    "X-Two must have 1 to 3 characters. The query parameter limit must be an integer from 1 to 100. " +
    "The field b must be a number, not a string.",
    "?limit=0",
    { "x-two": "long" },
    { a: "x", b: "1", c: 1 },
  ],
  [
    "X-One must have 1 to 3 characters. The query parameter limit must be given at most once. The field a must be a string. " +
    "The field b must not have a fraction. The field c is required and must be an integer from 0 to 9.",
    "?limit=1&l%69mit=1",
    { "x-one": "long" },
    { a: 1, b: NaN },
  ],
  [
    "X-One must have 1 to 3 characters. X-Two must have 1 to 3 characters. " +
    "The query parameter limit must be an integer from 1 to 100. " +
    "The query parameter state must be one of new, lost. The field a must be a string. And 3 more.",
    "?limit=&state=",
    { "x-one": "long", "x-two": "long" },
    { a: 1, b: -1, c: {}, d: [] },
  ],
  [
    "X-One must have 1 to 3 characters. The query parameter stat is unknown; did you mean state? " +
    'The query parameter "\\u{202e}" is unknown. The field a must be a string. The field B is unknown; did you mean b?',
    "?stat=1&%E2%80%AE=1",
    { "x-one": "long", prefer: "handling=strict" },
    { a: 1, b: 1, c: 2, B: 1 },
  ],
])("answer() reports all faults at once: %s", async (faults, ...request) => {
  const error = await assertRejects(async () => await ECHO.respond(incoming(...request)), ApiError);

  assertEquals([error.kind.code, error.message], ["invalid_request", faults]);
});

Deno.test("operation() needs the scope read for GET, and else write, and belongs to no collection, unless it says so", () => {
  const scopes = (["GET", "POST", "PATCH", "DELETE"] as const).map((method): unknown[] => {
    const made = operation(
      { id: "a", method, path: "/a", access: ACCESS.key, summary: "A" },
      () => new Response(),
    );
    return [method, made.scope, made.collections, made.isUnrestricted];
  });
  const declared = { scope: "manage", collections: ["cups"] } as const;
  const { scope, collections } = operation(
    { ...{ id: "a", method: "GET", path: "/a", access: ACCESS.key, summary: "A" }, ...declared },
    () => new Response(),
  );

  assertEquals(scopes, [
    ["GET", "read", [], undefined],
    ...["POST", "PATCH", "DELETE"].map((method) => [method, "write", [], undefined]),
  ]);
  assertEquals({ scope, collections }, declared);
});

Deno.test("answer() reports a fault in the path, and then a body that cannot be read, before all others", async () => {
  const unreadable = new ApiError(ERRORS.invalid_json, "The body is empty.");
  const call = { ...incoming("?limit=0", {}, {}), readBody: () => Promise.reject(unreadable) };

  for (
    const [name, code, message] of [
      ["Rover", "invalid_request", "The path parameter name must have 1 to 3 characters."],
      ["Nut", "invalid_json", unreadable.message],
    ] as const
  ) {
    const responding = async () => await ECHO.respond({ ...call, params: { name } });
    const error = await assertRejects(responding, ApiError);
    assertEquals([error.kind.code, error.message], [code, message]);
  }
});

const LIST: Endpoint = { method: "GET", path: "/v1/things" };
const CREATE: Endpoint = { method: "POST", path: "/v1/things" };
const GET: Endpoint = { method: "GET", path: "/v1/things/{thingId}" };
const DELETE: Endpoint = { method: "DELETE", path: "/v1/things/{thingId}" };
const TAG: Endpoint = { method: "GET", path: "/v1/things/{thingId}/tags/{tag}" };
const COUNT: Endpoint = { method: "GET", path: "/v1/things/count" };
const match = createMatcher([CREATE, LIST, DELETE, GET, TAG, COUNT]);

Deno.test.each([
  ["GET", "/v1/things", LIST, {}],
  ["HEAD", "/v1/things", LIST, {}],
  ["POST", "/v1/things", CREATE, {}],
  ["GET", "/v1/th%69ngs", LIST, {}],
  ["GET", "/v1/things/1", GET, { thingId: "1" }],
  ["HEAD", "/v1/things/1", GET, { thingId: "1" }],
  ["GET", "/v1/things/c%6funt", COUNT, {}],
  ["DELETE", "/v1/things/1", DELETE, { thingId: "1" }],
  ["GET", "/v1/things/1/tags/2", TAG, { thingId: "1", tag: "2" }],
  ["GET", "/v1/things/a%2Fb%20%C3%A9", GET, { thingId: "a/b é" }],
  ["GET", "/v1/things/__proto__", GET, { thingId: "__proto__" }],
  ["GET", "/v1/things/:thingId", GET, { thingId: ":thingId" }],
])("match() finds the endpoint of %s %s", (method, path, endpoint, params) => {
  const pattern = endpoint.path.replaceAll(/\{(\w+)\}/g, ":$1");
  assertEquals(match(method, path), { kind: "found", pattern, endpoint, params });
});

Deno.test.each(["PUT", "OPTIONS", "get", "__proto__", "constructor", ""])(
  "match() returns the pattern and endpoints of a path for the method '%s'",
  (method) => {
    const things = { pattern: "/v1/things", endpoints: [CREATE, LIST] } as const;
    const thing = { pattern: "/v1/things/:thingId", endpoints: [DELETE, GET] } as const;

    assertEquals(match(method, "/v1/th%69ngs"), { kind: "allow", ...things });
    assertEquals(match(method, "/v1/things/1"), { kind: "allow", ...thing });
  },
);

Deno.test("match() returns the endpoints of all paths for OPTIONS *, which arrives as /*", () => {
  const endpoints = [CREATE, LIST, DELETE, GET, TAG, COUNT];
  assertEquals(match("OPTIONS", "/*"), { kind: "allow", pattern: "*", endpoints });
  assertEquals(allowOf(endpoints), "DELETE, GET, HEAD, OPTIONS, POST");
});

const NOWHERE =
  "/ /* /v1 /v1/ /v1/things/ /v1/things/1/ /v1/things/1/tags /v1/things/1/tags/2/ /v1/things/1/tags/2/3/4 //v1/things " +
  "/v1//things /V1/things /v1/Things /v1%2Fthings /v1/things/% /v1/things/%zz /v1/things/%ff /v1/%C3/things " +
  "/__proto__ /v1/toString /v1/:thingId";

Deno.test("match() finds nothing at paths that are not in the table", () => {
  for (const path of NOWHERE.split(" ")) {
    assertEquals([path, match("GET", path)], [path, { kind: "none", pattern: "" }]);
  }
});
