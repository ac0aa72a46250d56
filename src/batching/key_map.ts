/**
 * A map by key of KV, whose parts are strings and numbers.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const names = new KeyMap<string>();
 * names.add(["pets", 7], "Rex");
 * assertEquals(names.get(["pets", 7]), "Rex");
 * assertEquals(names.get(["pets", "7"]), undefined);
 * ```
 */
export class KeyMap<Value> {
  /** By last part, in which most keys differ: to make a string of each key takes longer. */
  readonly #byLast: Map<Deno.KvKeyPart | undefined, [key: Deno.KvKey, value: Value][]> = new Map();

  /** The value of a key; undefined where there is none. */
  get(key: Deno.KvKey): Value | undefined {
    return this.#byLast.get(key.at(-1))?.find(([other]) => isSameKey(key, other))?.[1];
  }

  /** Adds a key that is not there yet. */
  add(key: Deno.KvKey, value: Value): void {
    const last = key.at(-1);
    const entries = this.#byLast.get(last);
    if (entries) entries.push([key, value]);
    else this.#byLast.set(last, [[key, value]]);
  }
}

/** Whether two keys, whose parts are strings and numbers, are the same. */
export function isSameKey(one: Deno.KvKey, other: Deno.KvKey): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index]);
}
