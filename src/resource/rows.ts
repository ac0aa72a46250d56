import type { JsonObject } from "../web/schema.ts";
import type { Item, Resource } from "./resource.ts";

/**
 * The generation of the rows that each collection derives from its items, by name: that of its last rebuild. A collection
 * that was never rebuilt has none.
 */
export type Generations = ReadonlyMap<string, string>;

/** An index: rows of items by the values of some filters. */
interface Index {
  readonly filters: readonly string[];
  readonly start: Deno.KvKey;
}

/** The table of indexes that have a generation. */
const GENERATIONS = "generations";

/** The keys of a collection's rows: that of an item, those that list it, and the beginning of a list. */
export class ItemRows {
  readonly #items: Deno.KvKey;
  /** One for each combination of filters, so that a page reads only what it shows. */
  readonly #indexes: readonly Index[];

  constructor(
    { name, rows, filters }: Pick<Resource, "name" | "rows" | "filters">,
    generation: string | undefined,
  ) {
    this.#items = rows.items;
    this.#indexes = combinationsOf([...filters].sort()).map((some) => ({
      filters: some,
      start: generation === undefined ? rows.index(some) : [GENERATIONS, name, generation, some.join()],
    }));
  }

  /** The key of an item. */
  item(id: number): Deno.KvKey {
    return [...this.#items, id];
  }

  /** The keys that list an item. */
  indexed(item: Item): readonly Deno.KvKey[] {
    const keys: Deno.KvKey[] = [];
    for (const index of this.#indexes) {
      const prefix = prefixOf(index, item);
      if (prefix) keys.push([...prefix, item.id]);
    }
    return keys;
  }

  /** The beginning of the keys of a list: an id completes each. */
  list(query: JsonObject): Deno.KvKey {
    const isAsked = (name: string) => query[name] !== undefined;
    const asked = this.#indexes.at(-1)?.filters.filter(isAsked) ?? [];
    const index = this.#indexes.find(({ filters }) => filters.join() === asked.join());
    return index && prefixOf(index, query) || this.#items;
  }
}

/** Every non-empty combination of these names. The last one has them all. */
function combinationsOf(names: readonly string[]): readonly (readonly string[])[] {
  return names.reduce<string[][]>(
    (some, name) => [...some, [name], ...some.map((other) => [...other, name])],
    [],
  );
}

/** The beginning of the key in an index of items with the values of `item`; undefined if it lacks one. */
function prefixOf({ filters, start }: Index, item: JsonObject): Deno.KvKey | undefined {
  const prefix = [...start];
  for (const name of filters) {
    const value = item[name];
    if (typeof value !== "string" && typeof value !== "boolean") return undefined;
    prefix.push(value);
  }
  return prefix;
}
