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
 * const pages = new VersionedCache<string, number>(catalogue, 100);
 * let reads = 0;
 * const read = () => Promise.resolve(++reads);
 * assertEquals([await pages.get("a", read), await pages.get("a", read)], [1, 1]);
 * catalogue.version = "2";
 * assertEquals(await pages.get("a", read), 2);
 * ```
 */
export class VersionedCache<Key, Value> {
  readonly #watched: Watched;
  readonly #kept: BoundedMap<Key, Kept<Value>>;

  /** What `get` finds is as true as the version of the row: it has to have been looked at. */
  constructor(watched: Watched, capacity: number) {
    this.#watched = watched;
    this.#kept = new BoundedMap(capacity);
  }

  /** What `make` makes for the key. Simultaneous calls share it. What it throws is not kept. */
  get(key: Key, make: () => Promise<Value>): Value | Promise<Value> {
    const version = this.#watched.version;
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept.value;
    const value = make().then((made) => {
      this.#kept.set(key, { version, value: made });
      return made;
    });
    value.catch(() => this.#kept.delete(key));
    this.#kept.set(key, { version, value });
    return value;
  }
}
