import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { encodeText, openStore, type Store } from "../../src/engine/mod.ts";
import {
  type Catalogue,
  type Declaration,
  exists,
  type Hook,
  openCollections,
  type Resource,
  resource,
  ResourceError,
  unique,
} from "../../src/resource/mod.ts";
import { ERRORS } from "../../src/web/mod.ts";
import {
  boolean,
  int64,
  list,
  type Members,
  named,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
} from "../../src/web/schema.ts";
import { THINGS } from "../support/things.ts";

const FIELDS = { name: text({ max: 9 }), isNew: boolean(), colour: optional(oneOf(["red", "blue"])) };
const DECLARATION: Omit<Declaration<typeof FIELDS>, "rules" | "extend"> = {
  name: "cups",
  item: "Cup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: FIELDS,
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Big", isNew: true }, change: {} },
};

function openMemory(): Promise<Store> {
  return openStore(":memory:", { clock: () => 0, create: true });
}

type Resources = Catalogue["resources"];

/** Why these resources are refused; empty if they are not. */
async function refusalOf(store: Store, resources: Resources, create = true): Promise<string> {
  try {
    await openCollections(store, { title: "Cup Store", resources }, { create });
    return "";
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    return error.message;
  }
}

/** A resource with one field besides those of cups. */
function withField(name: string, schema: Schema = optional(text({ max: 9 }))): Resource {
  const fields: Members = { ...FIELDS, [name]: schema };
  return resource({ ...DECLARATION, fields, filters: [] });
}

/** Several resources. */
function numbered(count: number): Resources {
  const others = Array.from(
    { length: count - 1 },
    (_, index) => resource({ ...DECLARATION, name: `cups${index}`, item: `Cup${index}` }),
  );
  return [resource(DECLARATION), ...others];
}

/** A resource with these filters, as JavaScript can declare them. */
function withFilters(...filters: string[]): Resource {
  const declared: unknown = filters;
  const isDeclared = (some: unknown): some is readonly ["isNew"] => some === declared;
  const fields = { ...FIELDS, size: int64(), isBig: boolean() };
  const examples = { item: { ...DECLARATION.examples.item, size: 1, isBig: true }, change: {} };
  assert(isDeclared(declared));
  return resource({ ...DECLARATION, fields, filters: declared, examples });
}

/** Cups that refer to things. */
const REFERENCE: Members = { ...FIELDS, thingId: optional(int64()) };
const REFERRING = resource({
  ...DECLARATION,
  fields: REFERENCE,
  filters: [],
  extend: [exists(THINGS, "thingId")],
});

/** A resource with a hook that reads these rows. */
function withHook(keys: Hook["keys"]): Resource {
  return resource({ ...DECLARATION, extend: [{ name: "mine", keys, apply() {} }] });
}

