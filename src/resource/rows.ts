import type { Entry } from "../engine/mod.ts";
import { type JsonObject, resolved, text } from "../web/schema.ts";
import type { Item } from "./hook.ts";
import {
  type ItemOrder,
  keyValueOf,
  orderOf,
  placesOf,
  rangeOfIds,
  rangeOfPlaces,
  sortValueOf,
} from "./order.ts";
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

/** An index: rows of items by the values of some filters, in the order of ids or of a field. */
interface Index {
  readonly filters: readonly string[];
  readonly sort: string | undefined;
  /** Whether keys continue with the owner. */
  readonly isByOwner: boolean;
  readonly start: Deno.KvKey;
}

/** The rows of a page. */
export interface Range {
  readonly start: Deno.KvKey;
  readonly end: Deno.KvKey;
  readonly reverse: boolean;
}

/** The keys of a collection's rows: that of an item, those that list it, and those of a page. */
export class ItemRows {
  /** The beginning of the keys of all items: an id completes each. */
  readonly all: Deno.KvKey;
  /**
   * One for each combination of filters and each order, so that a page reads only what it shows. If only its owner may
   * read an item, these begin with the owner; operators' lists, if they have filters or orders, have further ones.
   */
  readonly #indexes: readonly Index[];
  readonly #resource: Resource;
  /** The names of fields that have a time. */
  readonly #times: ReadonlySet<string>;

  constructor(resource: Resource, generation: string) {
    const { name, rows, fields, filters, sorts, readableBy, operatorsFilters } = resource;
    this.all = rows.items;
    this.#resource = resource;
    const isTime = (field: string) => resolved(fields[field] ?? text()).format === "date-time";
    this.#times = new Set(sorts.filter(isTime));
    const combinations = combinationsOf(filters.toSorted());
    const indexes = (isByOwner: boolean): Index[] => {
      const ofAll = readableBy === "owner" && !isByOwner ? ["all accounts"] : [];
      return [undefined, ...sorts].flatMap((sort) =>
        combinations.filter((some) => isByOwner || sort !== undefined || some.length > 0).map((filters) => {
          const labels = [...filters, ...sort === undefined ? [] : [sortLabel(sort)], ...ofAll];
          const start = generation === FIRST
            ? rows.index(labels)
            : [GENERATIONS, name, generation, labels.join()];
          return { filters, sort, isByOwner, start };
        })
      );
    };
    const hasOthers = readableBy === "everyone" || operatorsFilters.length + sorts.length > 0;
    this.#indexes = [...readableBy === "owner" ? indexes(true) : [], ...hasOthers ? indexes(false) : []];
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
      if (prefix === undefined) continue;
      const { sort } = index;
      if (sort === undefined) keys.push([...prefix, item.id]);
      else {
        const value = sortValueOf(item[sort], this.#times.has(sort));
        for (const place of placesOf(value, item.id)) keys.push([...prefix, ...place]);
      }
    }
    return keys;
  }

  /** The beginning of the keys of each index: of the rows of one account, if rows begin with that and it is given. */
  indexes(ownerId: string | undefined): readonly Deno.KvKey[] {
    return this.#indexes.map(({ start, isByOwner }) =>
      isByOwner && ownerId !== undefined ? [...start, ownerId] : start
    );
  }

  /**
   * The rows of a page as an account sees it, or as operators do if it is undefined. Undefined if the page is empty.
   *
   * @throws {TypeError} if the collection has no such lists.
   */
  page(query: JsonObject & ItemOrder, accountId: string | undefined): Range | undefined {
    const { name, filters, readableBy } = this.#resource;
    const isByOwner = readableBy === "owner" && accountId !== undefined;
    if (isByOwner && accountId === "") return undefined; // Nobody.
    const { field, isDescending } = orderOf(query);
    const asked = filters.filter((name) => query[name] !== undefined).sort().join();
    const index = this.#indexes.find((one) =>
      one.filters.join() === asked && one.sort === field && one.isByOwner === isByOwner
    );
    const isOfAll = asked === "" && field === undefined && !isByOwner;
    const prefix = isOfAll ? this.all : index && this.#prefixOf(index, query, accountId ?? "");
    if (prefix === undefined) throw new TypeError(`There is no list of ${name} by ${asked} in this order`);
    const range = field === undefined ? rangeOfIds(query) : rangeOfPlaces(query, this.#times.has(field));
    if (range === undefined) return undefined;
    const [start, end] = range;
    return { start: [...prefix, ...start], end: [...prefix, ...end], reverse: isDescending };
  }

  /** The beginning of the key in an index of items with the values of `item`; undefined if it lacks one. */
  #prefixOf({ filters, isByOwner, start }: Index, item: JsonObject, ownerId: string): Deno.KvKey | undefined {
    const prefix = isByOwner ? [...start, ownerId] : [...start];
    for (const name of filters) {
      const value = keyValueOf(item[name], false);
      if (value === undefined) return undefined;
      prefix.push(value);
    }
    return prefix;
  }
}

/** How names of indexes, and the store's memory of a collection, show that it is sorted by a field. */
export function sortLabel(field: string): string {
  return `sort ${field}`;
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
