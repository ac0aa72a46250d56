import { assertEquals, assertThrows } from "@std/assert";
import { ItemRows } from "../../src/resource/rows.ts";
import { THINGS } from "../support/things.ts";

Deno.test("ItemRows.list() begins in the collection, and refuses a value that no filter can have", () => {
  const rows = new ItemRows(THINGS, "first");
  const start = ["generations", "things", "first", "isSpare"];

  assertEquals(rows.list({}, "acct_1"), THINGS.rows.items);
  assertEquals(rows.list({ isSpare: true }, "acct_1"), [...start, true]);
  assertThrows(() => rows.list({ isSpare: 5 }, "acct_1"), TypeError, "neither a string nor a boolean");
});
