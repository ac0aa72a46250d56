import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { etagOf, isMismatch, isNotModified, quickEtagOf } from "../../../src/http/etag.ts";

const TAG = etagOf("[]");

Deno.test("etagOf() is strong, the same for the same content, and another for another", () => {
  assertMatch(TAG, /^"[\da-f]{32}"$/);
  assertEquals(etagOf("[]"), TAG);
  assertNotEquals(etagOf("[] "), TAG);
});

Deno.test.each([
  ["", '"cbf29ce484222325"'],
  ["foobar", '"85944171f73967e8"'],
  ["77kepQFQ8Kl", '"0000000000000000"'],
])("quickEtagOf() tags %j with its FNV-1a", (text, etag) => assertEquals(quickEtagOf(text), etag));

Deno.test("quickEtagOf() tells code units apart that differ in their upper half alone", () => {
  assertNotEquals(quickEtagOf("\u0141"), quickEtagOf("A"));
});

/** Seconds for each of them would add up to a quarter of an hour, and the test ends long before that. */
const MANY = 200;
const timeout = 15_000;

Deno.test.each([" ", "\t", "\xa0"])(
  "isNotModified() and isMismatch() take no time for runs of %j",
  { timeout },
  (space) => {
    const run = space.repeat(60_000);
    const tags = `"a"${run}x,${run}${TAG}`;
    for (let time = 0; time < MANY; time++) {
      assertEquals([isNotModified(tags, TAG), isMismatch(tags, TAG)], [true, false]);
    }
  },
);
