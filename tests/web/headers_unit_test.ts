import { assertEquals, assertThrows } from "@std/assert";
import { entityTags, IDEMPOTENCY_KEY } from "../../src/web/headers.ts";
import { Invalid } from "../../src/web/schema.ts";

const IF_MATCH = entityTags("Changes it only if it has not changed.");
const LONGEST = "x".repeat(255);
const EVERY = "!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~\\";

Deno.test.each([
  undefined,
  ...["*", '""', '"a"', 'W/"a"', '"a","b"', '"a" ,\t"b"', ', ,"a",, "b",', '"a,bW/"', '"\xe9"'],
])("entityTags() accepts %s", (tags) => assertEquals(IF_MATCH.parse(tags, "If-Match"), tags));

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
])(
  "entityTags() rejects %j",
  (tags) => {
    assertThrows(
      () => IF_MATCH.parse(tags, "If-Match"),
      Invalid,
      "If-Match must be * or entity tags in double",
    );
  },
);

Deno.test("IDEMPOTENCY_KEY says that a key was sent twice, but not that of a key with a comma", () => {
  const values = [["a", "b"], ['"a"', '"a"'], ["a,b", "c"]].map((keys) =>
    new Headers(keys.map((key): [string, string] => ["It", key])).get("It")
  );

  for (const value of values) {
    assertThrows(() => IDEMPOTENCY_KEY.parse(value, "It"), Invalid, "The It was sent twice");
  }
  for (const key of ["a,b", "a,"]) assertEquals(IDEMPOTENCY_KEY.parse(key, "It"), key);
});

/** Headers this long and this many would take half an hour to parse in quadratic time. */
const LONG = 60_000;
const MANY = 100;

Deno.test("entityTags() parses a long malformed header in linear time", () => {
  for (const part of [" ", "\t", ",", ", ", '"a",', '"a" , ', '"', 'W/"a", ,', "a"]) {
    const tags = `"a",${part.repeat(LONG / part.length)}x`;
    for (let time = 0; time < MANY; time++) assertThrows(() => IF_MATCH.parse(tags, "If-Match"), Invalid);
  }
});

Deno.test("IDEMPOTENCY_KEY accepts a key with or without quotes, and a missing header", () => {
  for (const key of ["a", EVERY, LONGEST]) {
    assertEquals([key, `"${key}"`].map((value) => IDEMPOTENCY_KEY.parse(value, "It")), [key, key]);
  }
  assertEquals(IDEMPOTENCY_KEY.parse(undefined, "It"), undefined);
});

Deno.test.each(
  ["", '""', '"', '"a', 'a"', '"a"b"', '"a";p=1', "a b", "a,  b", "a\tb", "caf\u00e9", `${LONGEST}x`],
)("IDEMPOTENCY_KEY rejects '%s'", (value) => {
  assertThrows(() => IDEMPOTENCY_KEY.parse(value, "It"), Invalid, "It must be 1 to 255 visible");
});
