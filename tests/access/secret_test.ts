import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import {
  createSecret,
  type Environment,
  hashSecret,
  isSecret,
  randomBase62,
} from "../../src/access/secret.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const environments = [
  { environment: "production", other: "staging", form: /^as_live_[0-9A-Za-z]{38}$/ },
  { environment: "staging", other: "production", form: /^as_test_[0-9A-Za-z]{38}$/ },
] as const satisfies { environment: Environment; other: Environment; form: RegExp }[];

for (const { environment, other, form } of environments) {
  Deno.test(`createSecret() makes a key of ${environment}, for it alone`, () => {
    for (let count = 0; count < 100; count++) {
      const secret = createSecret(environment);
      assertMatch(secret, form);
      assert(isSecret(secret, environment));
      assert(!isSecret(secret, other));
    }
  });

  Deno.test(`isSecret() notices every mistyped character of a key of ${environment}`, () => {
    const secret = createSecret(environment);
    for (let place = 0; place < secret.length; place++) {
      for (const character of BASE62 + "_- é") {
        const typo = secret.slice(0, place) + character + secret.slice(place + 1);
        if (typo !== secret) assert(!isSecret(typo, environment), typo);
      }
    }
  });

  Deno.test(`isSecret() notices every swap of neighbours in a key of ${environment}`, () => {
    for (let count = 0; count < 100; count++) {
      const secret = createSecret(environment);
      for (let place = 1; place < secret.length; place++) {
        const swapped = secret.slice(0, place - 1) + secret.charAt(place) + secret.charAt(place - 1) +
          secret.slice(place + 1);
        if (swapped !== secret) assert(!isSecret(swapped, environment), `${secret} ${swapped}`);
      }
    }
  });
}

Deno.test("isSecret() refuses a key with something missing, added or in other letters", () => {
  const secret = createSecret("staging");

  for (
    const text of [
      "",
      "as_test_",
      secret.slice(1),
      secret.slice(0, -1),
      `${secret}0`,
      `0${secret}`,
      ` ${secret}`,
      `${secret}\n`,
      secret.toUpperCase(),
      secret.replace("as_test_", "as_prod_"),
      secret.replace("as_test_", "as_live_"),
    ]
  ) assert(!isSecret(text, "staging"), text);
});

Deno.test("createSecret() never makes the same key twice", () => {
  const secrets = Array.from({ length: 1_000 }, () => createSecret("staging"));

  assertEquals(new Set(secrets).size, 1_000);
});

Deno.test("randomBase62() draws every character, at every place, for any length", () => {
  for (const length of [0, 1, 16, 32, 500]) {
    assertMatch(randomBase62(length), new RegExp(`^[0-9A-Za-z]{${length}}$`));
  }
  assertEquals(new Set(randomBase62(20_000)).size, 62);
});

Deno.test("hashSecret() is SHA-256 in hex", () => {
  assertEquals(
    hashSecret("abc"),
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
  assertNotEquals(hashSecret("abc"), hashSecret("abd"));
});
