import { usageKey } from "../../src/limits/usage.ts";
import { assertError } from "../support/assertions.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";
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
