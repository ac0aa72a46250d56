import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { parseNewMessage } from "../../src/messages/message.ts";
import { Harness } from "../harness.ts";

const NOON = Date.UTC(2027, 0, 15, 12);

Deno.test("parseNewMessage() keeps the text and the time only", () => {
  assertEquals(parseNewMessage({ message: " Hello\n", id: "1", status: "sent" }, NOON), {
    message: " Hello\n",
    createdAt: "2027-01-15T12:00:00.000Z",
  });
});

Deno.test("parseNewMessage() counts characters, not UTF-16 units", () => {
  const message = "🐶".repeat(10_000);

  assertEquals(parseNewMessage({ message }, NOON).message, message);
  assertThrows(() => parseNewMessage({ message: `${message}.` }, NOON), ApiError, "1 to 10000 characters");
});

Deno.test.each([
  ["ASCII", "x"],
  ["control characters, which JSON writes as six bytes", "\u0001"],
  ["four bytes of UTF-8 each", "🐶"],
])("createMessage() stores messages of 10,000 characters, many at once: %s", async (_, character) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const json = { message: character.repeat(10_000) };

  const responses = await Promise.all(
    Array.from(
      { length: 20 },
      (_, number) =>
        service.fetch("POST /v1/messages", { key, json, headers: { "idempotency-key": `${number}` } }),
    ),
  );

  assertEquals(responses.map(({ status }) => status), new Array(20).fill(202));
  for (const response of responses) assertEquals((await response.json()).message, json.message);
});
