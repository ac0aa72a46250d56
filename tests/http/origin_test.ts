import { assertEquals } from "@std/assert";
import { clientOrigin } from "../../src/http/origin.ts";

Deno.test.each([
  [{}, "http://10.0.0.1:8000"],
  [{ "x-forwarded-proto": "https" }, "https://10.0.0.1:8000"],
  [{ "x-forwarded-host": "pets.example" }, "http://pets.example"],
  [{ "x-forwarded-proto": "https", "x-forwarded-host": "pets.example:8443" }, "https://pets.example:8443"],
  [{ "x-forwarded-host": "[2001:db8::1]:80" }, "http://[2001:db8::1]:80"],
  [{ "x-forwarded-proto": "javascript" }, "http://10.0.0.1:8000"],
  [{ "x-forwarded-proto": "" }, "http://10.0.0.1:8000"],
  [{ "x-forwarded-host": 'pets.example>; rel="next"' }, "http://10.0.0.1:8000"],
  [{ "x-forwarded-host": "pets.example/path" }, "http://10.0.0.1:8000"],
  [{ "x-forwarded-host": "user@pets.example" }, "http://10.0.0.1:8000"],
  [{ "x-forwarded-host": "" }, "http://10.0.0.1:8000"],
])("clientOrigin() with %j is %s", (headers, expected) => {
  const request = new Request("http://10.0.0.1:8000/v1/pets?limit=1", { headers });
  assertEquals(clientOrigin(request), expected);
});

Deno.test("clientOrigin() is empty when no host is usable", () => {
  assertEquals(clientOrigin(new Request("http://pets!example/v1/pets")), "");
});
