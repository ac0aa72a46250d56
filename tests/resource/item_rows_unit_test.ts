import { assertEquals, assertThrows } from "@std/assert";
import { ItemRows } from "../../src/resource/rows.ts";
import { THINGS } from "../support/things.ts";

Deno.test("ItemRows.page() begins in the collection, and refuses a value that no filter can have", () => {
  const rows = new ItemRows(THINGS, "first");
  const startOf = (query: object) => rows.page({ ...query }, "acct_1")?.start.slice(0, -1);

  assertEquals(startOf({}), THINGS.rows.items);
  assertEquals(startOf({ isSpare: true }), ["generations", "things", "first", "isSpare", true]);
  assertThrows(() => startOf({ isSpare: {} }), TypeError, "There is no list of things by isSpare");
});
