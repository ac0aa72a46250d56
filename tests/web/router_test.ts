import { assertEquals } from "@std/assert";
import { allowOf, createMatcher, type Endpoint } from "../../src/web/router.ts";

function endpoint(method: Endpoint["method"], path: string): Endpoint {
  return { method, path };
}

const LIST = endpoint("GET", "/v1/things");
const CREATE = endpoint("POST", "/v1/things");
const GET = endpoint("GET", "/v1/things/{thingId}");
const DELETE = endpoint("DELETE", "/v1/things/{thingId}");
const TAG = endpoint("GET", "/v1/things/{thingId}/tags/{tag}");
const COUNT = endpoint("GET", "/v1/things/count");
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
  "/ /* /v1 /v1/ /v1/things/ /v1/things/1/ /v1/things/1/tags /v1/things/1/tags/2/ /v1/things/1/tags/2/3/4 //v1/things /v1//things /V1/things /v1/Things " +
  "/v1%2Fthings /v1/things/% /v1/things/%zz /v1/things/%ff /v1/%C3/things /__proto__ /v1/toString /v1/:thingId";

Deno.test("match() finds nothing at paths that are not in the table", () => {
  for (const path of NOWHERE.split(" ")) {
    assertEquals([path, match("GET", path)], [path, { kind: "none", pattern: "" }]);
  }
});
