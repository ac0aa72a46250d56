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
import { entityTags, IDEMPOTENCY_KEY } from "../../src/web/headers.ts";
import { prefersStrict } from "../../src/web/preference.ts";
import { clientAddress } from "../../src/web/request.ts";
import { Invalid } from "../../src/web/schema.ts";

const TAG = etagOf("[]");

Deno.test("etagOf() returns a strong tag that is the same only for the same content", () => {
  assertMatch(TAG, /^"[\da-f]{32}"$/);
  assertEquals(etagOf("[]"), TAG);
  assertNotEquals(etagOf("[] "), TAG);
});

Deno.test("quickEtagOf() returns the FNV-1a hash of code units", () => {
  assertEquals(["", "foobar", "77kepQFQ8Kl"].map(quickEtagOf), [
    '"cbf29ce484222325"',
    '"85944171f73967e8"',
    '"0000000000000000"',
  ]);
  assertNotEquals(quickEtagOf("\u0141"), quickEtagOf("A"));
});

const OTHER =
  /^If-Match does not contain the thing's current ETag, which is in the ETag header of this response\.$/;
const WEAK = /^If-Match .* response\. A weak tag \(W\/\) never matches\.$/;
const IS_THERE = /^If-None-Match is \*, or contains the thing's current ETag, which is in the ETag header/;

