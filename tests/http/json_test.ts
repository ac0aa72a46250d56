import { assertEquals, assertThrows } from "@std/assert";
import { parseJson } from "../../src/http/json.ts";

Deno.test.each([
  ["9007199254740993", 9007199254740993n],
  ["-9223372036854775809", -9223372036854775809n],
  ["9007199254740991", 9007199254740991],
  ["-9007199254740991", -9007199254740991],
  ["9007199254740992", 9007199254740992n],
  ["999999999999999", 999999999999999],
  ["0", 0],
  ['"9007199254740993"', "9007199254740993"],
  ["null", null],
  ["[1.0,1e2,1E2,-0.5,1e400]", [NaN, NaN, NaN, NaN, NaN]],
  ["1e2", NaN],
  ['{"a":[1,{"b":2.5,"c":9007199254740993}]}', { a: [1, { b: NaN, c: 9007199254740993n }] }],
  ['{"1.5":"2.5 and 9007199254740993"}', { "1.5": "2.5 and 9007199254740993" }],
])("parseJson() reads %s, also in a long text", (text, expected) => {
  assertEquals(parseJson(text), expected);
  assertEquals(parseJson(text + " ".repeat(5_000)), expected);
});

Deno.test("parseJson() refuses what is no JSON, also in a long text", () => {
  for (const text of ["", "{", '{"a":1,}', "\ufeff1", "9007199254740993n"]) {
    assertThrows(() => parseJson(text), SyntaxError);
    assertThrows(() => parseJson(text + " ".repeat(5_000)), SyntaxError);
  }
});
