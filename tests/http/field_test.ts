import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { int64Field, stringField } from "../../src/http/field.ts";

const BOUNDS = { min: 1, max: 3 };

Deno.test.each(["a", "abc", "🐶🐱🐭", "   ", "\u0000", "e\u0301x"])(
  "stringField() takes %j as it is",
  (value) => {
    assertEquals(stringField({ value }, "value", BOUNDS), value);
  },
);

Deno.test.each([
  ["", "value must have 1 to 3 characters."],
  ["abcd", "value must have 1 to 3 characters."],
  ["🐶🐱🐭🐹", "value must have 1 to 3 characters."],
  ["\ud83d", "value must not contain half a surrogate pair."],
  ["a\udc36", "value must not contain half a surrogate pair."],
  [undefined, "value is required and must be a string."],
  [null, "value must be a string."],
  [1n, "value must be a string."],
  [["a"], "value must be a string."],
])("stringField() refuses %j", (value, message) => {
  const error = assertThrows(() => stringField({ value }, "value", BOUNDS), ApiError);
  assertEquals([error.code, error.message], ["invalid_request", message]);
});

Deno.test.each([
  [0, 0n],
  [-1, -1n],
  [9007199254740991, 9007199254740991n],
  [9223372036854775807n, 9223372036854775807n],
  [-9223372036854775808n, -9223372036854775808n],
])("int64Field() takes %s", (value, expected) => {
  assertEquals(int64Field({ value }, "value"), expected);
});

Deno.test.each([
  ["above int64", 9223372036854775808n],
  ["below int64", -9223372036854775809n],
  ["a fraction", 1.5],
  ["no number", NaN],
  ["rounded", 9007199254740992],
  ["infinite", Infinity],
  ["a string", "1"],
  ["a boolean", true],
  ["null", null],
  ["a list", [1n]],
])("int64Field() refuses what is %s", (_, value) => {
  const error = assertThrows(() => int64Field({ value }, "value"), ApiError);
  assertEquals([error.code, error.message], [
    "invalid_request",
    "value must be an integer from -9223372036854775808 to 9223372036854775807.",
  ]);
});
