import { assert, assertEquals, assertMatch } from "@std/assert";
import { hashApiKey, randomBase62 } from "../../src/accounts/api_key.ts";
import { KEYS } from "../support/things.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

Deno.test.each(
  [
    ["production", "staging", /^as_live_[0-9A-Za-z]{38}$/],
    ["staging", "production", /^as_test_[0-9A-Za-z]{38}$/],
  ] as const,
)("KeyForm.create() returns a key that is valid only in %s", (environment, other, form) => {
  const key = KEYS.create(environment);

  assertMatch(key, form);
  assertEquals([KEYS.accepts(key, environment), KEYS.accepts(key, other)], [true, false]);
});

Deno.test("KeyForm.accepts() detects every mistyped character, and every swap of adjacent ones", () => {
  for (let count = 0; count < 20; count++) {
    const key = KEYS.create("staging");
    for (const [place, character] of [...key].entries()) {
      const typos = [...BASE62, ..."_- é"].map((other) => key.slice(0, place) + other + key.slice(place + 1));
      const swapped = key.slice(0, place) + key.charAt(place + 1) + character + key.slice(place + 2);
      for (const wrong of [...typos, swapped].filter((one) => one !== key)) {
        assert(!KEYS.accepts(wrong, "staging"), `${key} ${wrong}`);
      }
    }
  }
});

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

Deno.test("hashApiKey() returns the SHA-256 hash in hex", () => {
  const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assertEquals(hashApiKey("abc"), hash);
});

Deno.test("KeyForm.secret matches keys of both environments anywhere in a text", () => {
  const [live, staging] = [KEYS.create("production"), KEYS.create("staging")];

  const text = `"${live}",x${staging}`.replace(KEYS.secret, "[secret]");

  assertEquals(text, '"[secret]",x[secret]');
});
