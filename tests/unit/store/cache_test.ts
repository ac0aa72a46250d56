import { assert, assertEquals, assertRejects } from "@std/assert";
import { VersionedCache } from "../../../src/store/cache.ts";

/** A cache whose values come when the test says so. */
class Fixture {
  readonly watched = { key: ["catalogue"], version: "1" };
  /** What was to be made, and how it is made. */
  readonly makings: (PromiseWithResolvers<string> & { key: string })[] = [];
  readonly #cache: VersionedCache<string, string>;

  constructor(capacity = 100) {
    this.#cache = new VersionedCache(this.watched, capacity);
  }

  /** What the cache has, or begins to make. */
  get(key: string): string | Promise<string> {
    return this.#cache.get(key, () => {
      const making = { key, ...Promise.withResolvers<string>() };
      this.makings.push(making);
      return making.promise;
    });
  }

  /** Has the cache make something, and keep it. */
  async fill(key: string, value: string): Promise<void> {
    const got = this.get(key);
    this.makings.at(-1)?.resolve(value);
    assertEquals(await got, value);
  }

  /** The keys for which something was to be made. */
  get keys(): string[] {
    return this.makings.map(({ key }) => key);
  }
}

Deno.test("get() makes a value once for all calls at the same time, and then gives it at once", async () => {
  const fixture = new Fixture();
  const { makings } = fixture;
  const asked = [fixture.get("a"), fixture.get("a")];
  assertEquals(makings.length, 1);

  makings[0]?.resolve("one");

  assertEquals(await Promise.all(asked), ["one", "one"]);
  assertEquals([fixture.get("a"), makings.length], ["one", 1]);
});

Deno.test("get() makes a value anew for another version of the row, also while it is being made", async () => {
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

Deno.test("get() keeps no failure: the next call has the value made again", async () => {
  const fixture = new Fixture();
  const { makings } = fixture;
  const asked = [fixture.get("a"), fixture.get("a")].map((value) =>
    assertRejects(() => Promise.resolve(value), RangeError, "broken")
  );
  makings[0]?.reject(new RangeError("broken"));
  await Promise.all(asked);

  const again = fixture.get("a");
  makings[1]?.resolve("whole");

  assertEquals([await again, fixture.get("a"), makings.length], ["whole", "whole", 2]);
});

Deno.test("get() makes a value anew that was evicted", async () => {
  const fixture = new Fixture(4);
  for (const key of ["a", "b", "c", "d", "e"]) await fixture.fill(key, key);

  assertEquals(fixture.get("e"), "e");
  assert(fixture.get("a") instanceof Promise);
  assertEquals(fixture.keys, ["a", "b", "c", "d", "e", "a"]);
});
