import { assert, assertEquals, assertMatch } from "@std/assert";
import { randomBase62 } from "../../src/service/mod.ts";

Deno.test("randomBase62() draws all characters equally often, for any length", () => {
  for (const length of [0, 1, 16, 500]) {
    assertMatch(randomBase62(length), new RegExp(`^[0-9A-Za-z]{${length}}$`));
  }
  const drawn = Map.groupBy(randomBase62(310_000), (character) => character);
  assertEquals(drawn.size, 62);
  // Within seven standard deviations; a byte modulo 62 would draw the first eight 6,055 times.
  for (const [character, { length }] of drawn) {
    assert(Math.abs(length - 5_000) < 491, `${character} ${length}`);
  }
});