Deno.test.each<[Preconditions, RegExp | undefined]>([
  [{}, undefined],
  [{ "If-Match": TAG }, undefined],
  [{ "If-Match": `"a" , ${TAG},"b"` }, undefined],
  [{ "If-Match": "*" }, undefined],
  [{ "If-Match": `, "a,b" ,, ${TAG} ,` }, undefined],
  [{ "If-Match": '"other"' }, OTHER],
  [{ "If-Match": '"aW/"' }, OTHER],
  [{ "If-Match": `"a", W/${TAG}` }, WEAK],
  [{ "If-None-Match": '"other"' }, undefined],
  [{ "If-None-Match": TAG }, IS_THERE],
  [{ "If-None-Match": `W/${TAG}` }, IS_THERE],
  [{ "If-None-Match": "*" }, IS_THERE],
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

const IF_MATCH = entityTags("Changes it only if it has not changed.");

Deno.test("entityTags() accepts tags as RFC 9110 has them", () => {
  const lists = ["*", '""', '"a"', 'W/"a"', '"a","b"', '"a" ,\t"b"', ', ,"a",, "b",', '"a,bW/"', '"\xe9"'];
  for (const tags of [undefined, ...lists]) assertEquals(IF_MATCH.parse(tags, "If-Match"), tags);
});

Deno.test.each([
  "a",
  '"',
  '"a',
  '"a b"',
  '"a""b"',
  '"a"x',
  'w/"a"',
  'W/ "a"',
  "W/",
  "**",
  '"a", *',
  "",
  " , ",
])("entityTags() rejects %j", (tags) => {
  const message = "If-Match must be * or entity tags in double";
  assertThrows(() => IF_MATCH.parse(tags, "If-Match"), Invalid, message);
});

/** Headers this long and this many would take half an hour to parse in quadratic time. */
Deno.test("entityTags() parses a long malformed header in linear time", () => {
  for (const part of [" ", "\t", ",", ", ", '"a",', '"a" , ', '"', 'W/"a", ,', "a"]) {
    const tags = `"a",${part.repeat(60_000 / part.length)}x`;
    for (let time = 0; time < 100; time++) assertThrows(() => IF_MATCH.parse(tags, "If-Match"), Invalid);
  }
});

const LONGEST = "x".repeat(255);

Deno.test("IDEMPOTENCY_KEY accepts a key with or without quotes, and a missing header", () => {
  for (const key of ["a", "a,b", "a,", "!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~\\", LONGEST]) {
    assertEquals([key, `"${key}"`].map((value) => IDEMPOTENCY_KEY.parse(value, "It")), [key, key]);
  }
  assertEquals(IDEMPOTENCY_KEY.parse(undefined, "It"), undefined);
});

const WRONG_KEYS = [
  "",
  '""',
  '"',
  '"a',
  'a"',
  '"a"b"',
  '"a";p=1',
  "a b",
  "a,  b",
  "a\tb",
  "caf\u00e9",
  `${LONGEST}x`,
];

Deno.test.each([
  ...WRONG_KEYS.map((key): [string, string] => [key, "It must be 1 to 255 visible"]),
  ...["a, b", '"a", "a"', "a,b, c"].map((keys): [string, string] => [keys, "The It was sent twice"]),
])("IDEMPOTENCY_KEY rejects '%s': %s", (value, message) => {
  assertThrows(() => IDEMPOTENCY_KEY.parse(value, "It"), Invalid, message);
});

Deno.test.each([
  ["handling=strict", true],
  ["Handling = STRICT", true],
  ['handling="strict"', true],
  ['handling="str\\ict"', true],
  ["handling=strict; foo", true],
  ['handling=strict ;foo = "a;, handling=lenient" ; ;bar=1', true],
  ["respond-async, wait=100, handling=strict", true],
  ['x="\\", handling=lenient", handling=strict', true],
  [", ,handling=strict,", true],
  ["handling=strict, handling=lenient", true],
  ["return=minimal;\thandling=lenient,\thandling=strict", true],
  ["", false],
  ["handling", false],
  ["handling=", false],
  ["strict", false],
  ["handling=lenient", false],
  ["handling=lenient, handling=strict", false],
  ["handling, handling=strict", false],
  ["handling=stricter", false],
  ["handling=strict x", false],
  ["xhandling=strict", false],
  ["x; handling=strict", false],
  ['x="handling=strict"', false],
  ['x="a, handling=strict', false],
  ["x=, handling=strict; ü", false],
  ["(, handling=strict", false],
])("prefersStrict() of %s is %s", (prefer, isStrict) => assertEquals(prefersStrict(prefer), isStrict));

Deno.test("prefersStrict() reads a long malformed header in linear time", () => {
  for (const piece of ["a;", " ", '"', "a=b;c ", '\\"', "a,", "a ;", '"\\']) {
    for (const start of ["", "a;", 'a="', "a="]) {
      assertEquals(prefersStrict(`${start}${piece.repeat(200_000)}"`), false);
    }
  }
});

const FORWARDED = "X-Forwarded-For";

/** The client's address in a request from `hostname` with this X-Forwarded-For. */
function addressOf(hostname: string, forwarded?: string, header?: string): string {
  const request = new Request("http://localhost/", { headers: { [FORWARDED]: forwarded ?? "" } });
  return clientAddress(request, { transport: "tcp", hostname, port: 80 }, header);
}

Deno.test.each([
  [FORWARDED, "203.0.113.9", "203.0.113.9"],
  ["x-forwarded-for", "198.51.100.1,  203.0.113.9 ", "203.0.113.9"],
  [FORWARDED, "", "10.0.0.1"],
  [FORWARDED, "203.0.113.9, ", "10.0.0.1"],
  ["X-Real-IP", "203.0.113.9", "10.0.0.1"],
  [undefined, "203.0.113.9", "10.0.0.1"],
])("clientAddress() that trusts %s, with X-Forwarded-For '%s', is %s", (header, value, expected) => {
  assertEquals(addressOf("10.0.0.1", value, header), expected);
});

Deno.test.each([
  ["203.0.113.9", "203.0.113.9 203.0.113.9:4711 [203.0.113.9]:4711"],
  ["2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6 2001:db8:1:2::6 2001:DB8:0001:2:0:0:0:6 2001:db8:1:2:3:4:5::"],
  ["2001:db8:1:2::/64", "[2001:db8:1:2::6] [2001:db8:1:2:3:4:5:6]:4711 2001:db8:1:2::6%eth0"],
  ["2001:db8:1:2::/64", "[2001:db8:1:2::%25a]:1"],
  ["2001:db8:0:0::/64", "2001:db8:: 2001:db8::6 2001:db8::1:2:3:4"],
  ["0:2:3:4::/64", "::2:3:4:5:6:7:8"],
  ["0:0:0:0::/64", ":: ::1 [::1]:80 ::fffe:192.0.2.1"],
  ["192.0.2.1", "::ffff:192.0.2.1 ::FFFF:192.0.2.1 ::ffff:c000:201 [::ffff:c000:201]:80"],
  ["192.0.2.1", "0:0:0:0:0:ffff:c000:0201"],
  ["0.0.0.1", "::ffff:0:1 0::ffff:0.0.0.1%eth0"],
])("clientAddress() returns %s for each of %s", (expected, spellings) => {
  for (const text of spellings.split(" ")) {
    assertEquals([text, addressOf(text)], [text, expected]);
    assertEquals([text, addressOf("10.0.0.1", `1.1.1.1, ${text}`, FORWARDED)], [text, expected]);
  }
});

Deno.test("clientAddress() returns the connection's address if the entry is not an address", () => {
  for (const entry of "unknown _hidden 203.0.113 203.0.113.256 203.0.113.9: 1:2:3 [::1 [] a:1".split(" ")) {
    const address = addressOf("::ffff:10.0.0.1", `203.0.113.9, ${entry}`, FORWARDED);
    assertEquals([entry, address], [entry, "10.0.0.1"]);
  }
});

Deno.test("clientAddress() falls back to the host name, or to local for a Unix socket", () => {
  const unix: Deno.UnixAddr = { transport: "unix", path: "/run/things.sock" };

  assertEquals(addressOf("somewhere"), "somewhere");
  assertEquals(clientAddress(new Request("http://localhost/"), unix, undefined), "local");
});
