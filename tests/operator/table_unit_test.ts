import { assertEquals } from "@std/assert";
import { startTable } from "../../src/operator/table.ts";

/** The lines of an item with these cells. */
async function linesOf(cells: Readonly<Record<string, unknown>>): Promise<string[]> {
  const lines: string[] = [];
  const io = { out: (line: string) => Promise.resolve(void lines.push(line)), err: () => {} };
  const columns = Object.fromEntries(Object.entries(cells).map(([name, cell]) => [name, () => cell]));
  for (const asJson of [true, false]) await startTable(columns, asJson, io)({});
  return lines;
}

Deno.test("startTable() omits a missing cell from JSON and prints a dash for it in a table", async () => {
  assertEquals(await linesOf({ id: 1, tags: undefined }), ['{"id":1}', "1\t-"]);
});

Deno.test("startTable() prints true and false as options have them, and lists as JSON", async () => {
  assertEquals(await linesOf({ isNew: true, isBig: false, tags: ["a", "b"], none: [] }), [
    '{"isNew":true,"isBig":false,"tags":["a","b"],"none":[]}',
    'yes\tno\t["a","b"]\t[]',
  ]);
});
