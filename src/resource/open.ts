import { MAX_ROWS, type Store } from "../engine/mod.ts";
import type { ErrorKind } from "../web/mod.ts";
import { faultsIn, isRequired, resolved, type Schema, stringifyJson } from "../web/schema.ts";
import type { Catalogue } from "./catalogue.ts";
import { collectionKey, findGenerations, openCollection } from "./collection_row.ts";
import type { Change, RowCounts } from "./hook.ts";
import { oversizeOf } from "./commit_size.ts";
import { Hooks, rowsOf } from "./hooks.ts";
import { MAX_SORTED } from "./order.ts";
import { isReference, type Resource, ResourceError, withDefaults } from "./resource.ts";
import type { Generations } from "./rows.ts";
import { errorsOfRule, requireRules } from "./rules.ts";
import { setterOf } from "./service_fields.ts";
import { decodeItem, UnreadableItem } from "./stored_item.ts";

/** Together with that of accounts, the version rows of all collections fit into one read. */
const MAX_RESOURCES = 9;
/** Maximum size of an item as JSON, in bytes. A row holds twice as much. */
const MAX_BYTES = 32 * 1024;
/** Each combination of filters has a row with the whole item in each order, and one commit has to hold them all. */
const MAX_FILTERS = 3;
const MAX_FILTERS_OF_SORTED = 2;
const TITLE = /^[A-Za-z]/;
const NAME = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
const ITEM_NAME = /^[A-Z][A-Za-z0-9]*$/;
const FIELD_NAME = /^[a-z][A-Za-z0-9]*$/;
const ARTICLE_AND_NOUN = /^an? \S/;
/** Names that already mean something else in items, lists, operators' operations and commands. */
const TAKEN = [
  ...["id", "limit", "sort", "cursor", "accountId", "idempotencyKey", "help"],
  ...Object.getOwnPropertyNames(Object.prototype),
];
/** Names that mean something else in lists that can be sorted. */
const TAKEN_BY_SORTS = ["from", "to"];
/** How many of a collection's first and of its last items are read at the start. */
const SAMPLE = 100;

/** Options of {@linkcode openCollections}. */
export interface OpenCollectionsOptions {
  /** Whether to create collections that the store does not have yet, and to read items of those that it has. */
  readonly create: boolean;
}

/**
 * Checks the declarations of all collections, and these and some items against the store. Resolves to the generations of
 * the rows that are derived from items.
 *
 * @throws {ResourceError}
 * @throws {StoreUnavailable}
 */
export async function openCollections(
  store: Store,
  catalogue: Pick<Catalogue, "title" | "resources">,
  { create }: OpenCollectionsOptions,
): Promise<Generations> {
  requireValid(catalogue);
  await Promise.all(catalogue.resources.map(async (resource) => {
    await openCollection(store, resource, create);
    if (create) await requireReadableItems(store, resource);
  }));
  return await findGenerations(store, catalogue.resources);
}

/** @throws {ResourceError} if a declaration is invalid. */
export function requireValid(catalogue: Pick<Catalogue, "title" | "resources">): void {
  const [fault] = faultsOfCatalogue(catalogue);
  if (fault !== undefined) throw new ResourceError(`${fault}.`);
}

/** Reads the first and the last items. @throws {ResourceError} if the declaration does not fit one of them. */
async function requireReadableItems(store: Store, resource: Resource): Promise<void> {
  const all = { prefix: resource.rows.items };
  const samples = [store.list(all, SAMPLE), store.list(all, SAMPLE, { reverse: true })];
  for (const entry of (await Promise.all(samples)).flat()) {
    try {
      decodeItem(resource, entry);
    } catch (error) {
      if (!(error instanceof UnreadableItem)) throw error;
      if (error.isDamaged) continue; // No declaration can read it.
      throw new ResourceError(error.advice);
    }
  }
}

