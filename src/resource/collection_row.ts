import { decodeJson, encodeJson, type Entry, type Store } from "../engine/mod.ts";
import { type Resource, ResourceError } from "./resource.ts";
import { type Generations, sortLabel } from "./rows.ts";

/** What the store remembers of a collection: the part of its declaration that its rows follow from. */
interface CollectionRow {
  /**
   * The filters, and the sorts with a label, in the order of texts. Releases without sorts take these for filters that
   * they lack, and do not start.
   */
  readonly filters: readonly string[];
  /** By default, everyone. */
  readonly readableBy?: Resource["readableBy"];
  /** The names of the hooks in `extend`; by default none. */
  readonly extend?: readonly string[];
  /** The generation of the rows that are derived from its items; undefined before the first rebuild. */
  readonly generation?: string;
}

const AND = new Intl.ListFormat("en-GB");

/** The key of the row that remembers a collection. */
export function collectionKey(name: string): Deno.KvKey {
  return ["resources", name];
}

/** The row that remembers a collection as it is declared. */
export function encodeCollection(
  { filters, sorts, readableBy, extend }: Resource,
  generation?: string,
): Uint8Array<ArrayBuffer> {
  return encodeJson({
    filters: listsOf(filters, sorts),
    readableBy: readableBy === "everyone" ? undefined : readableBy,
    extend: extend.length === 0 ? undefined : namesOf(extend),
    generation,
  });
}

/**
 * Checks a declaration against the row that remembers the collection. If there is none, stores it if `create` is true.
 *
 * @throws {ResourceError} if the rows of its items follow from another declaration.
 */
export async function openCollection(
  store: Store,
  resource: Resource,
  create: boolean,
): Promise<void> {
  const { name, rows: { items, filtersBefore } } = resource;
  const key = collectionKey(name);
  const row = await store.get(key);
  if (row !== null) return requireSame(resource, decodeJson<CollectionRow>(row));
  const isOlder = filtersBefore !== undefined && (await store.list({ prefix: items }, 1)).length > 0;
  if (isOlder) requireSame(resource, { filters: filtersBefore });
  if (!create) return;
  const { ok } = await store.commit(
    (operation) => operation.set(key, encodeCollection(resource)),
    [{ key, versionstamp: null }],
  );
  // If another process has created the collection in the meantime, it might have declared it otherwise.
  if (!ok) await openCollection(store, resource, create);
}

/** The generations of the rows that are derived from the items of these collections. */
export async function findGenerations(store: Store, resources: readonly Resource[]): Promise<Generations> {
  const rows = await store.getMany(resources.map(({ name }) => collectionKey(name)));
  return new Map(rows.flatMap((row, index) => {
    const { generation } = row ? decodeJson<CollectionRow>(row) : {};
    return generation === undefined ? [] : [[resources[index]?.name ?? "", generation] as const];
  }));
}

/** Who sees the items of a collection, according to the row that remembers it. */
export function readersIn(row: Entry | null): Resource["readableBy"] {
  return (row && decodeJson<CollectionRow>(row).readableBy) ?? "everyone";
}

/** How the store remembers filters and sorts. */
function listsOf(filters: readonly string[], sorts: readonly string[]): readonly string[] {
  return [...filters, ...sorts.map(sortLabel)].sort();
}

function namesOf(extend: Resource["extend"]): readonly string[] {
  return extend.map(({ name }) => name).sort();
}

function requireSame({ name, filters, sorts, readableBy, extend }: Resource, stored: CollectionRow): void {
  const declared = { filters: listsOf(filters, sorts), readableBy, extend: namesOf(extend) };
  const [before, now] = [traitsOf(stored), traitsOf(declared)];
  const differing = before.flatMap((trait, index) => trait === now[index] ? [] : [index]);
  if (differing.length === 0) return;
  const [had, has] = [before, now].map((traits) => AND.format(differing.map((index) => traits[index] ?? "")));
  throw new ResourceError(
    `The store has ${name} ${had}, but this release declares them ${has}. Declare them as before, or stop every process ` +
      `of the service and run: deno task items ${name} rebuild`,
  );
}

/** What the rows of a collection follow from, in words. */
function traitsOf(
  { filters, readableBy, extend = [] }: Omit<CollectionRow, "generation">,
): readonly string[] {
  const sorts = filters.filter((label) => label.startsWith(sortLabel("")));
  const others = filters.filter((label) => !sorts.includes(label)).toSorted();
  return [
    others.length === 0 ? "without filters" : `filtered by ${AND.format(others)}`,
    sorts.length === 0 ? "not sorted" : sorts.map((label) => label.replace("sort", "sorted by")).join(),
    `readable by ${readableBy === "owner" ? "their owners" : "everyone"}`,
    extend.length === 0 ? "without hooks" : `with ${AND.format(extend)}`,
  ];
}
