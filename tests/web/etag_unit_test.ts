import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { etagOf, isMismatch, isNotModified, quickEtagOf } from "../../src/web/etag.ts";

const TAG = etagOf("[]");

Deno.test("etagOf() returns a strong tag that is the same only for the same content", () => {
  assertMatch(TAG, /^"[\da-f]{32}"$/);
  assertEquals(etagOf("[]"), TAG);
  assertNotEquals(etagOf("[] "), TAG);
});

Deno.test.each([
  ["", '"cbf29ce484222325"'],
  ["foobar", '"85944171f73967e8"'],
  ["77kepQFQ8Kl", '"0000000000000000"'],
])("quickEtagOf() returns the FNV-1a hash of %j", (text, etag) => assertEquals(quickEtagOf(text), etag));

Deno.test("quickEtagOf() distinguishes code units that differ only in their upper byte", () => {
  assertNotEquals(quickEtagOf("\u0141"), quickEtagOf("A"));
});

/** If each call took seconds, the test would take a quarter of an hour and time out. */
const MANY = 200;
const timeout = 15_000;

Deno.test.each([" ", "\t", "\xa0"])(
  "isNotModified() and isMismatch() are fast for long runs of %j",
  { timeout },
  (space) => {
    const run = space.repeat(60_000);
    const tags = `"a"${run}x,${run}${TAG}`;
    for (let time = 0; time < MANY; time++) {
      assertEquals([isNotModified(tags, TAG), isMismatch(tags, TAG)], [true, false]);
    }
  },
);
