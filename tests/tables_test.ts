import { assertEquals } from "@std/assert";
import { readGuides } from "./tables.ts";

Deno.test("tables of the guides are current: if not, run deno task docs", async () => {
  const outdated = (await readGuides()).filter(({ text, current }) => text !== current);

  assertEquals(outdated.map(({ path }) => path), []);
});