/** What is wrong with a catalogue. */
function* faultsOfCatalogue({ title, resources }: Pick<Catalogue, "title" | "resources">): Generator<string> {
  const keys = resources.flatMap((
    { name, rows },
  ) => [collectionKey(name), rows.items, rows.ids, rows.version]);
  if (!TITLE.test(title)) {
    yield "The title of the catalogue must begin with a letter from A to Z, as the names of metrics do";
  }
  if (resources.length > MAX_RESOURCES) yield `There can be at most ${MAX_RESOURCES} resources`;
  if (new Set(keys.map((key) => JSON.stringify(key))).size < keys.length) {
    yield "Two resources have the same rows: give each a name of its own";
  }
  for (const resource of resources) {
    const faults = [
      ...faultsOf(resource),
      ...faultsOfHooks(resource, resources),
      ...faultsOfRules(resource, Date.now()),
    ];
    for (const fault of faults) yield `The resource ${resource.name} ${fault}`;
  }
}

/** What is wrong with a declaration. Each fault follows the name of the resource. */
function* faultsOf(
  resource: Resource,
): Generator<string> {
  const { name, item, tag, nouns, fields, sorts, get, readableBy, writableBy, examples, schemas } = resource;
  const taken = sorts.length > 0 ? [...TAKEN, ...TAKEN_BY_SORTS] : TAKEN;
  if (!NAME.test(name)) yield "must have a name of lower-case letters, digits and _, such as toys";
  if (!ITEM_NAME.test(item)) yield `must have an item with a name such as Toy, not ${item}`;
  if (isBlank(tag?.name) || isBlank(tag?.description)) {
    yield "must have a tag with a name and a description";
  }
  if (!ARTICLE_AND_NOUN.test(nouns.an) || nouns.many.trim() === "") {
    yield 'must have nouns such as ["a toy", "toys"]';
  }
  for (const [field, schema] of Object.entries(fields)) {
    if (taken.includes(field)) yield `must not have a field with the name ${field}, which is taken`;
    if (!FIELD_NAME.test(field)) {
      yield `must not have a field with the name ${field}: it must begin in lower case and have only ASCII letters and digits`;
    }
    if ([resolved(schema).type].flat().includes("object")) {
      yield `must not have an object as the field ${field}, because PATCH does not merge it: declare its fields one by one`;
    }
    for (const fault of schema.faults ?? []) yield `has an invalid field ${field}: it ${fault}`;
    if (setterOf(schema) !== undefined && isRequired(schema)) {
      yield `must have a default for the field ${field}, or an optional one, because only the service sets it`;
    }
    if (!("defaultValue" in schema)) continue;
    for (const fault of faultsIn(schema, schema.defaultValue, field)) {
      yield `has an invalid default: ${fault}`;
    }
  }
  const { list, creation, patch } = schemas;
  const shared = sharedNameIn([...Object.values(fields), list, creation, patch]);
  if (shared !== undefined) yield `has two schemas with the name ${shared}: rename the one in its fields`;
  yield* faultsOfFilters(resource);
  yield* faultsOfSorts(resource);
  const { since, sunset } = get?.deprecated ?? { since: 0, sunset: 1 };
  if (!(since < sunset && isTime(since) && isTime(sunset))) {
    yield "must have times in get.deprecated, such as Date.UTC(2027, 0, 15), and since before sunset";
  }
  if (!["everyone", "owner"].includes(readableBy)) {
    yield 'must say who sees an item: readableBy is "everyone" or "owner"';
  }
  if (!["owner", "operator"].includes(writableBy)) {
    yield 'must say who writes an item: writableBy is "owner" or "operator"';
  }
  for (const fault of faultsIn(creation, examples.item)) yield `has an invalid example of an item: ${fault}`;
  for (const fault of faultsIn(patch, examples.change)) yield `has an invalid example of a change: ${fault}`;
  const bytes = schemas.item.maxBytes;
  if (bytes > MAX_BYTES) {
    const sizes = Object.entries(fields).map(([field, schema]) => [field, schema.maxBytes] as const);
    const [field, size] = sizes.reduce((largest, other) => other[1] > largest[1] ? other : largest);
    yield size === Infinity
      ? `must limit the size of ${field}: give each text in it a max, such as text({ max: 100 })`
      : `can have items of ${bytes} bytes, but a row has room for ${MAX_BYTES}. Lower a maximum: the largest field, ` +
        `${field}, can have ${size} bytes, 6 for each character of text`;
  }
}

