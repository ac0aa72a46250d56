import type { VersionRow } from "./versions.ts";

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

/** A value or its promise, with the version that was known before it was created. */
interface Kept<Value> {
  readonly version: string;
  value: Value | Promise<Value>;
}

/**
 * Caches values derived from rows until the version of these rows changes.
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
  readonly #row: VersionRow;
  readonly #kept: BoundedMap<Key, Kept<Value>>;

  /** `get` relies on the last known version of the row, so call it after a version check. */
  constructor(row: VersionRow, capacity: number) {
    this.#row = row;
    this.#kept = new BoundedMap(capacity);
  }

  /**
   * The value that `make` returns for the key, given the value from an earlier version if that value is still in
   * memory. Simultaneous calls share the value. Failures are not cached.
   */
  get(key: Key, make: (earlier: Value | undefined) => Promise<Value>): Value | Promise<Value> {
    const version = this.#row.version;
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept.value;
    const value = make(kept?.value instanceof Promise ? undefined : kept?.value);
    const made: Kept<Value> = { version, value };
    this.#kept.set(key, made);
    value.then((known) => made.value = known, () => this.#kept.delete(key));
    return value;
  }
}
