import { assertEquals, assertThrows } from "@std/assert";
import { jsonResponse, parseJson, stringifyJson } from "../../src/http/json.ts";

Deno.test.each([
  ["9007199254740993", 9007199254740993n],
  ["-9223372036854775809", -9223372036854775809n],
  ["0", 0n],
  ["-0", 0n],
  ["1.0", 1],
  ["1e2", 100],
  ["1e400", Infinity],
  ['"9007199254740993"', "9007199254740993"],
  ["null", null],
  ["true", true],
  ['{"a":[1,{"b":2.5}]}', { a: [1n, { b: 2.5 }] }],
])("parseJson() reads %s", (text, expected) => {
  assertEquals(parseJson(text), expected);
});

Deno.test.each(["", " ", "{", "01", "1n", "NaN", "'a'", '{"a":1,}', "[1]]", "\ufeff1"])(
  "parseJson() refuses '%s'",
  (text) => {
    assertThrows(() => parseJson(text), SyntaxError);
  },
);

Deno.test.each([
  "9007199254740993",
  "-9223372036854775808",
  '{"a":[9223372036854775807,{"b":2.5,"c":"9007199254740993"}],"d":null,"e":false}',
])("stringifyJson() writes %s as it was parsed", (text) => {
  assertEquals(stringifyJson(parseJson(text)), text);
});

Deno.test("jsonResponse() sends JSON text", async () => {
  const response = jsonResponse(stringifyJson({ id: 9007199254740993n }));

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(await response.text(), '{"id":9007199254740993}');
});
