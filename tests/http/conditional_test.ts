import { assertEquals } from "@std/assert";
import { conditionalResponse } from "../../src/http/conditional.ts";

const VALIDATORS = { etag: '"7.a"', link: '</v1/pets?cursor=MQ>; rel="next"' };
const CACHING = { "cache-control": "private, no-cache", ...VALIDATORS };

Deno.test.each(['"7.a"', 'W/"7.a"', '"6.a", "7.a"', '"6.a",W/"7.a","8.a"', "*"])(
  "conditionalResponse() is 304 when the client has %s",
  (value) => {
    const response = conditionalResponse(request({ "if-none-match": value }), "[]", VALIDATORS);

    assertEquals(response.status, 304);
    assertEquals(Object.fromEntries(response.headers), CACHING);
    assertEquals(response.body, null);
  },
);

Deno.test.each(['"6.a"', '"7.A"', "7.a", '"7.a', '"7.a.b"', '"6.a", "8.a"', ""])(
  "conditionalResponse() sends the body when the client has %s",
  async (value) => {
    const response = conditionalResponse(request({ "if-none-match": value }), "[]", VALIDATORS);

    assertEquals(response.status, 200);
    assertEquals(Object.fromEntries(response.headers), { ...CACHING, "content-type": "application/json" });
    assertEquals(await response.text(), "[]");
  },
);

Deno.test("conditionalResponse() sends the body when the client does not ask", async () => {
  const response = conditionalResponse(request({}), "[]", VALIDATORS);

  assertEquals(response.status, 200);
  assertEquals(await response.text(), "[]");
});

function request(headers: Record<string, string>): Request {
  return new Request("http://localhost/", { headers });
}
