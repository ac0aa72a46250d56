import type { Entry } from "../engine/mod.ts";
import type { JsonObject } from "../web/schema.ts";
import type { Item } from "./hook.ts";
import type { Resource } from "./resource.ts";

/**
 * The generation of the rows that each collection derives from its items, by name: that of its last rebuild, which begins
 * with the time of its start. A collection that was never rebuilt is missing: it has the first one.
 */
export type Generations = ReadonlyMap<string, string>;

/** The generation before the first rebuild. */
export const FIRST = "";
/** The table of indexes, except those of the first generation. A key continues with a collection and its generation. */
export const GENERATIONS = "generations";
/** The table of rows that belong to a collection's `extend`. A key continues with the collection and its generation. */
export const OWN = "own";

const LINE_FEED = 0x0a;
const DECODER = new TextDecoder("utf-8", { fatal: true });

/** An index: rows of items by the values of some filters. */
interface Index {
  readonly filters: readonly string[];
  readonly start: Deno.KvKey;
}

/** The keys of a collection's rows: that of an item, those that list it, and the beginning of a list. */
export class ItemRows {
  /** The beginning of the keys of all items: an id completes each. */
  readonly all: Deno.KvKey;
  /**
   * One for each combination of filters, so that a page reads only what it shows. If only its owner may read an item,
   * each begins with the owner, and one has no filters.
   */
  readonly #indexes: readonly Index[];
  readonly #areByOwner: boolean;

  constructor(
    { name, rows, filters, readableBy }: Pick<Resource, "name" | "rows" | "filters" | "readableBy">,
    generation: string,
  ) {
    this.all = rows.items;
    this.#areByOwner = readableBy === "owner";
    this.#indexes = combinationsOf([...filters].sort())
      .filter((some) => this.#areByOwner || some.length > 0)
      .map((some) => ({
        filters: some,
        start: generation === FIRST ? rows.index(some) : [GENERATIONS, name, generation, some.join()],
      }));
  }

  /** The key of an item. */
  item(id: number): Deno.KvKey {
    return [...this.all, id];
  }

  /** The keys that list an item of an account. */
  indexed(item: Item, ownerId: string): readonly Deno.KvKey[] {
    const keys: Deno.KvKey[] = [];
    for (const index of this.#indexes) {
      const prefix = this.#prefixOf(index, item, ownerId);
      if (prefix) keys.push([...prefix, item.id]);
    }
    return keys;
  }

  /** The beginning of the keys of each index: of the rows of one account, if rows begin with that and it is given. */
  indexes(ownerId: string | undefined): readonly Deno.KvKey[] {
    return this.#indexes.map(({ start }) =>
      this.#areByOwner && ownerId !== undefined ? [...start, ownerId] : start
    );
  }

  /**
   * The beginning of the keys of a list as an account sees it: an id completes each.
   *
   * @throws {TypeError} if a value of the query cannot be that of a filter.
   */
  list(query: JsonObject, accountId: string): Deno.KvKey {
    const isAsked = (name: string) => query[name] !== undefined;
    const asked = this.#indexes.at(-1)?.filters.filter(isAsked) ?? [];
    const index = this.#indexes.find(({ filters }) => filters.join() === asked.join());
    if (index === undefined) return this.all;
    const prefix = this.#prefixOf(index, query, accountId);
    if (prefix === undefined) throw new TypeError("A filter's value is neither a string nor a boolean");
    return prefix;
  }

  /** The beginning of the key in an index of items with the values of `item`; undefined if it lacks one. */
  #prefixOf({ filters, start }: Index, item: JsonObject, ownerId: string): Deno.KvKey | undefined {
    const prefix = this.#areByOwner ? [...start, ownerId] : [...start];
    for (const name of filters) {
      const value = item[name];
      if (typeof value !== "string" && typeof value !== "boolean") return undefined;
      prefix.push(value);
    }
    return prefix;
  }
}

/** The account that an item belongs to, given its row; empty if it belongs to none, undefined if it cannot be read. */
export function ownerIn({ value }: Entry): string | undefined {
  if (!(value instanceof Uint8Array)) return undefined;
  const lineEnd = value.lastIndexOf(LINE_FEED);
  try {
    return lineEnd === -1 ? "" : DECODER.decode(value.subarray(lineEnd + 1));
  } catch {
    return undefined; // Not UTF-8.
  }
}

/** Every combination of these names. The last one has them all. */
function combinationsOf(names: readonly string[]): readonly (readonly string[])[] {
  return names.reduce<string[][]>((some, name) => [...some, ...some.map((other) => [...other, name])], [[]]);
}
