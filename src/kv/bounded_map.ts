/**
 * A map that holds at most `capacity` entries and forgets the least recently used one first.
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
  readonly #capacity: number;
  readonly #entries: Map<Key, Value> = new Map();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** How many entries it holds. */
  get size(): number {
    return this.#entries.size;
  }

  /** The value, which counts as a use. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined && this.#entries.size === this.#capacity) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  /** Stores the value, at the cost of the least recently used entry when full. */
  set(key: Key, value: Value): this {
    this.#entries.delete(key);
    if (this.#entries.size === this.#capacity) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, value);
    return this;
  }

  /** Forgets the entry. */
  delete(key: Key): void {
    this.#entries.delete(key);
  }

  /** Forgets every entry. */
  clear(): void {
    this.#entries.clear();
  }
}
