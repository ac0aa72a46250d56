import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { encodeText, openStore, type Store } from "../../src/engine/mod.ts";
import {
  type Declaration,
  openCollections,
  type Resource,
  resource,
  ResourceError,
} from "../../src/resource/mod.ts";
import { boolean, int64, list, oneOf, optional, text } from "../../src/web/schema.ts";
import { THINGS } from "../support/things.ts";

const FIELDS = { name: text({ max: 9 }), isNew: boolean(), colour: optional(oneOf(["red", "blue"])) };
const DECLARATION: Declaration<typeof FIELDS> = {
  name: "cups",
  item: "Cup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: FIELDS,
  filters: [],
  examples: { item: { name: "Big", isNew: true }, change: {} },
};

function openMemory(): Promise<Store> {
  return openStore(":memory:", { clock: () => 0, create: true });
}

/** Why these resources are refused; empty if they are not. */
async function refusalOf(store: Store, resources: readonly Resource[], create = true): Promise<string> {
  try {
    await openCollections(store, resources, { create });
    return "";
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    return error.message;
  }
}

/** A resource with one field besides those of cups. */
function withField(name: string, schema: ReturnType<typeof text> = text({ max: 9 })): Resource {
  const fields = { ...FIELDS, [name]: optional(schema) };
  return resource({ ...DECLARATION, fields, filters: [] });
}

Deno.test.each<[string, readonly Resource[]]>([
  ["The resource cups must not have a field with the name id.", [withField("id")]],
  ["The resource cups must not have a field with the name limit.", [withField("limit")]],
  ["The resource cups must not have a field with the name cursor.", [withField("cursor")]],
  ["The resource cups must not have a field with the name accountId.", [withField("accountId")]],
  ["The resource cups must not have a field with the name constructor.", [withField("constructor")]],
  ["The resource cups must not have a field with the name a b.", [withField("a b")]],
  [
    "The resource Cups must have a name of lower-case letters, digits and _.",
    [resource({ ...DECLARATION, name: "Cups" })],
  ],
  [
    "The resource cups must have an item with a name such as Toy, not cup.",
    [resource({ ...DECLARATION, item: "cup" })],
  ],
  [
    "The resource cups must not have the same filter twice.",
    [resource({ ...DECLARATION, filters: ["isNew", "isNew"] })],
  ],
  [
    "The resource cups has an invalid example of an item.",
    [resource({ ...DECLARATION, examples: { item: { name: "", isNew: true }, change: {} } })],
  ],
  [
    "The resource cups has an invalid example of a change.",
    [resource({
      ...DECLARATION,
      examples: { ...DECLARATION.examples, change: { name: "too long a name" } },
    })],
  ],
  ["The resource cups can have items of any size, but must have at most 32768.", [withField("note", text())]],
  [
    "The resource cups can have items of 60152 bytes, but must have at most 32768.",
    [withField("note", text({ max: 10_000 }))],
  ],
  ["Two resources have the same rows.", [THINGS, THINGS]],
  [
    "There can be at most 9 resources.",
    Array.from(
      { length: 10 },
      (_, index) => resource({ ...DECLARATION, name: `cups${index}`, item: `Cup${index}` }),
    ),
  ],
])("openCollections() refuses a declaration: %s", async (message, resources) => {
  const store = await openMemory();

  assertEquals(await refusalOf(store, resources), message);

  assertEquals(await store.list({ prefix: ["resources"] }, 9), []);
  await store.close();
});

Deno.test("openCollections() accepts nine resources, and items of exactly 32 KiB", async () => {
  const store = await openMemory();
  const nine = Array.from(
    { length: 9 },
    (_, index) => resource({ ...DECLARATION, name: `cups${index}`, item: `Cup${index}` }),
  );
  const ofSize = (max: number) => {
    const fields = { counts: optional(list(int64(), 1_000)), note: text({ max }) };
    return resource({ ...DECLARATION, fields, filters: [], examples: { item: { note: "x" }, change: {} } });
  };

  assertEquals(await refusalOf(store, nine), "");
  assertEquals(await refusalOf(store, [ofSize(1_953)]), "");
  assertStringIncludes(await refusalOf(store, [ofSize(1_954)]), "32774 bytes");
  await store.close();
});

Deno.test("openCollections() stores the filters of a collection, and refuses others from then on", async () => {
  const store = await openMemory();
  const filtered = (...filters: ("isNew" | "colour")[]) => {
    const [first, second] = filters;
    if (first && second) return resource({ ...DECLARATION, filters: [first, second] });
    return resource({ ...DECLARATION, filters: first ? [first] : [] });
  };
  const of = (...filters: ("isNew" | "colour")[]) => refusalOf(store, [filtered(...filters)]);

  assertEquals(await refusalOf(store, [filtered("isNew")], false), "");
  assertEquals([await of("isNew", "colour"), await of("colour", "isNew")], ["", ""]);
  assertEquals(
    await of("colour"),
    "The store has cups filtered by colour and isNew, but this release declares them filtered by colour. A collection " +
      "keeps the filters it was created with: declare those, or give the collection another name.",
  );
  assertStringIncludes(await of(), "declares them without filters");
  assertStringIncludes(await refusalOf(store, [filtered("isNew")], false), "filtered by isNew");
  await store.close();
});

Deno.test("openCollections() knows the filters of a collection that has items but no row with its filters", async () => {
  const rows = { ...resource(DECLARATION).rows, filtersBefore: ["isNew"] };
  const older = (filters: Declaration<typeof FIELDS>["filters"]) =>
    resource({ ...DECLARATION, filters, rows });
  const store = await openMemory();
  await store.commit((operation) => operation.set(["items", "cups", 1], encodeText("{}\na")));

  assertStringIncludes(await refusalOf(store, [older([])]), "The store has cups filtered by isNew");
  assertEquals(await refusalOf(store, [older(["isNew"])]), "");
  await store.close();

  const empty = await openMemory();
  assertEquals(await refusalOf(empty, [older(["colour"])]), "");
  await empty.close();
});

Deno.test("openCollections() refuses filters that another process declares at the same time", async () => {
  const store = await openMemory();
  const one = resource({ ...DECLARATION, filters: ["isNew"] });
  const other = resource({ ...DECLARATION, filters: ["colour"] });

  const [first, second] = await Promise.allSettled(
    [one, other].map((cups) => openCollections(store, [cups], { create: true })),
  );

  const outcomes = [first?.status, second?.status].sort();
  assertEquals(outcomes, ["fulfilled", "rejected"]);
  await assertRejects(async () => {
    await Promise.all([one, other].map((cups) => openCollections(store, [cups], { create: true })));
  }, ResourceError);
  await store.close();
});
