import { assertEquals } from "@std/assert";
import { Representation } from "../../src/http/conditional.ts";

const VALIDATORS = { etag: '"7.a"', link: '</v1/pets?cursor=MQ>; rel="next"' };
const HEADERS = {
  "cache-control": "private, no-cache",
  "vary": "Origin",
  "x-content-type-options": "nosniff",
  ...VALIDATORS,
};

Deno.test.each(['"7.a"', 'W/"7.a"', '"6.a", "7.a"', '"6.a",W/"7.a","8.a"', "*"])(
  "respondTo() is 304 when the client has %s",
  (value) => {
    const response = new Representation("[]", VALIDATORS).respondTo(request({ "if-none-match": value }));

    assertEquals(response.status, 304);
    assertEquals(Object.fromEntries(response.headers), HEADERS);
    assertEquals(response.body, null);
  },
);

Deno.test.each(['"6.a"', '"7.A"', "7.a", '"7.a', '"7.a.b"', '"6.a", "8.a"', ""])(
  "respondTo() sends the body when the client has %s",
  async (value) => {
    const response = new Representation("[]", VALIDATORS).respondTo(request({ "if-none-match": value }));

    assertEquals(response.status, 200);
    assertEquals(Object.fromEntries(response.headers), { ...HEADERS, "content-type": "application/json" });
    assertEquals(await response.text(), "[]");
  },
);

Deno.test("respondTo() sends the body when the client does not ask", async () => {
  const response = new Representation("[]", VALIDATORS).respondTo(request({}));

  assertEquals(response.status, 200);
  assertEquals(await response.text(), "[]");
});

Deno.test.each([
  [200, '"6.a"', "[]"],
  [304, '"7.a"', ""],
])("respondTo() sends one %i to many, each a response of its own", async (status, known, body) => {
  const representation = new Representation("[]", VALIDATORS);

  const responses = [1, 2].map(() => representation.respondTo(request({ "if-none-match": known })));
  responses[0]?.headers.set("x-request-id", "first");

  assertEquals(responses.map((response) => response.status), [status, status]);
  assertEquals(responses.map(({ headers }) => headers.get("x-request-id")), ["first", null]);
  assertEquals(await Promise.all(responses.map((response) => response.text())), [body, body]);
});

function request(headers: Record<string, string>): Request {
  return new Request("http://localhost/", { headers });
}
