// What the change of an item takes of a commit at most.
import {
  encodeText,
  keyBytesOf,
  LARGEST_KEY,
  MAX_KEY_BYTES,
  MAX_MUTATIONS,
  MAX_VALUE_BYTES,
} from "../engine/mod.ts";
import { resolved, type Schema } from "../web/schema.ts";
import type { Item } from "./hook.ts";
import type { Hooks } from "./hooks.ts";
import { MAX_SORTED } from "./order.ts";
import type { Resource } from "./resource.ts";
import { FIRST, ItemRows } from "./rows.ts";

/** A rebuild gives keys a generation. */
const GENERATION = "2027-01-15T12:00:00.000Z 01234567";
const OWNER = "acct_0123456789abcdef";
/** A creation with an Idempotency-Key also stores its reply, and when that expires. */
const OTHER_ROWS = 4;
/** Every change is appended to up to two logs. The keys of other rows are shorter than is assumed here by more than theirs. */
const LOGS = 2;
/** Size of a reply without its body, and of entries in logs, in bytes. */
const OTHER_BYTES = 2_000;
const AND = new Intl.ListFormat("en-GB");
const OR = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Why changes of items do not fit into a commit; undefined if all do. It follows the name of the resource. */
export function oversizeOf(resource: Resource, hooks: Hooks): string | undefined {
  const { fields, filters, sorts, schemas } = resource;
  const longest = Object.fromEntries([...filters, ...sorts].map((name) => [name, longestOf(fields[name])]));
  const items: Item[] = [{ ...longest, id: 1 }];
  const mayLack = sorts.some((name) => fields[name]?.accepts(null) || fields[name]?.accepts(undefined));
  if (mayLack) {
    items.push({ ...longest, ...Object.fromEntries(sorts.map((name) => [name, undefined])), id: 1 });
  }
  const listed = [FIRST, GENERATION].flatMap((generation) => {
    const rows = new ItemRows(resource, generation);
    return items.map((item) => [rows.item(1), ...rows.indexed(item, OWNER)].map(keyBytesOf));
  });
  const largest = Math.max(...listed.flat());
  if (largest > LARGEST_KEY) {
    return `can have keys of ${largest} bytes in its lists, but KV has room for ${LARGEST_KEY}: shorten the values of ` +
      `${OR.format(filters)}, or drop one of these filters`;
  }
  const count = Math.max(...listed.map(({ length }) => length));
  const others = hooks.rows.change + OTHER_ROWS;
  const item = schemas.item.maxBytes + OWNER.length + 1;
  const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);
  // A change writes all new keys, and deletes all old ones.
  const sizes = [
    [2 * count + others + LOGS, MAX_MUTATIONS, "rows"],
    [2 * Math.max(...listed.map(sum)) + others * LARGEST_KEY, MAX_KEY_BYTES, "bytes of keys"],
    [(count + 1) * item + OTHER_BYTES + hooks.valueBytes, MAX_VALUE_BYTES, "bytes of values"],
  ] as const;
  if (sizes.every(([size, room]) => size <= room)) return undefined;
  const [needed, room] = [0, 1].map((index) => AND.format(sizes.map((size) => `${size[index]} ${size[2]}`)));
  const [field] = Object.entries(fields).reduce((one, other) =>
    other[1].maxBytes > one[1].maxBytes ? other : one
  );
  const dropped = [
    ...sorts.map((name) => `the sort ${name}`),
    ...filters.map((name) => `the filter ${name}`),
    ...(hooks.valueBytes > item ? ["a hook, or say in its valueBytes how many a value has at most"] : []),
  ];
  return `needs up to ${needed} for one change of an item of up to ${item} bytes, which ${count} rows have, but a commit ` +
    `has room for ${room}: lower a maximum, such as that of ${field}, or drop ${OR.format(dropped)}`;
}

/** The value of a field that takes most bytes in a key. */
function longestOf(schema: Schema | undefined): unknown {
  if (schema === undefined) return undefined;
  const { type, enum: values, format } = resolved(schema);
  if (values !== undefined) {
    const bytes = (value: unknown) => encodeText(String(value)).length;
    return values.reduce((one, other) => bytes(other) > bytes(one) ? other : one);
  }
  if (type === "boolean") return true;
  if ([type].flat().includes("integer")) return 2n ** 63n - 1n;
  if (format === "date-time") return "9999-12-31T23:59:59.999999999-23:59";
  return "\u{10ffff}".repeat(MAX_SORTED);
}
