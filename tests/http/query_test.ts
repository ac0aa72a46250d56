import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { readQuery } from "../../src/http/query.ts";

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
    const error = assertThrows(
      () => readQuery(query, ["limit", "status"]),
      ApiError,
      "limit must be given at most once",
    );
    assertEquals(error.code, "invalid_request");
  },
);