Deno.test.each<[string, Resources]>([
  ["The resource cups must not have a field with the name id, which is taken.", [withField("id")]],
  ["The resource cups must not have a field with the name limit, which is taken.", [withField("limit")]],
  ["The resource cups must not have a field with the name cursor, which is taken.", [withField("cursor")]],
  ["The resource cups must not have a field with the name accountId, which is taken.", [
    withField("accountId"),
  ]],
  ["The resource cups must not have a field with the name constructor, which is taken.", [
    withField("constructor"),
  ]],
  ["The resource cups must not have a field with the name help, which is taken.", [withField("help")]],
  [
    "The resource cups must not have a field with the name in_stock: it must begin in lower case and have only ASCII " +
    "letters and digits.",
    [withField("in_stock")],
  ],
  [
    "The resource Cups must have a name of lower-case letters, digits and _, such as toys.",
    [resource({ ...DECLARATION, name: "Cups" })],
  ],
  [
    "The resource cups must have an item with a name such as Toy, not cup.",
    [resource({ ...DECLARATION, item: "cup" })],
  ],
  ["The resource cups must not have the filter isNew twice.", [withFilters("isNew", "isNew")]],
  ...["status", "name", "size"].map((filter): [string, Resources] => [
    `The resource cups must not have the filter ${filter}: filters are fields that are one of a list, or true or false.`,
    [withFilters("isNew", filter)],
  ]),
  ["The resource cups must have at most 3 filters.", [withFilters("isNew", "isBig", "colour", "size")]],
  ...[{ name: " ", description: "All cups" }, { name: "Cups", description: "" }].map((
    tag,
  ): [string, Resources] => [
    "The resource cups must have a tag with a name and a description.",
    [resource({ ...DECLARATION, tag })],
  ]),
  ...(["a ", "a cup"] as const).map((one): [string, Resources] => [
    'The resource cups must have nouns such as ["a toy", "toys"].',
    [resource({ ...DECLARATION, noun: [one, one === "a " ? "cups" : ""] })],
  ]),
  ...[object({}), nullable(object({ x: int64() }))].map((schema): [string, Resources] => [
    "The resource cups must not have an object as the field size, because PATCH does not merge it: declare its fields " +
    "one by one.",
    [withField("size", schema)],
  ]),
  [
    "The resource cups has an invalid default: note must have 1 to 3 characters.",
    [withField("note", optional(text({ max: 3 }), "none"))],
  ],
  ...["Cup", "Cups", "CupCreation", "CupPatch"].map((name): [string, Resources] => [
    `The resource cups has two schemas with the name ${name}: rename the one in its fields.`,
    [withField("note", optional(named(name, text({ max: 9 }))))],
  ]),
  [
    "The resource cups has two schemas with the name Words: rename the one in its fields.",
    [resource({
      ...DECLARATION,
      fields: { name: named("Words", text({ max: 9 })), nick: named("Words", text({ max: 8 })) },
      filters: [],
      readableBy: "everyone",
      writableBy: "owner",
      examples: { item: { name: "Big", nick: "B" }, change: {} },
    })],
  ],
  [
    "The resource cups has an invalid example of an item: The field name must have 1 to 9 characters.",
    [resource({ ...DECLARATION, examples: { item: { name: "", isNew: true }, change: {} } })],
  ],
  [
    "The resource cups has an invalid example of a change: The field name must have 1 to 9 characters.",
    [resource({
      ...DECLARATION,
      examples: { ...DECLARATION.examples, change: { name: "too long a name" } },
    })],
  ],
  ...[optional(text()), optional(list(text(), 2))].map((schema): [string, Resources] => [
    "The resource cups must limit the size of note: give each text in it a max, such as text({ max: 100 }).",
    [withField("note", schema)],
  ]),
  [
    "The resource cups can have items of 60149 bytes, but a row has room for 32768. Lower a maximum: the largest " +
    "field, note, can have 60002 bytes, 6 for each character of text.",
    [withField("note", optional(text({ max: 10_000 })))],
  ],
  [
    'The resource cups must say who sees an item: readableBy is "everyone" or "owner".',
    [resource({ ...DECLARATION, readableBy: JSON.parse('"all"') })],
  ],
  [
    'The resource cups must say who writes an item: writableBy is "owner" or "operator".',
    [resource({ ...DECLARATION, writableBy: JSON.parse('"everyone"') })],
  ],
  [
    "The resource cups must have the field thingId for exists(things, thingId) in extend: declare it, or name another one.",
    [THINGS, resource({ ...DECLARATION, extend: [exists(THINGS, "thingId")] })],
  ],
  [
    "The resource cups must have an integer, such as int64(), as the field name, because it refers to things.",
    [THINGS, resource({ ...DECLARATION, extend: [exists(THINGS, "name")] })],
  ],
  [
    "The resource cups refers to things by thingId: add things to the catalogue, before cups.",
    [REFERRING],
  ],
  ["The resource cups refers to things by thingId: list things before cups in the catalogue.", [
    REFERRING,
    THINGS,
  ]],
  [
    "The resource cups must have the field email for unique(email) in extend: declare it, or name another one.",
    [resource({ ...DECLARATION, extend: [unique("email")] })],
  ],
  [
    "The resource cups must not have unique(name) twice in extend.",
    [resource({ ...DECLARATION, extend: [unique("name"), unique("name")] })],
  ],
  [
    "The resource cups has an invalid entry in extend, as the creation of its example shows: The hooks of cups read 6 " +
    "rows for one change of an item: at most 5 are possible.",
    [withHook(() => [1, 2, 3, 4, 5, 6].map((part) => ["own", "cups", part]))],
  ],
  [
    "The resource cups has an invalid entry in extend, as the deletion of its example shows: no such cup.",
    [withHook(({ after }) => {
      if (after === undefined) throw new Error("no such cup");
      return [];
    })],
  ],
  [
    "The resource cups has an example that breaks a rule: The field name must be short.",
    [resource({ ...DECLARATION, rules: [{ check: () => "The field name must be short." }] })],
  ],
  [
    "The resource cups must have rules whose errors have a status from 400 to 499, not 500, as internal_error has.",
    [resource({ ...DECLARATION, rules: [{ error: ERRORS.internal_error, check: () => undefined }] })],
  ],
  ["Two resources have the same rows: give each a name of its own.", [THINGS, THINGS]],
  ["There can be at most 9 resources.", numbered(10)],
])("openCollections() refuses a declaration: %s", async (message, resources) => {
  const store = await openMemory();

  assertEquals(await refusalOf(store, resources), message);

  assertEquals(await store.list({ prefix: ["resources"] }, 9), []);
  await store.close();
});

