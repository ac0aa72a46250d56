import type { Deprecation } from "../web/headers.ts";
import { ApiError, type Tag } from "../web/mod.ts";
import {
  ignored,
  integer,
  isRemovable,
  type JsonObject,
  type JsonSchema,
  list,
  type Members,
  mergePatch,
  named,
  object,
  output,
  type Parsed,
  type ParsedMembers,
  resolved,
  type Schema,
  type SentMembers,
} from "../web/schema.ts";
import type { Acting } from "../service/mod.ts";
import { refused, setterOf } from "./service_fields.ts";
import type { Declared, Hook, HookOf, Item, Rule } from "./hook.ts";

/** An item with these fields. */
export type ItemOf<Fields extends Members> = { readonly id: number } & ParsedMembers<Fields>;

/** The names of the fields that lists can be filtered by: those that are one of a list, true or false, or references. */
type Filterable<Fields extends Members> = {
  [Name in keyof Fields & string]: IsFilterable<Exclude<Parsed<Fields[Name]>, undefined>> extends true ? Name
    : never;
}[keyof Fields & string];

type IsFilterable<Value> = [Value] extends [boolean | number | bigint | null] ? true
  : [Value] extends [string] ? string extends Value ? false : true
  : false;

/** The names of the fields that lists can be sorted by: those with a date, a time, an integer or a text. */
type Sortable<Fields extends Members> = {
  [Name in keyof Fields & string]: IsSortable<Exclude<Parsed<Fields[Name]>, undefined | null>> extends true
    ? Name
    : never;
}[keyof Fields & string];

type IsSortable<Value> = [Value] extends [number | bigint] ? true
  : [Value] extends [string] ? string extends Value ? true : false
  : false;

/** The keys of a collection's rows. */
export interface RowKeys {
  /** The beginning of an item's key, which its id completes. */
  readonly items: Deno.KvKey;
  /** The beginning of a key in the index with these labels, such as the names of filters; values and the id complete it. */
  readonly index: (labels: readonly string[]) => Deno.KvKey;
  /** The row that ids are drawn from. */
  readonly ids: Deno.KvKey;
  /** The row whose version changes when an item does. */
  readonly version: Deno.KvKey;
  /** Filters of a collection that was created before releases stored them. */
  readonly filtersBefore?: readonly string[];
}

/** Whether documents say that an operation is not part of the `original` version of the interface. */
interface Extension {
  readonly isExtension?: true;
}

/** The declaration of a collection of items. An item belongs to the account that added it, or to none. */
export interface Declaration<Fields extends Members = Members> {
  /** The end of its path, and the name of its rows: plural, in lower case, such as `toys`. */
  readonly name: string;
  /** The name of an item's schema, such as `Toy`. Other names follow from it, such as `createToy` and `toyId`. */
  readonly item: string;
  readonly tag: Tag;
  /** The nouns in texts: one item with its article, and several. */
  readonly noun: readonly [one: `${"a" | "an"} ${string}`, many: string];
  /** The fields that clients set, in the order in which items have them. */
  readonly fields: Fields;
  /** The fields that lists can be filtered by, at most three. A collection keeps those of its first start. */
  readonly filters:
    | readonly []
    | readonly [Filterable<Fields>]
    | readonly [Filterable<Fields>, Filterable<Fields>]
    | readonly [Filterable<Fields>, Filterable<Fields>, Filterable<Fields>];
  /**
   * The field that lists can be sorted by, if there are at most two filters: a date, a timestamp, an integer, a text of at
   * most 100 characters, or `createdAt()`. A collection keeps it, as it does filters.
   */
  readonly sorts?: readonly [] | readonly [Sortable<Fields>];
  /** Who sees an item: every account, or only the one that it belongs to. For all others, it does not exist. */
  readonly readableBy: Declared["readableBy"];
  /**
   * Who adds, updates and deletes items: accounts, each its own, or only operators, for any account or for none.
   * Operators can do so in every collection.
   */
  readonly writableBy: "owner" | "operator";
  /** Rules that items have to keep. */
  readonly rules?: readonly Rule<ItemOf<Fields>>[];
  /** What else happens in the transactions of items, such as `exists(ROOMS, "roomId")` and `unique("email")`. */
  readonly extend?: readonly (Hook<ItemOf<Fields>> | HookOf)[];
  /** An item to add, and a change to it. */
  readonly examples: {
    readonly item: SentMembers<Fields>;
    readonly change: Partial<SentMembers<Fields>>;
  };
  /** Whether list, create and get ignore unknown fields and query parameters. */
  readonly isLenient?: true;
  /** Describes the schema of an item to add. */
  readonly creation?: { readonly description: string };
  readonly get?: { readonly deprecated?: Pick<Deprecation, "since" | "sunset" | "advice"> };
  readonly update?: Extension;
  readonly delete?: Extension;
  /** The keys of its rows, if an earlier release chose others. */
  readonly rows?: RowKeys;
}