function* faultsOfFilters({ filters, sorts, fields, extend }: Resource): Generator<string> {
  if (filters.length > MAX_FILTERS) yield `must have at most ${MAX_FILTERS} filters`;
  if (sorts.length > 0 && filters.length > MAX_FILTERS_OF_SORTED) {
    yield `must have at most ${MAX_FILTERS_OF_SORTED} filters, because its lists can be sorted`;
  }
  const possible = Object.entries(fields).filter(([name, schema]) =>
    isFilterable(schema) || (isInteger(schema) && isReference(name, extend))
  ).map(([name]) => name);
  for (const [index, filter] of filters.entries()) {
    if (filters.indexOf(filter) < index) yield `must not have the filter ${filter} twice`;
    if (!possible.includes(filter)) {
      yield `must not have the filter ${filter}: filters are fields that are one of a list, or true or false, or integers ` +
        "that exists() names";
    }
  }
}

function* faultsOfSorts({ sorts, fields }: Resource): Generator<string> {
  const [, second]: readonly string[] = sorts;
  if (second !== undefined) yield `must have at most one sort, not also ${second}`;
  for (const sort of sorts) {
    if (fields[sort] && isSortable(fields[sort])) continue;
    yield `must not have the sort ${sort}: sorts are fields with a date, a time, an integer, or a text of at most ` +
      `${MAX_SORTED} characters`;
  }
}

function* faultsOfHooks(resource: Resource, resources: readonly Resource[]): Generator<string> {
  const { name, extend, fields } = resource;
  const position = (other: string) => resources.findIndex(({ name }) => name === other);
  for (const [index, hook] of extend.entries()) {
    const { name: own, field, refersTo: other, errors = [], deletionErrors = [] } = hook;
    if (isBlank(own)) yield "must have a name for each entry in extend, because the store remembers it";
    if (extend.findIndex(({ name }) => name === own) < index) yield `must not have ${own} twice in extend`;
    for (const error of [...errors, ...deletionErrors]) {
      if (!isClientError(error)) {
        yield `must have errors of ${own} in extend with a status from 400 to 499, not ${error.status}, as ${error.code} has`;
      }
    }
    const schema = field === undefined ? undefined : fields[field];
    if (field !== undefined && schema === undefined) {
      yield `must have the field ${field} for ${own} in extend: declare it, or name another one`;
    }
    if (other === undefined) continue;
    if (schema && !isInteger(schema)) {
      yield `must have an integer, such as int64(), as the field ${field}, because it refers to ${other}`;
    }
    if (position(other) === -1) {
      yield `refers to ${other} by ${field}: add ${other} to the catalogue, before ${name}`;
    } else if (position(other) > position(name)) {
      yield `refers to ${other} by ${field}: list ${other} before ${name} in the catalogue`;
    }
  }
  for (const hook of extend) {
    const { name: own, keys, fault } = hook;
    if (keys !== undefined) {
      yield `has the hook ${own} with keys: remove them, because apply now gets any row, and say in rows how many it gets ` +
        "at most, if that is more than 2";
    }
    if (fault !== undefined) yield fault;
    for (const rows of Object.values(rowsOf(hook))) {
      if (Number.isSafeInteger(rows) && rows >= 0) continue;
      yield `must have a whole number as the rows of the hook ${own}, not ${rows}`;
      break;
    }
  }
  const hooks = new Hooks(resource, resources);
  yield* faultsOfRows(hooks);
  const oversize = oversizeOf(resource, hooks);
  if (oversize !== undefined) yield oversize;
}

/** What else a transaction gets: the rows of an account and of a stored reply, or that of the item. */
const OTHER_ROWS: RowCounts = { creation: 2, change: 1, deletion: 1 };

