import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { readIdempotencyKey } from "../../src/idempotency/create_once.ts";

const LONGEST = "x".repeat(255);
const EVERY = "!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~\\";

function read(value: string): string | undefined {
  return readIdempotencyKey(new Request("http://localhost/", { headers: { "idempotency-key": value } }));
}

Deno.test("readIdempotencyKey() takes a key with or without quotes, or none", () => {
  for (const key of ["a", EVERY, LONGEST]) {
    assertEquals([read(key), read(`"${key}"`), read(` ${key} `)], [key, key, key]);
  }
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
  `${LONGEST}x`,
])(
  "readIdempotencyKey() refuses '%s'",
  (value) => {
    assertEquals(assertThrows(() => read(value), ApiError, "1 to 255 visible").code, "invalid_request");
  },
);
