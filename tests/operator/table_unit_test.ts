import { assertEquals } from "@std/assert";
import { startTable } from "../../src/operator/table.ts";

Deno.test("startTable() omits a missing cell from JSON and prints a dash for it in a table", async () => {
  const lines: string[] = [];
  const io = { out: (line: string) => Promise.resolve(void lines.push(line)), err: () => {} };
  const columns = { id: ({ id }: { id: number }) => id, tags: () => undefined };

  for (const asJson of [true, false]) await startTable(columns, asJson, io)({ id: 1 });

  assertEquals(lines, ['{"id":1}', "1\t-"]);
});