function* faultsOfRows({ rows }: Hooks): Generator<string> {
  for (const kind of ["creation", "change", "deletion"] as const) {
    const [most, needed] = [MAX_ROWS - OTHER_ROWS[kind], rows[kind]];
    if (needed <= most) continue;
    yield `has hooks that get ${needed} rows for one ${kind} of an item, but there is room for ${most}: a change gets 3 for ` +
      'exists(), 1 for exists() with onDelete: "keep", 2 for unique() and 2 for another hook, unless its rows say ' +
      "otherwise. Remove one";
    return;
  }
}

/** Those whose changes rules are asked about. */
const ACTORS = ["account", "operator", "service"] as const;

function* faultsOfRules(resource: Resource, now: number): Generator<string> {
  for (const [index, rule] of resource.rules.entries()) {
    if (!rule.check && !rule.checkDeletion) yield `must have a check or a checkDeletion in rule ${index + 1}`;
    const { put, delete: deletion } = errorsOfRule(rule);
    for (const error of [...put, ...deletion]) {
      if (isClientError(error)) continue;
      yield `must have rules whose errors have a status from 400 to 499, not ${error.status}, as ${error.code} has`;
    }
    // Asked without the others, because one of those may need the time.
    const rules = resource.rules.map((other) => other === rule ? rule : {});
    yield* faultsOfExamples({ ...resource, rules }, now);
  }
}

function* faultsOfExamples(resource: Resource, now: number): Generator<string> {
  const { fields, examples, changed } = resource;
  const item = { id: 1, ...withDefaults(fields, examples.item) };
  const after = changed(item, examples.change);
  for (const made of [{ after: item }, { before: item, after }]) {
    // A rule may leave it to some of them.
    const [fault, ...others] = ACTORS.map((by) => faultOfExample(resource, { by, now, ...made }));
    if (fault !== undefined && !others.includes(undefined)) {
      yield `has an example that breaks a rule: ${fault}`;
    }
  }
  for (const by of ACTORS) {
    const kept = faultOfExample(resource, { by, now, before: item, after: item });
    if (kept === undefined) continue;
    yield `has a rule that refuses an item as it is, which would excuse all changes of it: ${kept}. Let it refuse only what ` +
      "differs between item and before";
  }
}

/** What rules say about an example; undefined also if they need the time, because an example does not keep up with it. */
function faultOfExample(
  resource: Resource,
  { now, ...made }: Pick<Change, "by" | "now" | "before" | "after">,
): string | undefined {
  let isAboutTime = false;
  const change = {
    ...{ id: 1, ...made },
    get now() {
      isAboutTime = true;
      return now;
    },
  };
  try {
    requireRules(resource, change);
    return undefined;
  } catch (error) {
    if (isAboutTime) return undefined;
    return error instanceof Error ? error.message.replace(/\.$/, "") : typeof error;
  }
}

/** Whether a text, as JavaScript can declare it, says nothing. */
function isBlank(text: unknown): boolean {
  return typeof text !== "string" || text.trim() === "";
}

/** Whether a Date can have this time. */
function isTime(ms: number): boolean {
  return !Number.isNaN(new Date(ms).getTime());
}

function isClientError({ status }: ErrorKind): boolean {
  return status >= 400 && status <= 499;
}

function isFilterable(schema: Schema): boolean {
  const { type, enum: values } = resolved(schema);
  return type === "boolean" || (type === "string" && values !== undefined);
}

function isInteger(schema: Schema): boolean {
  return [resolved(schema).type].flat().includes("integer");
}

function isSortable(schema: Schema): boolean {
  const { type, enum: values, format, maxLength = Infinity } = resolved(schema);
  if (isInteger(schema)) return true;
  const isText = [type].flat().includes("string") && values === undefined;
  return isText && (format === "date" || format === "date-time" || maxLength <= MAX_SORTED);
}

/** A name that two different schemas have; undefined if there is none. */
function sharedNameIn(schemas: readonly Schema[]): string | undefined {
  const all = schemas.flatMap(({ definitions }) => Object.entries(definitions))
    .map(([name, json]) => [name, stringifyJson(json)] as const);
  const [name] = all.find(([name, json]) => all.some(([other, its]) => other === name && its !== json)) ?? [];
  return name;
}
