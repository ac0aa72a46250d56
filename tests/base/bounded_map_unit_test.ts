import { assert, assertEquals } from "@std/assert";
import { BoundedMap } from "../../src/base/bounded_map.ts";
import { seededRandom } from "../support/time.ts";

/** A map of at most four entries, with `a` and `b` in the old generation and `c` in the young one. */
function aged(): BoundedMap<string, number> {
  return new BoundedMap<string, number>(4).set("a", 1).set("b", 2).set("c", 3);
}

Deno.test("BoundedMap.set() replaces a value in either generation", () => {
  const map = aged().set("a", 4).set("c", 5);

  assertEquals(["a", "b", "c"].map((key) => map.get(key)), [4, 2, 5]);
});

Deno.test("BoundedMap.delete() removes an entry from either generation", () => {
  const map = aged();
  for (const key of ["a", "c", "never there"]) map.delete(key);

  assertEquals(["a", "b", "c"].map((key) => map.get(key)), [undefined, 2, undefined]);
});

Deno.test("BoundedMap keeps no value that is larger than half of it", () => {
  const map = new BoundedMap<string, number>(10, (size) => size).set("a", 5).set("b", 6);

  assertEquals([map.get("a"), map.get("b")], [5, undefined]);
});

type Step = readonly ["get" | "set", number];

/** Whether a map still has a key after these steps. */
function holds(steps: readonly Step[], capacity: number, key: number): boolean {
  const map = new BoundedMap<number, number>(capacity);
  for (const [what, key] of steps) what === "get" ? map.get(key) : map.set(key, key);
  return map.get(key) !== undefined;
}

Deno.test("BoundedMap evicts the least recently used entries, at most half of them at once", () => {
  const random = seededRandom(62);
  const capacity = 6;
  const keys = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const steps: Step[] = [];
  let byUse: number[] = [];
  for (let step = 0; step < 200; step++) {
    const key = Math.floor(random() * keys.length);
    const what = random() < 0.5 ? "get" : "set";
    const isUse = what === "set" || holds(steps, capacity, key);
    steps.push([what, key]);
    if (isUse) byUse = [key, ...byUse.filter((used) => used !== key)];

    const held = keys.filter((key) => holds(steps, capacity, key));
    assertEquals(held, byUse.slice(0, held.length).sort((a, b) => a - b));
    assert(held.length >= Math.min(byUse.length, capacity / 2) && held.length <= capacity);
  }
});
