import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { OPERATOR_TOKEN as key } from "../support/desk.ts";
import { Harness } from "../support/harness.ts";

const PATH = "/operator/v1/messages";

Deno.test("removeMessages() logs the ids of messages that it removes, and no others", async () => {
  await using service = await Harness.open({ operatorToken: key });
  const { apiKey } = await service.createAccount();
  const queued = await service.fetch("POST /v1/messages", { key: apiKey, json: { message: "Hello" } });
  const { id } = await queued.json();

  const removed = await service.fetch(`POST ${PATH}/remove`, { key, json: { ids: [id, "Bob"] } });

  assertEquals(removed.status, 204);
  assertEquals(service.operations.map(({ operation, ids }) => [operation, ids]), [["removeMessages", [id]]]);
});

Deno.test.each<[string, unknown, RegExp]>([
  [`GET ${PATH}?limit=101`, undefined, /limit must be an integer from 1 to 100\.$/],
  [`POST ${PATH}/remove`, { ids: Array(501).fill("a") }, /^The field ids must have at most 500 items\.$/],
])("%s returns 400 to an invalid request", async (target, json, message) => {
  await using service = await Harness.open({ operatorToken: key });

  const response = await service.fetch(target, { key, ...(json !== undefined && { json }) });

  await assertError(response, 400, "invalid_request", message);
});
