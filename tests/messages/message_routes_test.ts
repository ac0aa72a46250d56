import { assertEquals } from "@std/assert";
import { MessageStore } from "../../src/messages/message_store.ts";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { JSON_TYPE } from "../pets/catalogue.ts";

Deno.test("createMessage() accepts a message and queues it", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  service.now += 1;

  const response = await service.fetch("POST /v1/messages", { key, json: { message: "Hello", to: "you" } });

  assertEquals(response.status, 202);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertLimitHeaders(response);
  const message = {
    id: "msg_1",
    message: "Hello",
    status: "queued",
    createdAt: "2027-01-15T12:00:00.001Z",
  };
  assertEquals(await response.json(), message);
  assertEquals(await stored(service), [message]);
});

Deno.test.each([
  ["no message", "{}", JSON_TYPE, "invalid_request", /^message is required and must be a string/],
  ["a message of null", '{"message":null}', JSON_TYPE, "invalid_request", /^message must be a string/],
  ["a message that is a number", '{"message":1}', JSON_TYPE, "invalid_request", /^message must be a string/],
  [
    "a message that is a list",
    '{"message":["a"]}',
    JSON_TYPE,
    "invalid_request",
    /^message must be a string/,
  ],
  ["an empty message", '{"message":""}', JSON_TYPE, "invalid_request", /^message must have 1 to/],
  ["JSON that is no object", '"Hello"', JSON_TYPE, "invalid_request", /object/],
  ["no JSON", "Hello", JSON_TYPE, "invalid_json", /valid JSON/],
  ["no body", null, JSON_TYPE, "invalid_json", /valid JSON/],
  [
    "another content type",
    '{"message":"a"}',
    { "content-type": "text/plain" },
    "invalid_content_type",
    /application\/json/,
  ],
  [
    "no content type",
    new TextEncoder().encode('{"message":"a"}'),
    {},
    "invalid_content_type",
    /application\/json/,
  ],
])("createMessage() refuses %s and stores nothing", async (_, body, headers, code, message) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/messages", { key, body, headers });

  assertLimitHeaders(response);
  await assertError(response, 400, code, message);
  assertEquals(await stored(service), []);
});

Deno.test("createMessage() refuses a body beyond 64 KiB", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/messages", { key, json: { message: "x".repeat(65_536) } });

  await assertError(response, 413, "payload_too_large");
  assertEquals(await stored(service), []);
});

Deno.test("createMessage() asks for a key", async () => {
  using service = await Harness.open();

  const response = await service.fetch("POST /v1/messages", { json: { message: "Hello" } });

  assertEquals(response.headers.get("www-authenticate"), 'Bearer realm="animal-store"');
  await assertError(response, 401, "missing_api_key");
  assertEquals(await stored(service), []);
});

/** Every message that waits, taken out of the store. */
async function stored(service: Harness): Promise<unknown[]> {
  const messages: unknown[] = [];
  await new MessageStore(service.store).take(1_000, (message) => {
    messages.push(message);
    return Promise.resolve();
  });
  return messages;
}
