import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  duration,
  jsonPieces,
  maskKey,
  namesIn,
  nextCursor,
  placeIn,
  readProblem,
} from "../../src/page/script/text.js";

Deno.test("maskKey() replaces all but the beginning of a key with asterisks", () => {
  assertEquals(maskKey("as_test_abcdef"), "as_test_abcd****");
  assertEquals(maskKey("a"), "a");
});

Deno.test("duration() formats seconds, minutes and hours", () => {
  assertEquals([1, 99, 100, 5_999, 6_000, 86_400].map(duration), [
    "1 s",
    "99 s",
    "2 min",
    "100 min",
    "2 h",
    "24 h",
  ]);
});

Deno.test("jsonPieces() indents any JSON like JSON.stringify()", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const pieces = jsonPieces(JSON.stringify(value));
    assertEquals(pieces.map(([, text]) => text).join(""), JSON.stringify(value, null, 2));
  }));
});

Deno.test("jsonPieces() distinguishes names, strings, numbers and literals, and keeps every digit", () => {
  const pieces = jsonPieces('{"id":9223372036854775807,"a":["b",null]}').filter(([kind]) => kind !== "plain");

  assertEquals(pieces, [
    ["name", '"id"'],
    ["number", "9223372036854775807"],
    ["name", '"a"'],
    ["string", '"b"'],
  ]);
});

Deno.test("nextCursor() returns the cursor of the link to the next page only", () => {
  assertEquals(nextCursor('<http://a/v1/things?limit=2&cursor=Mg%3D>; rel="next"'), "Mg=");
  assertEquals(nextCursor('<http://a/v1/things?cursor=Mg>; rel="prev", <http://a/b>; rel="next"'), "");
  assertEquals(nextCursor(null), "");
});

Deno.test("readProblem() returns the code and message of an Error body, otherwise empty texts", () => {
  assertEquals(readProblem('{"code":"a","message":"b \\"c\\"","status":400}'), {
    code: "a",
    message: 'b "c"',
  });
  for (const text of ["", "null", "[]", "<html>", '"code"']) {
    assertEquals(readProblem(text), { code: "", message: "" });
  }
});

Deno.test("namesIn() returns the names that are words of the message", () => {
  const message = "The If-Match must be entity tags. The field weight must be an integer";
  assertEquals(namesIn(message, ["If-Match", "weight", "limit", "tag"]), ["If-Match", "weight"]);
  assertEquals(namesIn("", ["limit"]), []);
});

Deno.test("placeIn() returns the position of a line and a column, or undefined", () => {
  const text = '{\n  "name": True\n}';
  assertEquals(placeIn("Its first fault is at line 2, column 11.", text), text.indexOf("True"));
  assertEquals(placeIn("The fault is at line 1, column 1.", text), 0);
  assertEquals(placeIn("The field name must be a string.", text), undefined);
});
