import { assertEquals } from "@std/assert";
import { startTable } from "../../../src/operator/table.ts";

Deno.test("startTable() leaves out of JSON what a thing does not have, and tells people of it", async () => {
  const lines: string[] = [];
  const terminal = { out: (line: string) => Promise.resolve(void lines.push(line)), err: () => {} };
  const columns = { id: ({ id }: { id: number }) => id, tags: () => undefined };

  for (const asJson of [true, false]) await startTable(columns, asJson, terminal)({ id: 1 });

  assertEquals(lines, ['{"id":1}', "1\t-"]);
});
