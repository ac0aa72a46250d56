/**
 * A map whose entries have at most `capacity` in total size, which evicts those that have been unused the longest. It
 * has two generations, each of up to half the capacity. An entry that is used moves to the young generation. When the
 * young generation is full, the old one is dropped, and the young one becomes the old one.
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
  readonly #half: number;
  readonly #sizeOf: (value: Value) => number;
  #young: Map<Key, Value> = new Map();
  #old: Map<Key, Value> = new Map();
  /** Size of the young generation. */
  #size = 0;

  /** The size of a value must not change. By default it is 1, so that the capacity, at least 2, counts entries. */
  constructor(capacity: number, sizeOf: (value: Value) => number = () => 1) {
    this.#half = Math.floor(capacity / 2);
    this.#sizeOf = sizeOf;
  }

  /** Returns the value. This counts as a use of the entry. */
  get(key: Key): Value | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Stores the value, unless it is larger than half the capacity. */
  set(key: Key, value: Value): this {
    this.delete(key);
    const size = this.#sizeOf(value);
    if (size > this.#half) return this;
    if (this.#size + size > this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#size = 0;
    }
    this.#young.set(key, value);
    this.#size += size;
    return this;
  }

  /** Removes the entry. */
  delete(key: Key): void {
    const value = this.#young.get(key);
    if (value !== undefined) this.#size -= this.#sizeOf(value);
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