/** A collection: its declaration, and what is derived from it. */
export interface Resource<out Value extends Item = Item> extends
  Declared,
  Pick<
    Declaration,
    | ("item" | "tag" | "fields" | "filters" | "writableBy" | "examples")
    | ("isLenient" | "get" | "update" | "delete")
  > {
  readonly path: string;
  /** The field that lists can be sorted by; empty if there is none. */
  readonly sorts: NonNullable<Declaration["sorts"]>;
  /** The filters of operators' lists: all, if lists can be sorted or one filter is a reference, else none. */
  readonly operatorsFilters: readonly string[];
  /** The plural of the item's name, such as `Toys`. */
  readonly items: string;
  /** The name of the id in paths, such as `toyId`. */
  readonly id: string;
  readonly rules: readonly Rule[];
  readonly extend: readonly Hook[];
  readonly rows: RowKeys;
  readonly schemas: {
    /** The fields of an item in a response. */
    readonly members: Members & { readonly id: Schema<number> };
    readonly item: Schema<Value>;
    readonly list: Schema<readonly Value[]>;
    /** An item to add. */
    readonly creation: Schema<JsonObject>;
    /** The fields of a change to an item, and the change. */
    readonly changes: Members;
    readonly patch: Schema<JsonObject>;
    /** What operators send: the fields of an item to add, and those of a change with its description. */
    readonly byOperators: {
      readonly creation: Members;
      readonly patch: Members;
      readonly patchText: Pick<JsonSchema, "description" | "examples">;
    };
  };
  /** The names of the fields that have the time of an item's creation, and of its last change. */
  readonly times: { readonly creation: readonly string[]; readonly change: readonly string[] };
  /** An item with a change. Null removes a field that is optional and has no default (RFC 7396). */
  readonly changed: (item: Item, patch: JsonObject) => Item;
}

/** A declaration is invalid, or does not fit the store. The message, which is for the operator, says why. */
export class ResourceError extends Error {
  override readonly name = "ResourceError";
}

/** Maximum number of items in a page. */
export const MAX_PAGE = 100;

const ID = integer(1, Number.MAX_SAFE_INTEGER, {
  description: "Unique identifier assigned by the service on creation. It is never reused.",
});
const EXAMPLE_TIME = "2027-01-15T12:00:00.000Z";
const AND = new Intl.ListFormat("en-GB");

/**
 * Declares a collection. What it declares is checked when the service starts.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { optional, text } from "../web/schema.ts";
 *
 * const notes = resource({
 *   name: "notes",
 *   item: "Note",
 *   tag: { name: "Notes", description: "All notes" },
 *   noun: ["a note", "notes"],
 *   fields: { title: text({ max: 100 }), body: optional(text({ max: 1_000 })) },
 *   filters: [],
 *   readableBy: "everyone",
 *   writableBy: "owner",
 *   examples: { item: { title: "Milk" }, change: { title: "Oat milk" } },
 * });
 * assertEquals(notes.errors.notFound.code, "note_not_found");
 * ```
 */
