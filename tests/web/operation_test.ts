import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { type Incoming, operation } from "../../src/web/operation.ts";
import { integer, object, oneOf, optional, text } from "../../src/web/schema.ts";
import { ApiError } from "../../src/web/error.ts";
import { assertError } from "../support/assertions.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Workshop } from "../support/workshop.ts";

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
  return await (await ECHO.answer(incoming(...request))).json();
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
  const error = await assertRejects(async () => await ECHO.answer(incoming(...request)), ApiError);

  assertEquals([error.kind.code, error.message], ["invalid_request", faults]);
});

Deno.test("answer() reports a fault in the path before all others", async () => {
  const call = { ...incoming("?limit=0", {}, {}), params: { name: "Rover" } };
  const error = await assertRejects(async () => await ECHO.answer(call), ApiError);

  assertEquals([error.kind.code, error.message], [
    "invalid_request",
    "The path parameter name must have 1 to 3 characters.",
  ]);
});

const SURROGATE = { name: "\ud800" };
const KEY = { "idempotency-key": "a b" };
const TAG = { "if-match": "a" };

Deno.test("service reports all faults of a request at once", async () => {
  await using workshop = await Workshop.open();

  for (
    const [target, request, faults] of [
      ["GET /v1/things?limit=0&state=broken&cursor=x", {}, [
        "The query parameter limit must be an integer from 1 to 100",
        "The query parameter state must be one of new, used, lost",
        "The query parameter cursor must be a cursor from a Link header of this service",
      ]],
      ["POST /v1/things", { json: { ...SURROGATE, weight: "1" }, headers: KEY }, [
        "The Idempotency-Key must be 1 to 255 visible ASCII characters other than the double quote, with or without double quotes around them",
        "The field name must not contain half a surrogate pair",
        "The field weight must be a number, not a string",
      ]],
      ["POST /v1/things", { body: '{"weight":1.5,"state":null}', headers: JSON_TYPE }, [
        "The field name is required and must be a string",
        "The field weight must not have a fraction",
        "The field state must not be null: leave it out",
      ]],
      ["PATCH /v1/things/9", { body: '{"weight":1e-2,"name":""}', headers: { ...JSON_TYPE, ...TAG } }, [
        'If-Match must be * or entity tags in double quotes, such as "a3219ffc0c406b50"',
        "The field name must have 1 to 255 characters",
        "The field weight must not have a fraction",
      ]],
      ["POST /v1/things", { body: `{"name":"Hammer","weight":${"9".repeat(20)}}`, headers: JSON_TYPE }, [
        "The field weight must be an integer from -9223372036854775808 to 9223372036854775807",
      ]],
    ] as const
  ) {
    const response = await workshop.call(target, request);
    const { message } = await response.clone().json();
    await assertError(response, 400, "invalid_request");
    assertEquals(message, `${faults.join(". ")}.`);
  }
});

Deno.test("service reports an invalid ID or a malformed body alone, before other faults", async () => {
  await using workshop = await Workshop.open();
  const wrong = { json: SURROGATE, headers: TAG };

  await assertError(await workshop.call("PATCH /v1/things/hammer", wrong), 404, "thing_not_found");
  await assertError(
    await workshop.call("DELETE /v1/things/hammer", { headers: TAG }),
    404,
    "thing_not_found",
  );
  for (
    const [headers, body, code, message] of [
      [
        JSON_TYPE,
        "{",
        "invalid_json",
        /^The body must be valid JSON\. Its first fault is at line 1, column 2\.$/,
      ],
      [{ "content-type": "text/plain" }, "{}", "invalid_content_type", /^The Content-Type must be [^;]*\.$/],
    ] as const
  ) {
    const response = await workshop.call("PATCH /v1/things/9", { headers: { ...TAG, ...headers }, body });
    await assertError(response, 400, code, message);
  }
  // A missing thing is reported last.
  await assertError(
    await workshop.call("PATCH /v1/things/9", wrong),
    400,
    "invalid_request",
    /^If-Match .*\. The field name /,
  );
  await assertError(
    await workshop.call("DELETE /v1/things/9", { headers: TAG }),
    400,
    "invalid_request",
    /If-Match/,
  );
  await assertError(await workshop.call("PATCH /v1/things/9", { json: HAMMER }), 404, "thing_not_found");
});
