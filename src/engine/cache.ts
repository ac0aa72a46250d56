import { BoundedMap } from "../base/mod.ts";
import type { VersionRow } from "./versions.ts";

/** A value or its promise, with the version that was known before it was created. */
interface Kept<Value> {
  readonly version: string;
  readonly value: Value | Promise<Value>;
}

/**
 * Caches values derived from rows until the version of these rows changes. A value is kept under the version that was
 * known before it was read, so a change during the read makes it stale.
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

  /**
   * `get` relies on the last known version of the row, so call it after a version check. `capacity` is the maximum total
   * size of the values, by default their number.
   */
  constructor(row: VersionRow, capacity: number, sizeOf: (value: Value) => number = () => 1) {
    this.#row = row;
    this.#kept = new BoundedMap(capacity, ({ value }) => value instanceof Promise ? 0 : sizeOf(value));
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
    const isLatest = () => this.#kept.get(key) === made;
    value.then((known) => {
      if (isLatest()) this.#kept.set(key, { version, value: known });
    }, () => {
      if (isLatest()) this.#kept.delete(key);
    });
    return value;
  }
}
