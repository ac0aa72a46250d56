import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { type Incoming, operation } from "../../src/web/operation.ts";
import { integer, object, oneOf, optional, text } from "../../src/web/schema.ts";
import { ApiError } from "../../src/web/error.ts";

/** An operation that returns its input. */
const ECHO = operation({
  id: "echo",
  method: "POST",
  path: "/{name}",
  access: ACCESS.public,
  summary: "Echo",
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
    assertEquals(await echoed(query, {}, body), {
      params: { name: "Nut" },
      query: { limit: 20 },
      headers: {},
      body,
    });
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
])("answer() reports all faults at once: %s", async (faults, ...request) => {
  const error = await assertRejects(async () => await ECHO.respond(incoming(...request)), ApiError);

  assertEquals([error.kind.code, error.message], ["invalid_request", faults]);
});

Deno.test("answer() reports a fault in the path before all others", async () => {
  const call = { ...incoming("?limit=0", {}, {}), params: { name: "Rover" } };
  const error = await assertRejects(async () => await ECHO.respond(call), ApiError);

  assertEquals([error.kind.code, error.message], [
    "invalid_request",
    "The path parameter name must have 1 to 3 characters.",
  ]);
});
