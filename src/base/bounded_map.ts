/**
 * A map of at most `capacity` entries, which evicts those that have been unused the longest. It has two generations,
 * each of up to half the capacity. An entry that is used moves to the young generation. When the young generation is
 * full, the old one is dropped, and the young one becomes the old one.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const map = new BoundedMap<string, number>(2);
 * map.set("a", 1).set("b", 2);
 * map.get("a");
 * map.set("c", 3);
 * assertEquals([map.get("a"), map.get("b"), map.get("c")], [1, undefined, 3]);
 * ```
 */
export class BoundedMap<Key, Value> {
  readonly #halfCapacity: number;
  #young: Map<Key, Value> = new Map();
  #old: Map<Key, Value> = new Map();

  /** The capacity is at least 2. */
  constructor(capacity: number) {
    this.#halfCapacity = Math.floor(capacity / 2);
  }

  /** Returns the value. This counts as a use of the entry. */
  get(key: Key): Value | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Stores the value. */
  set(key: Key, value: Value): this {
    if (this.#young.size === this.#halfCapacity && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
    return this;
  }

  /** Removes the entry. */
  delete(key: Key): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
