import { decodeJson, encodeJson, type Store } from "../engine/mod.ts";
import { isValid, resolved, type Schema } from "../web/mod.ts";
import type { Resource } from "./resource.ts";

/** A declaration is invalid, or does not fit the store. The message, which is for the operator, says why. */
export class ResourceError extends Error {
  override readonly name = "ResourceError";
}

/** Together with that of accounts, the version rows of all collections fit into one read. */
const MAX_RESOURCES = 9;
/** Maximum size of an item as JSON, in bytes. A row holds twice as much. */
const MAX_BYTES = 32 * 1024;
const NAME = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
const ITEM_NAME = /^[A-Z][A-Za-z0-9]*$/;
const FIELD_NAME = /^[a-z][A-Za-z0-9]*$/;
/** Names that already mean something else in items, lists and operators' operations. */
const TAKEN = ["id", "limit", "cursor", "accountId", ...Object.getOwnPropertyNames(Object.prototype)];
const AND = new Intl.ListFormat("en-GB");

/** Options of {@linkcode openCollections}. */
export interface OpenCollectionsOptions {
  /** Whether to create collections that the store does not have yet. */
  readonly create: boolean;
}

/**
 * Checks the declarations of all collections, and their filters against the store. A row has the filters that a
 * collection was created with, so its indexes are complete from the first item on.
 *
 * @throws {ResourceError}
 * @throws {StoreUnavailable}
 */
export async function openCollections(
  store: Store,
  resources: readonly Resource[],
  { create }: OpenCollectionsOptions,
): Promise<void> {
  requireValid(resources);
  await Promise.all(resources.map(async (resource) => {
    const isStored = await hasFilters(store, resource);
    // The commit is refused if another process has created the collection in the meantime.
    if (!isStored && create && !await storeFilters(store, resource)) await hasFilters(store, resource);
  }));
}

/** Whether the store has the collection's filters. @throws {ResourceError} if they are not the declared ones. */
async function hasFilters(store: Store, { name, filters, rows }: Resource): Promise<boolean> {
  const row = await store.get(keyOf(name));
  const isOlder = row === null && rows.filtersBefore !== undefined &&
    (await store.list({ prefix: rows.items }, 1)).length > 0;
  const stored = row ? decodeJson<{ readonly filters: readonly string[] }>(row).filters : rows.filtersBefore;
  if (stored && (row || isOlder) && stored.toSorted().join() !== filters.toSorted().join()) {
    throw new ResourceError(
      `The store has ${name} ${filteredBy(stored)}, but this release declares them ${
        filteredBy(filters)
      }. A collection ` +
        "keeps the filters it was created with: declare those, or give the collection another name.",
    );
  }
  return row !== null;
}

/** Stores the filters of a new collection. Resolves to false if another process has done so. */
async function storeFilters(store: Store, { name, filters }: Resource): Promise<boolean> {
  const row = encodeJson({ filters: filters.toSorted() });
  const { ok } = await store.commit((operation) => {
    operation.check({ key: keyOf(name), versionstamp: null }).set(keyOf(name), row);
  });
  return ok;
}

function keyOf(name: string): Deno.KvKey {
  return ["resources", name];
}

function filteredBy(filters: readonly string[]): string {
  return filters.length === 0 ? "without filters" : `filtered by ${AND.format(filters.toSorted())}`;
}

/** @throws {ResourceError} */
function requireValid(resources: readonly Resource[]): void {
  const keys = resources.flatMap(({ name, rows }) => [keyOf(name), rows.items, rows.ids, rows.version]);
  const [fault] = [
    ...(resources.length <= MAX_RESOURCES ? [] : [`There can be at most ${MAX_RESOURCES} resources`]),
    ...(new Set(keys.map((key) => JSON.stringify(key))).size === keys.length
      ? []
      : ["Two resources have the same rows"]),
    ...resources.flatMap((resource) =>
      faultsOf(resource).map((fault) => `The resource ${resource.name} ${fault}`)
    ),
  ];
  if (fault !== undefined) throw new ResourceError(`${fault}.`);
}

/** What is wrong with a declaration. Each fault follows the name of the resource. */
function faultsOf({ name, item, fields, filters, examples, schemas }: Resource): string[] {
  const wrong = Object.keys(fields).find((field) => !FIELD_NAME.test(field) || TAKEN.includes(field));
  const bytes = maxBytes(schemas.item);
  const faults: readonly (readonly [isFault: boolean, fault: string])[] = [
    [!NAME.test(name), "must have a name of lower-case letters, digits and _"],
    [!ITEM_NAME.test(item), `must have an item with a name such as Toy, not ${item}`],
    [wrong !== undefined, `must not have a field with the name ${wrong}`],
    [new Set(filters).size < filters.length, "must not have the same filter twice"],
    [!isValid(schemas.creation, examples.item), "has an invalid example of an item"],
    [!isValid(schemas.patch, examples.change), "has an invalid example of a change"],
    [
      bytes > MAX_BYTES,
      `can have items of ${
        bytes === Infinity ? "any size" : `${bytes} bytes`
      }, but must have at most ${MAX_BYTES}`,
    ],
  ];
  return faults.filter(([isFault]) => isFault).map(([, fault]) => fault);
}

/** Maximum size of a value of this schema as JSON, in bytes; Infinity if it has no bound. */
function maxBytes({ json, definitions }: Pick<Schema, "json" | "definitions">): number {
  const { type, format, enum: values, maxLength = Infinity, maxItems = Infinity, items, properties = {} } =
    resolved({
      json,
      definitions,
    });
  if (values) return Math.max(...values.map((value) => 6 * String(value).length + 2));
  switch ([type].flat()[0]) {
    case "boolean":
      return 5;
    case "integer":
      return 20;
    case "string":
      // JSON escapes a control character with six bytes.
      return format === "date-time" ? 40 : 6 * maxLength + 2;
    case "array":
      return items ? maxItems * (maxBytes({ json: items, definitions }) + 1) + 2 : Infinity;
    case "object":
      return Object.entries(properties).reduce(
        (sum, [name, json]) => sum + name.length + 4 + maxBytes({ json, definitions }),
        2,
      );
    default:
      return Infinity;
  }
}
