import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import {
  int64Field,
  integerField,
  integerParameter,
  readQuery,
  stringField,
} from "../../src/http/validation.ts";

const BOUNDS = { min: 2, max: 3 };
const INT64 = "an integer from -9223372036854775808 to 9223372036854775807";

/** Asserts that `read` refuses what the client sent, in these words. */
function assertInvalid(read: () => unknown, message: string): void {
  const error = assertThrows(read, ApiError);
  assertEquals([error.code, error.message], ["invalid_request", message]);
}

Deno.test.each(["a", "🐶", "abc", "🐶🐱", "🐶🐱🐭", "   ", "a\u0000", "e\u0301x"])(
  "stringField() takes %j as it is",
  (value) => {
    assertEquals(stringField({ value }, "value", 3), value);
  },
);

Deno.test.each([
  ["", "value must have 1 to 3 characters."],
  ["abcd", "value must have 1 to 3 characters."],
  ["🐶🐱🐭🐹", "value must have 1 to 3 characters."],
  ["a\ud83d", "value must not contain half a surrogate pair."],
  ["a\udc36", "value must not contain half a surrogate pair."],
  [undefined, "value is required and must be a string."],
  [null, "value must be a string."],
  [1n, "value must be a string."],
  [["ab"], "value must be a string."],
])("stringField() refuses %j", (value, message) => {
  assertInvalid(() => stringField({ value }, "value", 3), message);
});

Deno.test.each([0, -1, 9007199254740991, 9223372036854775807n, -9223372036854775808n])(
  "int64Field() takes %s",
  (value) => assertEquals(int64Field({ value }, "value"), BigInt(value)),
);

Deno.test("int64Field() and integerField() refuse what is no such integer, or missing", () => {
  for (const value of [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, 1.5, NaN, "1", true, null, {}]) {
    assertInvalid(() => int64Field({ value }, "value"), `value must be ${INT64}.`);
  }
  assertInvalid(() => int64Field({}, "value"), `value is required and must be ${INT64}.`);
  for (const value of [1, 4, 2.5, NaN, 2n, "2", null]) {
    assertInvalid(() => integerField({ value }, "value", BOUNDS), "value must be an integer from 2 to 3.");
  }
  const missing = "value is required and must be an integer from 2 to 3.";
  assertInvalid(() => integerField({}, "value", BOUNDS), missing);
  assertEquals([2, 3].map((value) => integerField({ value }, "value", BOUNDS)), [2, 3]);
});

Deno.test.each([
  ["", []],
  ["?", []],
  ["?limit=5", [["limit", "5"]]],
  ["?status=s%6Fld&limit=", [["limit", ""], ["status", "sold"]]],
  ["?limit", [["limit", ""]]],
  ["?Limit=5&__proto__=1&constructor=2", []],
  ["?other=1&other=2&limit=5", [["limit", "5"]]],
])("readQuery() reads %s", (query, expected) => {
  assertEquals<unknown>([...readQuery(query, ["limit", "status"])], expected);
});

Deno.test.each(["?limit=1&limit=2", "?limit=1&status=sold&limit=1", "?limit&limit=1", "?limit=1&l%69mit=1"])(
  "readQuery() refuses %s",
  (query) => {
    assertInvalid(() => readQuery(query, ["limit", "status"]), "limit must be given at most once.");
  },
);

Deno.test("integerParameter() reads an integer within its bounds, in no more digits than those", () => {
  const read = (text?: string) => {
    const parameters = new Map(text === undefined ? [] : [["days", text]]);
    return integerParameter(parameters, "days", { min: 2, max: 30, otherwise: 7 });
  };

  assertEquals([undefined, "2", "02", "30"].map(read), [7, 2, 2, 30]);
  for (const text of ["", "1", "31", "002", "-2", "2.0", "1e1", " 2", "２"]) {
    assertInvalid(() => read(text), "The query parameter days must be an integer from 2 to 30.");
  }
});
