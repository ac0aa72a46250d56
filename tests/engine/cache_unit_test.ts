import { assert, assertEquals, assertRejects } from "@std/assert";
import { VersionedCache } from "../../src/engine/cache.ts";

/** A cache whose values resolve on demand. */
class Fixture {
  readonly watched = { key: ["versions", "things"], version: "1" };
  /** The calls of `make`, whose promises the test resolves. */
  readonly calls: (PromiseWithResolvers<string> & { key: string })[] = [];
  readonly #cache: VersionedCache<string, string>;

  constructor(capacity = 100, sizeOf: (value: string) => number = () => 1) {
    this.#cache = new VersionedCache(this.watched, capacity, sizeOf);
  }

  /** The cached value, or a promise of it. */
  get(key: string): string | Promise<string> {
    return this.#cache.get(key, () => {
      const call = { key, ...Promise.withResolvers<string>() };
      this.calls.push(call);
      return call.promise;
    });
  }

  /** Makes the cache store a value. */
  async fill(key: string, value: string): Promise<void> {
    const got = this.get(key);
    this.calls.at(-1)?.resolve(value);
    assertEquals(await got, value);
  }

  /** The keys of the values that were made, in order. */
  get keys(): string[] {
    return this.calls.map(({ key }) => key);
  }
}

Deno.test("VersionedCache.get() makes a value once for simultaneous calls, then returns it directly", async () => {
  const fixture = new Fixture();
  const { calls } = fixture;
  const values = [fixture.get("a"), fixture.get("a")];
  assertEquals(calls.length, 1);

  calls[0]?.resolve("one");

  assertEquals(await Promise.all(values), ["one", "one"]);
  assertEquals([fixture.get("a"), calls.length], ["one", 1]);
});

Deno.test("VersionedCache.get() makes a value again for a new version, even while making an old one", async () => {
  const fixture = new Fixture();
  const { watched, calls } = fixture;
  await fixture.fill("a", "old");
  watched.version = "2";
  await fixture.fill("a", "new");
  assertEquals(fixture.get("a"), "new");

  watched.version = "3";
  const early = fixture.get("a");
  watched.version = "4";
  const late = fixture.get("a");
  calls[3]?.resolve("fourth");
  calls[2]?.resolve("third");

  assertEquals([await late, await early], ["fourth", "third"]);
  assertEquals([fixture.get("a"), calls.length], ["fourth", 4]);
});

Deno.test("VersionedCache.get() does not cache a failure", async () => {
  const fixture = new Fixture();
  const { calls } = fixture;
  const values = [fixture.get("a"), fixture.get("a")].map((value) =>
    assertRejects(() => Promise.resolve(value), RangeError, "broken")
  );
  calls[0]?.reject(new RangeError("broken"));
  await Promise.all(values);

  const again = fixture.get("a");
  calls[1]?.resolve("whole");

  assertEquals([await again, fixture.get("a"), calls.length], ["whole", "whole", 2]);
});

Deno.test("VersionedCache.get() keeps a newer value when making an old one fails", async () => {
  const fixture = new Fixture();
  const old = fixture.get("a");
  fixture.watched.version = "2";
  await fixture.fill("a", "new");

  fixture.calls[0]?.reject(new Error("failed"));
  await assertRejects(async () => await old, Error, "failed");

  assertEquals([fixture.get("a"), fixture.calls.length], ["new", 2]);
});

Deno.test("VersionedCache.get() makes an evicted value again", async () => {
  const fixture = new Fixture(4);
  for (const key of ["a", "b", "c", "d", "e"]) await fixture.fill(key, key);

  assertEquals(fixture.get("e"), "e");
  assert(fixture.get("a") instanceof Promise);
  assertEquals(fixture.keys, ["a", "b", "c", "d", "e", "a"]);
});

Deno.test("VersionedCache.get() keeps values up to a total size, and none larger than half of it", async () => {
  const fixture = new Fixture(10, (value) => value.length);
  for (const key of ["aa", "bbb", "cccc", "dddddd"]) await fixture.fill(key, key);

  assertEquals(["cccc", "bbb"].map((key) => fixture.get(key)), ["cccc", "bbb"]);
  for (const key of ["aa", "dddddd"]) assert(fixture.get(key) instanceof Promise);
});
