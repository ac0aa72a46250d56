import { assert, assertEquals, assertRejects } from "@std/assert";
import { VersionedCache } from "../../../src/store/cache.ts";

/** A cache whose values resolve on demand. */
class Fixture {
  readonly watched = { key: ["catalogue"], version: "1" };
  /** The calls to make a value, with their promises. */
  readonly makings: (PromiseWithResolvers<string> & { key: string })[] = [];
  readonly #cache: VersionedCache<string, string>;

  constructor(capacity = 100) {
    this.#cache = new VersionedCache(this.watched, capacity);
  }

  /** The cached value, or a promise of it. */
  get(key: string): string | Promise<string> {
    return this.#cache.get(key, () => {
      const making = { key, ...Promise.withResolvers<string>() };
      this.makings.push(making);
      return making.promise;
    });
  }

  /** Makes the cache store a value. */
  async fill(key: string, value: string): Promise<void> {
    const got = this.get(key);
    this.makings.at(-1)?.resolve(value);
    assertEquals(await got, value);
  }

  /** The keys of the values that were made, in order. */
  get keys(): string[] {
    return this.makings.map(({ key }) => key);
  }
}

Deno.test("VersionedCache.get() makes a value once for simultaneous calls, then returns it directly", async () => {
  const fixture = new Fixture();
  const { makings } = fixture;
  const values = [fixture.get("a"), fixture.get("a")];
  assertEquals(makings.length, 1);

  makings[0]?.resolve("one");

  assertEquals(await Promise.all(values), ["one", "one"]);
  assertEquals([fixture.get("a"), makings.length], ["one", 1]);
});

Deno.test("VersionedCache.get() makes a value again for a new version, even while making an old one", async () => {
  const fixture = new Fixture();
  const { watched, makings } = fixture;
  await fixture.fill("a", "old");
  watched.version = "2";
  await fixture.fill("a", "new");
  assertEquals(fixture.get("a"), "new");

  watched.version = "3";
  const early = fixture.get("a");
  watched.version = "4";
  const late = fixture.get("a");
  makings[2]?.resolve("third");
  makings[3]?.resolve("fourth");

  assertEquals([await early, await late], ["third", "fourth"]);
  assertEquals([fixture.get("a"), makings.length], ["fourth", 4]);
});

Deno.test("VersionedCache.get() does not cache a failure", async () => {
  const fixture = new Fixture();
  const { makings } = fixture;
  const values = [fixture.get("a"), fixture.get("a")].map((value) =>
    assertRejects(() => Promise.resolve(value), RangeError, "broken")
  );
  makings[0]?.reject(new RangeError("broken"));
  await Promise.all(values);

  const again = fixture.get("a");
  makings[1]?.resolve("whole");

  assertEquals([await again, fixture.get("a"), makings.length], ["whole", "whole", 2]);
});

Deno.test("VersionedCache.get() makes an evicted value again", async () => {
  const fixture = new Fixture(4);
  for (const key of ["a", "b", "c", "d", "e"]) await fixture.fill(key, key);

  assertEquals(fixture.get("e"), "e");
  assert(fixture.get("a") instanceof Promise);
  assertEquals(fixture.keys, ["a", "b", "c", "d", "e", "a"]);
});