export function resource<const Fields extends Members>(
  declaration: Declaration<Fields>,
): Resource<ItemOf<Fields>>;
export function resource(declaration: Declaration): Resource {
  const { name, item, noun: [an, many], readableBy, rules = [], extend = [] } = declaration;
  const { filters, sorts = [] } = declaration;
  const fields = withNamedLists(item, declaration.fields);
  const one = an.replace(/^an? /, "");
  const items = name.replaceAll(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const code = item.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  const namesOf = (isWanted: (schema: Schema) => boolean) =>
    Object.entries(fields).filter(([, schema]) => isWanted(schema)).map(([name]) => name);
  const removable = namesOf(isRemovable);
  const times = {
    creation: namesOf((schema) => setterOf(schema) === "creation"),
    change: namesOf((schema) => setterOf(schema) === "change"),
  };
  const [nouns, errors] = [{ an, one, many }, errorsOf(code, one, many)];
  const hooks = extend.map((entry) =>
    typeof entry === "function" ? entry({ name, readableBy, nouns, errors }) : entry
  );
  const hasReference = filters.some((filter) => isReference(filter, hooks));
  return {
    ...declaration,
    fields,
    path: `/v1/${name}`,
    nouns,
    rules,
    extend: hooks,
    sorts,
    operatorsFilters: sorts.length > 0 || hasReference ? filters : [],
    items,
    id: `${item.charAt(0).toLowerCase()}${item.slice(1)}Id`,
    rows: declaration.rows ?? {
      items: ["items", name],
      index: (labels) => ["items_by", name, labels.join()],
      ids: ["ids", name],
      version: ["versions", name],
    },
    schemas: itemSchemasOf({ ...declaration, fields }, items, times),
    times,
    errors,
    changed({ id, ...before }, patch) {
      const after: Record<string, unknown> = { ...before, ...patch };
      for (const field of removable) if (patch[field] === null) after[field] = undefined;
      return { id, ...withDefaults(fields, after) };
    },
  };
}

/** The schemas of items and of what changes them. `items` is the plural of an item's name. */
function itemSchemasOf(
  { item, fields, examples, creation }: Declaration,
  items: string,
  times: Resource["times"],
): Resource["schemas"] {
  const members = { id: ID, ...fields };
  const timed = [...times.creation, ...times.change].map((name) => [name, EXAMPLE_TIME]);
  const added = { id: 1, ...withDefaults(fields, { ...examples.item, ...Object.fromEntries(timed) }) };
  const itemSchema = named(item, output(members, { examples: [added] }));
  const byClients = (schema: Schema) => setterOf(schema) === undefined;
  const byOperators = (schema: Schema) => byClients(schema) || setterOf(schema) === "service";
  const changes = changesOf(fields, byClients);
  return {
    members,
    item: itemSchema,
    list: named(items, list(itemSchema, MAX_PAGE, { examples: [[added]] })),
    creation: named(
      `${item}Creation`,
      object(creationOf(fields, byClients), { ...creation, examples: [examples.item] }),
    ),
    changes,
    patch: named(`${item}Patch`, object(changes, patchText(fields, byClients, examples))),
    byOperators: {
      creation: creationOf(fields, byOperators),
      patch: changesOf(fields, byOperators),
      patchText: patchText(fields, byOperators, examples),
    },
  };
}

function errorsOf(code: string, one: string, many: string): Resource["errors"] {
  const inUse = {
    code: `${code}_in_use`,
    status: 409,
    means: `Other items refer to the ${one}, so it cannot be deleted.`,
    todo: "Delete those first, or let them refer to another one.",
  };
  return {
    notFound: {
      code: `${code}_not_found`,
      status: 404,
      means: `No ${one} has this id.`,
      todo: `List the ${many} to find the right id.`,
    },
    notYours: {
      code: `not_your_${code}`,
      status: 403,
      means: `Another account added the ${one}.`,
      todo: `Leave the ${one} as it is.`,
    },
    exists: {
      code: `${code}_exists`,
      status: 409,
      means: `Another ${one} has a value that only one can have.`,
      todo: "Choose another value for the field that the message names.",
    },
    inUse,
    inUseCounted: {
      ...inUse,
      counts: { references: `The number of items that refer to the ${one}, in one collection` },
    },
  };
}

/** Whether a field is the id of an item of another collection, as one of these hooks says. */
export function isReference(field: string, hooks: readonly Hook[]): boolean {
  return hooks.some((hook) => hook.refersTo !== undefined && hook.field === field);
}

/**
 * These fields. The schema of objects in a list gets a name, such as `InvoiceLine` for the field `lines` of an invoice. It
 * is open, because responses have it, too.
 */
function withNamedLists(item: string, fields: Members): Members {
  return Object.fromEntries(
    Object.entries(fields).map(([field, given]) => {
      const { outputJson, ...schema } = given;
      const { items = {} } = resolved(schema);
      const { definitions } = schema;
      const shown = resolved({ json: outputJson?.items ?? items, definitions });
      if (shown.type !== "object") return [field, given];
      const one = { ...shown, additionalProperties: true };
      const usual = `${item}${field.charAt(0).toUpperCase()}${singularOf(field.slice(1))}`;
      const { json } = named(nameIn(items) ?? usual, schema);
      const own = nameIn(schema.json);
      const whole = { ...resolved(schema), items: json };
      return [field, {
        ...schema,
        json: own === undefined ? whole : schema.json,
        definitions: { ...definitions, [nameIn(json) ?? ""]: one, ...own !== undefined && { [own]: whole } },
      }];
    }),
  );
}

/** The name of the schema that a description refers to. */
function nameIn({ $ref }: JsonSchema): string | undefined {
  return $ref?.split("/").at(-1);
}

/** The singular of a noun in English, if it ends as most plurals do. */
function singularOf(noun: string): string {
  return noun.replace(/ies$/, "y").replace(/(?<=ss|x|ch|sh)es$/, "").replace(/(?<!s)s$/, "");
}

/** The fields of an item to add. Those that its sender does not set are refused. */
function creationOf(fields: Members, isSet: (schema: Schema) => boolean): Members {
  return Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name, isSet(schema) ? schema : refused(schema)]),
  );
}

