import { assertEquals, assertThrows } from "@std/assert";
import {
  exceededBound,
  type JsonBounds,
  parseJson,
  parseStoredJson,
  stringifyJson,
} from "../../src/web/json.ts";

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
  ["[1.0,1e3,1E+3,1200e-2,0.5e1,-0e-9,0.0]", [1, 1_000, 1_000, 12, 5, 0, 0]],
  ["[1.5,-0.5,12e-1,1e-400,9007199254740993.5]", [NaN, NaN, NaN, NaN, NaN]],
  ["9007199254740993.0", 9007199254740993n],
  ["900719925474099.30e1", 9007199254740993n],
  ["-9.223372036854775808e18", -9223372036854775808n],
  ["1e18", 10n ** 18n],
  ["1e400", Infinity],
  [`1e${"9".repeat(1_000)}`, Infinity],
  [`1e-${"9".repeat(1_000)}`, NaN],
  [`0.${"0".repeat(1_000)}7e1001`, 7],
  [`1${"0".repeat(1_000)}e-1000`, 1],
  [`1${"0".repeat(1_000)}1e-1000`, NaN],
  ["-9999999999999999999", -9999999999999999999n],
  ["10000000000000000000", 1e19],
  ['{"a":[1,{"b":2.5,"c":9007199254740993}]}', { a: [1, { b: NaN, c: 9007199254740993n }] }],
  ['{"1.5":"2.5 and 9007199254740993"}', { "1.5": "2.5 and 9007199254740993" }],
])("parseJson() parses %s in short and long texts", (text, expected) => {
  assertEquals(parseJson(text), expected);
  assertEquals(parseJson(text + " ".repeat(5_000)), expected);
});

Deno.test("parseStoredJson() parses the output of stringifyJson() without loss", () => {
  const json = '[1.5,-0.25,1e+30,12345678901234567,9223372036854775807,"1.5"]';

  assertEquals(stringifyJson(parseStoredJson(json)), json);
});

Deno.test("parseJson() and parseStoredJson() parse long numbers in linear time", () => {
  for (
    const number of [`1${"0".repeat(1_000_000)}1.5`, "9".repeat(1_000_000), `0.${"0".repeat(1_000_000)}1`]
  ) {
    for (const parse of [parseJson, parseStoredJson]) assertEquals(typeof parse(number), "number");
  }
});

Deno.test.each([
  ["{", "line 1, column 2"],
  ['{"a":', "line 1, column 6"],
  ['{"a":1,}', "line 1, column 8"],
  ['{"a":True}', "line 1, column 6"],
  ["[1,\n 2,\r\n nulx]", "line 3, column 5"],
  ['{"a": "x\ny"}', "line 1, column 9"],
  ["\ufeff1", "line 1, column 1"],
  ["NaN", "line 1, column 1"],
  ["9007199254740993n", "line 1, column 17"],
  ["[, at position 7]", "line 1, column 2"],
])("parseJson() says where %j is not JSON, in short and long texts: %s", (text, place) => {
  assertEquals(assertThrows(() => parseJson(text), SyntaxError).message, place);
  const filler = `["${"x".repeat(5_000)}",\n\n`;
  const [, line = "", column = ""] = /line (\d+), column (\d+)/.exec(place) ?? [];
  const long = assertThrows(() => parseJson(filler + text), SyntaxError);
  assertEquals(long.message, `line ${Number(line) + 2}, column ${column}`);
});

Deno.test("parseJson() says that a text ends too early by the place of its end", () => {
  for (const text of ["", "\n\n ", '["abc', '{"a"']) {
    const lines = text.split("\n");
    const place = `line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}`;
    assertEquals(assertThrows(() => parseJson(text), SyntaxError).message, place);
  }
});

Deno.test.each([
  ["1", 1, 0],
  [" [ ] ", 1, 1],
  ["[[],{}]", 3, 2],
  ['{"a":{"b":[1,null,""]}}', 6, 3],
  ['"[[1,2],{"', 1, 0],
  ['["\\"[,[,","\\\\",["a\\u0022,"]]', 5, 2],
  ['{"[,{":"é,[🐶"}', 2, 1],
  ["[ {\n} , [\t], [[\r],[ ]]]", 6, 3],
])("exceededBound() counts the values and levels of %s: %i and %i", (json, values, levels) => {
  assertBounds(json, { values, levels });
});

Deno.test.each(["", "}]", '"[[1,1', "[1,1,1", '"\\', ":::", "{]"])(
  "exceededBound() scans invalid JSON to its end: %j",
  (text) => {
    assertEquals(exceededBound(new TextEncoder().encode(text), { values: 3, levels: 1 }), undefined);
  },
);

/** Asserts that a text has exactly as many values and levels as the bounds. */
function assertBounds(json: string, bounds: JsonBounds): void {
  const bytes = new TextEncoder().encode(json);
  const { values, levels } = bounds;
  assertEquals([json, exceededBound(bytes, bounds)], [json, undefined]);
  assertEquals([json, exceededBound(bytes, { values: values - 1, levels })], [json, "values"]);
  if (levels > 0) assertEquals(exceededBound(bytes, { values, levels: levels - 1 }), "levels");
}
