import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { Harness } from "../harness.ts";

const MADE = /^[\da-f]{8}-[\da-f]{4}-\d+$/;

Deno.test.each(["7", "trace-1.2:3/4", "!~", "x".repeat(64)])(
  "requestId() takes the client's %s",
  async (id) => {
    using service = await Harness.open();

    const response = await service.fetch("GET /v1/pets", { headers: { "x-request-id": id } });

    assertEquals(response.headers.get("x-request-id"), id);
    assertEquals(service.accesses.map((record) => record.id), [id]);
  },
);

Deno.test.each(["", "two words", "tab\tbed", "caf\u00e9", "a, b", "x".repeat(65)])(
  "requestId() makes one up in place of '%s'",
  async (id) => {
    using service = await Harness.open();

    const response = await service.fetch("GET /health", { headers: { "x-request-id": id } });

    assertMatch(response.headers.get("x-request-id") ?? "", MADE);
  },
);

Deno.test("requestId() makes one up for each request without", async () => {
  using service = await Harness.open();

  const [first, second] = await Promise.all([service.fetch("GET /health"), service.fetch("GET /nothing")]);

  assertMatch(first.headers.get("x-request-id") ?? "", MADE);
  assertMatch(second.headers.get("x-request-id") ?? "", MADE);
  assertNotEquals(first.headers.get("x-request-id"), second.headers.get("x-request-id"));
});
