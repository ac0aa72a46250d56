import { assertEquals } from "@std/assert";
import { print, readLines } from "../../src/process/process.ts";
import { CapturedErrors, standardInput } from "./standard_streams.ts";

Deno.test("print() writes a line to standard error and ignores a failure to write", () => {
  using errors = new CapturedErrors();

  print("One");
  errors.isFull = true;
  print("Two");

  assertEquals(errors.text, "One\n");
});

Deno.test.each<[string[], string[]]>([
  [["a\nb\n"], ["a", "b"]],
  [["a\nb"], ["a", "b"]],
  [["a\r\nb\r\n"], ["a", "b"]],
  [["a\r", "\nb", "c"], ["a", "bc"]],
  [["\n", "a\n\n"], ["", "a", ""]],
  [[], []],
])("readLines() splits %j into %j", async (pieces, lines) => {
  using _ = standardInput(...pieces);

  assertEquals(await Array.fromAsync(readLines()), lines);
});
