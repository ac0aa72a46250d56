/**
 * A map that holds at most `capacity` entries and forgets those that were not used for longest.
 * It keeps two generations, each up to half the capacity: what is used moves to the young one, and when
 * that is full, the old one is forgotten and the young one grows old.
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

  /** The value, which counts as a use. */
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

  /** Forgets the entry. */
  delete(key: Key): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
