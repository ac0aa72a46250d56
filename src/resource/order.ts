// The order of lists: by id, or by a field.

/** The order of a list, and where it and a page of it begin. */
export interface ItemOrder {
  /**
   * The field to sort by, or `id`; with `-` before it, in descending order. By default, the order of the cursor; without
   * one, ascending by id.
   */
  readonly sort?: string | undefined;
  /** The last item before the page. */
  readonly cursor?: Cursor | undefined;
  /** The first value of that field in the list. Without it and `to`, items without a value come last. */
  readonly from?: unknown;
  /** The first value after the list. */
  readonly to?: unknown;
}

/** The last item before a page: its id, which is negative in descending order, or its place in another order. */
export type Cursor = number | Place;

/** The place of an item in a list that is sorted by a field. */
export interface Place {
  readonly sort: string;
  /** Undefined for an item without a value. */
  readonly value: SortValue | undefined;
  readonly id: number;
}

/** A value to sort by. Integers, and times in ns since the epoch, are bigints. */
export type SortValue = string | bigint;

/** The rest of a key in an index, after the values of filters. */
type Bound = readonly (number | SortValue)[];

/** Maximum number of characters of a text to sort by. */
export const MAX_SORTED = 100;

/**
 * What precedes the value in a key. Items without a value have two rows, so that one read finds them after all others in
 * either direction.
 */
const [BEFORE_ALL, VALUED, AFTER_ALL] = [0, 1, 2];

/** The field that a list is sorted by, undefined if by id, and whether the order is descending. */
export function orderOf(
  { sort, cursor }: ItemOrder,
): { readonly field: string | undefined; readonly isDescending: boolean } {
  const [, minus, field] = /^(-?)(.*)$/.exec(sort ?? sortOf(cursor)) ?? [];
  return { field: field === "id" ? undefined : field, isDescending: minus === "-" };
}

/** The order of the list that a cursor comes from. */
export function sortOf(cursor: Cursor = 1): string {
  if (typeof cursor === "number") return cursor < 0 ? "-id" : "id";
  return cursor.sort;
}

/** The cursor of the page that begins after the item whose row in the list has this key. */
export function cursorAfter(key: Deno.KvKey, order: ItemOrder): Cursor {
  const { field, isDescending } = orderOf(order);
  const id = Number(key.at(-1));
  if (field === undefined) return isDescending ? -id : id;
  const value = key.at(-2);
  return {
    sort: order.sort ?? sortOf(order.cursor),
    value: typeof value === "string" || typeof value === "bigint" ? value : undefined,
    id,
  };
}

/** A value as keys of indexes have it; undefined if there is none. Of a number, 7 and 7n would be two keys to KV. */
export function keyValueOf(value: unknown, isTime: boolean): SortValue | boolean | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (typeof value === "string") return isTime ? nanosecondsOf(value) : value;
  return typeof value === "bigint" || typeof value === "boolean" ? value : undefined;
}

/** A value to sort by. Of a text that an earlier release let be longer, only the beginning counts. */
export function sortValueOf(value: unknown, isTime: boolean): SortValue | undefined {
  const found = keyValueOf(value, isTime);
  if (typeof found === "string") return [...found].slice(0, MAX_SORTED).join("");
  return typeof found === "bigint" ? found : undefined;
}

/** A time (RFC 3339) in ns since the epoch; undefined if it is none. An offset can lead beyond the year 9999. */
function nanosecondsOf(time: string): bigint | undefined {
  const [, second = "", fraction = "", offset = ""] = /^(.{19})(?:\.(\d{1,9}))?(.+)$/.exec(time) ?? [];
  const ms = Date.parse(second + offset);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** The ends of the keys of an item with this value in an index that is sorted. */
export function placesOf(value: SortValue | undefined, id: number): readonly Bound[] {
  return value === undefined ? [[BEFORE_ALL, id], [AFTER_ALL, id]] : [[VALUED, value, id]];
}

/** The range of a page among keys that are sorted by id. */
export function rangeOfIds(order: ItemOrder): readonly [start: Bound, end: Bound] {
  const { cursor } = order;
  const id = typeof cursor === "number" ? cursor : undefined;
  return orderOf(order).isDescending
    ? [[0], [id === undefined ? Infinity : -id]]
    : [[(id ?? 0) + 1], [Infinity]];
}

/** The range of a page among keys that are sorted by a field; undefined if it is empty. */
export function rangeOfPlaces(
  order: ItemOrder,
  isTime: boolean,
): readonly [start: Bound, end: Bound] | undefined {
  const { isDescending } = orderOf(order);
  const [from, to] = [sortValueOf(order.from, isTime), sortValueOf(order.to, isTime)];
  const hasBound = from !== undefined || to !== undefined;
  let start: Bound = from === undefined ? [isDescending && !hasBound ? BEFORE_ALL : VALUED] : [VALUED, from];
  let end: Bound = to === undefined ? [isDescending || hasBound ? AFTER_ALL : Infinity] : [VALUED, to];
  if (typeof order.cursor === "object") {
    const { value, id } = order.cursor;
    const [before, after] = placesOf(value, isDescending ? id : id + 1);
    const place = (isDescending ? before : after ?? before) ?? [];
    if (isDescending && compare(place, end) < 0) end = place;
    if (!isDescending && compare(place, start) > 0) start = place;
  }
  return compare(start, end) < 0 ? [start, end] : undefined;
}

/** Compares ends of keys as KV does. */
function compare(one: Bound, other: Bound): number {
  for (const [index, part] of one.entries()) {
    const its = other[index];
    if (its === undefined) return 1;
    const difference = typeof part === "string" && typeof its === "string"
      ? comparePoints(part, its)
      : part < its
      ? -1
      : Number(part > its);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

/** Compares texts by code points, as KV does. JavaScript compares surrogates, which come before U+E000. */
function comparePoints(one: string, other: string): number {
  const [points, others] = [[...one], [...other]];
  const index = points.findIndex((point, index) => point !== others[index]);
  if (index === -1) return points.length - others.length;
  return (points[index]?.codePointAt(0) ?? 0) - (others[index]?.codePointAt(0) ?? -1);
}
