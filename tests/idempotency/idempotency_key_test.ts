import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { readIdempotencyKey } from "../../src/idempotency/idempotency_key.ts";

Deno.test.each([
  ["a", "a"],
  ['"a"', "a"],
  ["8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"],
  ["!#$%&'()*+,-./:;<=>?@[]^_`{|}~\\", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\\"],
  ["x".repeat(255), "x".repeat(255)],
  [`"${"x".repeat(255)}"`, "x".repeat(255)],
  [" a ", "a"],
])("readIdempotencyKey() takes %s", (value, key) => {
  assertEquals(readIdempotencyKey(withKey(value)), key);
});

Deno.test("readIdempotencyKey() is undefined when there is none", () => {
  assertEquals(readIdempotencyKey(new Request("http://localhost/")), undefined);
});

Deno.test.each([
  "",
  '""',
  '"',
  '"a',
  'a"',
  '"a"b"',
  '"a";p=1',
  "a b",
  "a, b",
  "a\tb",
  "caf\u00e9",
  "x".repeat(256),
])(
  "readIdempotencyKey() refuses '%s'",
  (value) => {
    const error = assertThrows(() => readIdempotencyKey(withKey(value)), ApiError, "1 to 255 visible");
    assertEquals(error.code, "invalid_request");
  },
);

function withKey(value: string): Request {
  return new Request("http://localhost/", { headers: { "idempotency-key": value } });
}
