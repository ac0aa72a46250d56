import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { etagOf, isNotModified, isPreconditionFailed } from "../../src/http/etag.ts";

const TAG = etagOf("[]");

function asks(name: string, value: string): Request {
  return new Request("http://localhost/", { headers: { [name]: value } });
}

Deno.test("etagOf() is strong, the same for the same content, and another for another", () => {
  assertMatch(TAG, /^"[\da-f]{32}"$/);
  assertEquals(etagOf("[]"), TAG);
  assertNotEquals(etagOf("[] "), TAG);
});

/** Seconds for each of them would add up to a quarter of an hour. */
const MANY = 200;

Deno.test.each([" ", "\t", "\xa0"])(
  "isNotModified() and isPreconditionFailed() take no time for runs of %j",
  (space) => {
    const run = space.repeat(60_000);
    const known = asks("if-none-match", `"a"${run}x,${run}${TAG}`);
    const wanted = asks("if-match", `"a"${run}x,${run}${TAG}`);
    for (let time = 0; time < MANY; time++) {
      assertEquals([isNotModified(known, TAG), isPreconditionFailed(wanted, "[]")], [true, false]);
    }
  },
);
