import { assertEquals } from "@std/assert";
import { prefersStrict } from "../../src/web/preference.ts";

Deno.test.each([
  "handling=strict",
  "Handling = STRICT",
  'handling="strict"',
  'handling="str\\ict"',
  "handling=strict; foo",
  'handling=strict ;foo = "a;, handling=lenient" ; ;bar=1',
  "respond-async, wait=100, handling=strict",
  'x="\\", handling=lenient", handling=strict',
  ", ,handling=strict,",
  "handling=strict, handling=lenient",
  "return=minimal;\thandling=lenient,\thandling=strict",
])("prefersStrict() is true for %s", (prefer) => {
  assertEquals(prefersStrict(prefer), true);
});

Deno.test.each([
  "",
  "handling",
  "handling=",
  "strict",
  "handling=lenient",
  "handling=lenient, handling=strict",
  "handling, handling=strict",
  "handling=stricter",
  "handling=strict x",
  "xhandling=strict",
  "x; handling=strict",
  'x="handling=strict"',
  'x="a, handling=strict',
  "x=, handling=strict; ü",
  "(, handling=strict",
])("prefersStrict() is false for %s", (prefer) => {
  assertEquals(prefersStrict(prefer), false);
});

Deno.test("prefersStrict() reads the lines of several headers as one list", () => {
  const headers = new Headers([["prefer", "wait=1"], ["Prefer", "handling=strict"]]);

  assertEquals(prefersStrict(headers.get("prefer") ?? ""), true);
});

Deno.test("prefersStrict() reads a long malformed header in linear time", () => {
  for (const piece of ["a;", " ", '"', "a=b;c ", '\\"', "a,", "a ;", '"\\']) {
    for (const start of ["", "a;", 'a="', "a="]) {
      assertEquals(prefersStrict(`${start}${piece.repeat(200_000)}"`), false);
    }
  }
});
