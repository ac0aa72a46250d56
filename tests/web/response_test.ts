import { assertEquals } from "@std/assert";
import { etagOf } from "../../src/web/etag.ts";
import { Representation } from "../../src/web/representation.ts";
import { createResponse, jsonResponse, ownOf } from "../../src/web/response.ts";

const ALWAYS = { "x-content-type-options": "nosniff", vary: "Origin" };
const TAG = etagOf("[]");
const LASTING = { ...ALWAYS, etag: TAG, "cache-control": "private, no-cache", sunset: "never" };

/** The response to a client that has this version of the representation, if any. */
function respondTo(known: string | undefined, representation = representationOf("[]")): Response {
  return ownOf(representation.respondTo(known));
}

function representationOf(text: string): Representation {
  return new Representation(text, { type: "text/plain", headers: { sunset: "never" } });
}

Deno.test("createResponse() and jsonResponse() add the common headers to those given", async () => {
  const empty = createResponse(null, { status: 204, headers: { allow: "GET" } });
  const json = jsonResponse('{"id":9007199254740993}', { headers: { location: "/v1/things/1" } });

  assertEquals([empty.status, empty.body, json.status], [204, null, 200]);
  assertEquals(Object.fromEntries(empty.headers), { ...ALWAYS, allow: "GET" });
  assertEquals(Object.fromEntries(json.headers), {
    ...ALWAYS,
    "content-type": "application/json",
    location: "/v1/things/1",
  });
  assertEquals(await json.text(), '{"id":9007199254740993}');
});

Deno.test.each([TAG, `W/${TAG}`, `"6.a", ${TAG}`, `"6.a",W/${TAG},"8.a"`, "*"])(
  "respondTo() returns 304 if the client has %s",
  (known) => {
    const { status, headers, body } = respondTo(known);

    assertEquals([status, body], [304, null]);
    assertEquals(Object.fromEntries(headers), LASTING);
  },
);

Deno.test.each([undefined, '"6.a"', '"6.a", "8.a"', ""])(
  "respondTo() returns the body if the client has %s",
  async (known) => {
    const response = respondTo(known);

    assertEquals([response.status, await response.text()], [200, "[]"]);
    assertEquals(Object.fromEntries(response.headers), { ...LASTING, "content-type": "text/plain" });
  },
);

Deno.test.each([['"6.a"', "[]"], [TAG, ""]])(
  "respondTo() returns a separate response to each client that has %s",
  async (known, body) => {
    const representation = representationOf("[]");

    const responses = [1, 2].map(() => respondTo(known, representation));
    responses[0]?.headers.set("x-request-id", "first");

    assertEquals(responses.map(({ headers }) => headers.get("x-request-id")), ["first", null]);
    assertEquals(await Promise.all(responses.map((response) => response.text())), [body, body]);
  },
);

Deno.test.each([["R".repeat(100), null], ["R".repeat(101), "chunked"]])(
  "createResponse() and Representation send %s with the Transfer-Encoding %s",
  (text, coding) => {
    for (const { headers } of [createResponse(text), respondTo(undefined, representationOf(text))]) {
      assertEquals(headers.get("transfer-encoding"), coding);
    }
  },
);