/** The fields of a change. Those that its sender does not set are ignored. */
function changesOf(fields: Members, isSet: (schema: Schema) => boolean): Members {
  const changes = Object.entries(mergePatch(fields)).map(([name, schema]) =>
    [name, isSet(schema) ? schema : ignored(schema)] as const
  );
  return { id: ignored(ID), ...Object.fromEntries(changes) };
}

/** Describes a patch to those who set these fields. */
function patchText(
  fields: Members,
  isSet: (schema: Schema) => boolean,
  { change }: Declaration["examples"],
): Pick<JsonSchema, "description" | "examples"> {
  const set = Object.entries(fields).filter(([, schema]) => isSet(schema));
  const removable = set.filter(([, schema]) => isRemovable(schema)).map(([name]) => name);
  const nullables = set.filter(([, schema]) => !isRemovable(schema) && schema.accepts(null)).map(([name]) =>
    name
  );
  return {
    description: `A JSON Merge Patch (RFC 7396). ${aboutNull(removable, nullables)}`,
    examples: [change],
  };
}

/** What null means in a patch, given the fields that it removes and those that can have it as a value. */
function aboutNull(removable: readonly string[], nullables: readonly string[]): string {
  if (removable.length + nullables.length === 0) return "Fields cannot be removed, so none may be null.";
  const removed = removable.length === 0 ? [] : [`Null removes ${AND.format(removable)}.`];
  const valued = nullables.length === 0 ? [] : [`Null is a value of ${AND.format(nullables)}.`];
  return [...removed, ...valued, "No other field may be null."].join(" ");
}

/** Whether an account may see an item of `ownerId`. An id is empty if there is no account: it owns nothing. */
export function mayRead({ readableBy }: Resource, ownerId: string, accountId: string): boolean {
  return readableBy === "everyone" || (accountId !== "" && ownerId === accountId);
}

/**
 * Requires that whoever acts may add, change or delete an item of `ownerId`: a client only its own, and none where only
 * operators do.
 *
 * @throws {ApiError} such as `not_your_toy`
 */
export function requireWriter(
  { writableBy, errors, nouns: { an } }: Resource,
  ownerId: string,
  { by, accountId }: Acting,
): void {
  if (by !== "account") return;
  const isOperators = writableBy === "operator";
  if (!isOperators && accountId !== "" && ownerId === accountId) return;
  const who = isOperators ? "operators" : `the account that added ${an}`;
  throw new ApiError(errors.notYours, `Only ${who} may update or delete ${isOperators ? an : "it"}.`);
}

/** The values of fields in declared order. A field without a value gets its default. */
export function withDefaults(
  fields: Members,
  values: JsonObject,
): JsonObject {
  const all: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(fields)) {
    const { [name]: value = "defaultValue" in schema ? schema.defaultValue : undefined } = values;
    if (value !== undefined) all[name] = value;
  }
  return all;
}
