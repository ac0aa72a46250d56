import { assertEquals } from "@std/assert";
import { createResponse, jsonResponse } from "../../src/http/response.ts";

const ALWAYS = { "x-content-type-options": "nosniff", "vary": "Origin" };

Deno.test("createResponse() sends what every response has", () => {
  const response = createResponse(null, { status: 204, headers: { allow: "GET" } });

  assertEquals(response.status, 204);
  assertEquals(Object.fromEntries(response.headers), { ...ALWAYS, allow: "GET" });
  assertEquals(response.body, null);
});

Deno.test("jsonResponse() sends JSON text", async () => {
  const response = jsonResponse('{"id":9007199254740993}');

  assertEquals(response.status, 200);
  assertEquals(Object.fromEntries(response.headers), { ...ALWAYS, "content-type": "application/json" });
  assertEquals(await response.text(), '{"id":9007199254740993}');
});

Deno.test("jsonResponse() can be sent many times", async () => {
  const original = jsonResponse("[]", { status: 201, headers: { location: "/v1/pets/1" } });

  const clones = [original.clone(), original.clone()];
  clones[0]?.headers.set("x-request-id", "first");

  assertEquals(clones.map(({ status }) => status), [201, 201]);
  assertEquals(clones.map(({ headers }) => headers.get("x-request-id")), ["first", null]);
  assertEquals(await Promise.all(clones.map((clone) => clone.text())), ["[]", "[]"]);
});
