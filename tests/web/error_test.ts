import { usageKey } from "../../src/limits/usage.ts";
import { assertError } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { assertEquals, assertMatch } from "@std/assert";

Deno.test("service returns a bare 500 for an internal error, and logs where it was thrown", async () => {
  await using service = await Harness.open();
  service.expectsErrors = true;
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.kv.set(usageKey(id), new TextEncoder().encode("confidential"));

  const response = await service.fetch("GET /v1/things/1", { key, headers: { "x-request-id": "r1" } });

  assertEquals(response.headers.get("x-request-id"), "r1");
  await assertError(response, 500, "internal_error", /^Something went wrong in the service\.$/);
  const [{ at = "", detail: _, ...record } = {}, ...others] = service.errors;
  assertEquals(others, []);
  assertEquals(record, {
    time: "2027-01-15T12:00:00.000Z",
    id: "r1",
    route: "/v1/things/:thingId",
    error: "CorruptRow",
    reason: "A row of usage is not JSON",
  });
  assertMatch(at, /^src\/engine\/row\.ts:\d+$/);
});
