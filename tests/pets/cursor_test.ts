import { assertEquals, assertMatch } from "@std/assert";
import { decodeCursor, encodeCursor } from "../../src/pets/cursor.ts";

Deno.test.each([1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER])(
  "decodeCursor() undoes encodeCursor(%i)",
  (id) => {
    const cursor = encodeCursor(id);

    assertMatch(cursor, /^[\w-]+$/);
    assertEquals(decodeCursor(cursor), id);
  },
);

Deno.test.each([
  ["", "nothing"],
  ["MQ==", "padded"],
  ["MQ=", "padded by half"],
  [" MQ", "after a space"],
  ["MR", "with stray bits"],
  ["1", "a digit"],
  [btoa("0001"), "leading zeros"],
  [btoa(" 12"), "a space"],
  [btoa("0x1"), "hexadecimal"],
  [btoa("Infinity"), "without end"],
  ["é", "not base64"],
])("decodeCursor() refuses '%s', %s", (cursor, _) => {
  assertEquals(decodeCursor(cursor), undefined);
});
