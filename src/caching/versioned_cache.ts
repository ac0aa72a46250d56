import { BoundedMap } from "./bounded_map.ts";
import type { Watched } from "./watched.ts";

/** Something, or the promise of it, and the version that was known before it was made. */
interface Kept<Value> {
  readonly version: string;
  readonly value: Value | Promise<Value>;
}

/**
 * Keeps what is made from rows for as long as their version stays what it was.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const catalogue = { key: ["catalogue"], version: "1" };
 * let reads = 0;
 * const pages = new VersionedCache(catalogue, 100, (page: string) => Promise.resolve(`${page} ${++reads}`));
 * assertEquals([await pages.get("a"), await pages.get("a")], ["a 1", "a 1"]);
 * catalogue.version = "2";
 * assertEquals(await pages.get("a"), "a 2");
 * ```
 */
export class VersionedCache<Key, Value> {
  readonly #watched: Watched;
  readonly #make: (key: Key) => Promise<Value>;
  readonly #kept: BoundedMap<Key, Kept<Value>>;

  /** What `get` finds is as true as the version of the row: it has to have been looked at. */
  constructor(watched: Watched, capacity: number, make: (key: Key) => Promise<Value>) {
    this.#watched = watched;
    this.#make = make;
    this.#kept = new BoundedMap(capacity);
  }

  /** What `make` makes of the key; those who ask at the same time share it. What it throws is not kept. */
  get(key: Key): Value | Promise<Value> {
    const version = this.#watched.version;
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept.value;
    const value = this.#make(key).then((made) => {
      this.#kept.set(key, { version, value: made });
      return made;
    });
    value.catch(() => this.#kept.delete(key));
    this.#kept.set(key, { version, value });
    return value;
  }
}
