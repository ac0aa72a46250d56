// The query parameters of lists.
import { Buffer } from "node:buffer";
import { invalidRequest } from "../web/mod.ts";
import {
  Invalid,
  type JsonObject,
  type Members,
  oneOf,
  type Optional,
  optional,
  resolved,
  type Schema,
  stringifyJson,
  text,
  withoutDefault,
} from "../web/schema.ts";
import { type Cursor, type ItemOrder, MAX_SORTED, orderOf, sortOf } from "./order.ts";
import type { Resource } from "./resource.ts";

const IDS_RISE = "Ids rise with time, but those that several processes assign interleave by up to 1,000.";
const OR = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** The order of a list that has no other than that of ids. */
const SORT: Schema<string> = oneOf(["id", "-id"], {
  description:
    `Ascending or, with \`-id\`, descending order. By default, a page has the order of its cursor. ${IDS_RISE}`,
});

/** The parameters of these filters. */
export function filterParameters(
  { fields }: Pick<Resource, "fields">,
  filters: readonly string[],
): Readonly<Record<string, Optional<unknown>>> {
  const filtered = Object.entries(fields).filter(([name]) => filters.includes(name));
  return Object.fromEntries(filtered.map(([name, field]) => {
    const { description = name } = resolved(field);
    const text = `Filter by ${description.charAt(0).toLowerCase()}${description.slice(1)}`;
    return [name, optional(presentOf(field, text))];
  }));
}

/** The parameters `cursor`, `sort` and, if lists can be sorted, `from` and `to`. `ofIds` is the cursor if they cannot. */
export function orderParameters(
  resource: Pick<Resource, "fields" | "sorts" | "nouns">,
  ofIds: Schema<Cursor> = cursorSchema(resource),
): { readonly cursor: Optional<Cursor>; readonly sort: Optional<string> } {
  const { fields, sorts: [field = ""], nouns: { many } } = resource;
  const schema = fields[field];
  if (schema === undefined) return { cursor: optional(ofIds), sort: optional(SORT) };
  const needs = `Requires \`sort=${field}\` or \`sort=-${field}\`.`;
  const bounds: Members = {
    from: optional(presentOf(
      schema,
      `Only ${many} whose \`${field}\` is not before this. ${needs} To read what is new since your last list, begin a ` +
        "minute before the last value that you have seen: an item can appear after another with a later value.",
    )),
    to: optional(presentOf(schema, `Only ${many} whose \`${field}\` is before this. ${needs}`)),
  };
  return {
    cursor: optional(cursorSchema(resource)),
    sort: optional(oneOf(["id", "-id", field, `-${field}`], {
      description:
        `Ascending or, with \`-\`, descending order of \`id\` or \`${field}\`. By default, a page has the order of its ` +
        `cursor, and the first one that of \`id\`. Those without \`${field}\` come last in both directions. ${IDS_RISE}`,
    })),
    ...bounds,
  };
}

/** A parameter with a field's values, of which null is none. */
function presentOf(field: Schema, description: string): Schema {
  const schema = withoutDefault(field);
  const types = [resolved(schema).type].flat();
  const type = types.find((one) => one !== "null");
  return { ...schema, json: { ...schema.json, ...(types.length > 1 && type && { type }), description } };
}

/**
 * Requires `sort` to be the order of the cursor, and `from` and `to` to have the order that they need.
 *
 * @throws {ApiError}
 */
export function requireOneOrder({ sorts }: Pick<Resource, "sorts">, query: ItemOrder): void {
  const { sort, cursor } = query;
  if (sort !== undefined && cursor !== undefined && sort !== sortOf(cursor)) {
    throw invalidRequest(
      `The query parameter sort must be ${
        sortOf(cursor)
      }, as in the list that the cursor comes from, or be left out.`,
      "sort",
    );
  }
  const bound = (["from", "to"] as const).find((name) => query[name] !== undefined);
  if (bound === undefined || orderOf(query).field !== undefined) return;
  const needed = OR.format(sorts.flatMap((field) => [`sort=${field}`, `sort=-${field}`]));
  throw invalidRequest(`The query parameter ${bound} requires ${needed}.`, bound);
}

/** The query string of a page in canonical form, from its filters on. */
export function queryTextOf(
  { filters }: Pick<Resource, "filters">,
  query: JsonObject & ItemOrder,
): string {
  const { sort, cursor, from, to } = query;
  const shown = sort ?? sortOf(cursor);
  const all = [
    ...filters.map((name) => [name, query[name]] as const),
    ["sort", shown === "id" ? undefined : shown] as const,
    ...Object.entries({ from, to, cursor: cursor === undefined ? undefined : encodeCursor(cursor) }),
  ];
  return all.filter(([, value]) => value !== undefined)
    .map(([name, value]) => `&${name}=${encodeURIComponent(String(value))}`).join("");
}

/** The cursor of a page. Its text is opaque, so that clients do not rely on its content. */
export function cursorSchema(resource: Pick<Resource, "fields" | "sorts">): Schema<Cursor> {
  return {
    ...text(),
    json: {
      type: "string",
      pattern: resource.sorts.length > 0 ? "^[A-Za-z0-9_-]+$" : "^[A-Za-z0-9]+$",
      description: "Where the page starts: the `cursor` in the `Link` header of the previous page.",
    },
    accepts: (value): value is Cursor => typeof value === "object" || Number.isSafeInteger(value),
    parse(value, subject) {
      const cursor = typeof value === "string" ? decodeCursor(value, resource) : undefined;
      if (cursor !== undefined && encodeCursor(cursor) === value) return cursor;
      throw new Invalid(`${subject} must be a cursor from a Link header of this service`);
    },
  };
}

/** The text of a cursor: JSON in base64url. */
export function encodeCursor(cursor: Cursor): string {
  const json = typeof cursor === "number" ? cursor : [cursor.sort, textOf(cursor.value), cursor.id];
  return Buffer.from(stringifyJson(json)).toString("base64url");
}

function textOf(value: string | bigint | undefined): string | null {
  return value === undefined ? null : String(value);
}

/** The cursor with this text; undefined if it is none of this collection. */
function decodeCursor(
  cursor: string,
  { fields, sorts }: Pick<Resource, "fields" | "sorts">,
): Cursor | undefined {
  const [field]: readonly string[] = sorts;
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    return undefined;
  }
  if (isId(Math.abs(Number(json)))) return Number(json);
  if (field === undefined || !Array.isArray(json)) return undefined;
  const [order, text, id]: unknown[] = json;
  const sort = [field, `-${field}`].find((known) => known === order);
  if (sort === undefined || !isId(id)) return undefined;
  if (text === null) return { sort, value: undefined, id };
  if (typeof text !== "string") return undefined;
  const { type, format } = resolved(fields[field] ?? { json: {}, definitions: {} });
  const isNumber = [type].flat().includes("integer") || format === "date-time";
  if (isNumber) return /^-?\d{1,30}$/.test(text) ? { sort, value: BigInt(text), id } : undefined;
  return [...text].length <= MAX_SORTED && text.isWellFormed() ? { sort, value: text, id } : undefined;
}

function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
