import { assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import { ApiError } from "../../src/web/error.ts";
import {
  etagOf,
  isMismatch,
  isNotModified,
  type Preconditions,
  quickEtagOf,
  requirePreconditions,
} from "../../src/web/etag.ts";

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

const OTHER =
  /^If-Match does not contain the thing's current ETag, which is in the ETag header of this response\.$/;
const WEAK = /^If-Match .* response\. A weak tag \(W\/\) never matches\.$/;
const IS_THERE = /^If-None-Match is \*, or contains the thing's current ETag, which is in the ETag header/;

Deno.test.each<[Preconditions, RegExp | undefined]>([
  [{}, undefined],
  ...[TAG, `"a" , ${TAG},"b"`, "*", `, "a,b" ,, ${TAG} ,`].map((tags): [Preconditions, undefined] => [
    { "If-Match": tags },
    undefined,
  ]),
  [{ "If-Match": '"other"' }, OTHER],
  [{ "If-Match": '"aW/"' }, OTHER],
  [{ "If-Match": `"a", W/${TAG}` }, WEAK],
  ...[TAG, `W/${TAG}`, "*"].map((tags): [Preconditions, RegExp] => [{ "If-None-Match": tags }, IS_THERE]),
  [{ "If-None-Match": '"other"' }, undefined],
  [{ "If-Match": '"other"', "If-None-Match": "*" }, OTHER],
])("requirePreconditions() checks %j, first If-Match: %s", (headers, message) => {
  const require = () => requirePreconditions(headers, TAG, "thing");

  if (message === undefined) return require();
  const error = assertThrows(require, ApiError);
  assertEquals([error.kind.code, error.headers], ["precondition_failed", { etag: TAG }]);
  assertMatch(error.message, message);
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