Deno.test("openCollections() refuses a title that the names of metrics cannot begin with", async () => {
  const store = await openMemory();

  for (const title of ["", "3D Cups", "  "]) {
    await assertRejects(
      () => openCollections(store, { title, resources: [resource(DECLARATION)] }, { create: true }),
      ResourceError,
      "The title of the catalogue must begin with a letter from A to Z, as the names of metrics do.",
    );
  }
  await store.close();
});

Deno.test("openCollections() accepts nine resources, and items of up to 32 KiB", async () => {
  const store = await openMemory();
  const ofSize = (max: number) => {
    const fields = { counts: optional(list(int64(), 1_000)), note: text({ max }) };
    return resource({ ...DECLARATION, fields, filters: [], examples: { item: { note: "x" }, change: {} } });
  };

  assertEquals(await refusalOf(store, numbered(9)), "");
  assertEquals(await refusalOf(store, [ofSize(1_953)]), "");
  assertStringIncludes(await refusalOf(store, [ofSize(1_954)]), "32771 bytes");
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
    "The store has cups filtered by colour and isNew, but this release declares them filtered by colour. Declare them " +
      "as before, or stop every process of the service and run: deno task items cups rebuild",
  );
  assertStringIncludes(await of(), "declares them without filters");
  const hidden = resource({ ...DECLARATION, readableBy: "owner" });
  assertStringIncludes(
    await refusalOf(store, [hidden]),
    "The store has cups filtered by colour and isNew and readable by everyone, but this release declares them without " +
      "filters and readable by their owners.",
  );
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

/** A store with a damaged cup, and with 300 cups, one of which has other fields. */
async function withOddCup(odd: number): Promise<Store> {
  const store = await openMemory();
  await store.commit((operation) => {
    operation.set(["items", "cups", 0], encodeText("no cup"));
    for (let id = 1; id <= 300; id++) {
      const cup = { id, name: "Big", isNew: true, ...(id === odd && { colour: "red", size: 7 }) };
      operation.set(["items", "cups", id], encodeText(`${JSON.stringify(cup)}\na`));
    }
  });
  return store;
}

const UNDECLARED =
  "has a value that is not declared, so this release cannot read the item. Keep the type and all " +
  "values of the field, or declare a new field with another name.";
Deno.test.each<[string, number, Members, object, string]>([
  [
    "a new field is required",
    1,
    { size: int64() },
    { size: 1 },
    "In item 2 of cups, the field size is missing, so this " +
    "release cannot read the item. Make the field optional, or give it a default.",
  ],
  [
    "a type changes",
    99,
    { size: optional(text({ max: 9 })) },
    {},
    `In item 99 of cups, the field size ${UNDECLARED}`,
  ],
  [
    "a value goes",
    300,
    { colour: optional(oneOf(["blue"])) },
    {},
    `In item 300 of cups, the field colour ${UNDECLARED}`,
  ],
  ["an optional field is new", 1, { note: optional(text({ max: 9 })) }, {}, ""],
  ["a field has a default", 1, { grade: optional(text({ max: 9 }), "A") }, {}, ""],
  ["a maximum is lower", 1, { name: text({ max: 2 }) }, { name: "B" }, ""],
])(
  "openCollections() refuses a declaration only if stored items break it: %s",
  async (_, odd, changes, example, why) => {
    const store = await withOddCup(odd);
    const fields: Members = { ...FIELDS, ...changes };
    const examples = { item: { ...DECLARATION.examples.item, ...example }, change: {} };
    const changed = resource({ ...DECLARATION, fields, filters: [], examples });

    assertEquals(await refusalOf(store, [changed]), why);
    assertEquals(await refusalOf(store, [changed], false), "");
    await store.close();
  },
);

Deno.test("openCollections() refuses filters that another process declares at the same time", async () => {
  const store = await openMemory();
  const one = resource({ ...DECLARATION, filters: ["isNew"] });
  const other = resource({ ...DECLARATION, filters: ["colour"] });

  const [first, second] = await Promise.allSettled(
    [one, other].map((cups) =>
      openCollections(store, { title: "Cup Store", resources: [cups] }, { create: true })
    ),
  );

  const outcomes = [first?.status, second?.status].sort();
  assertEquals(outcomes, ["fulfilled", "rejected"]);
  await assertRejects(async () => {
    await Promise.all(
      [one, other].map((cups) =>
        openCollections(store, { title: "Cup Store", resources: [cups] }, { create: true })
      ),
    );
  }, ResourceError);
  await store.close();
});
