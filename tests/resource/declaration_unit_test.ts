import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
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
  integer,
  list,
  type Members,
  named,
  nullable,
  object,
  oneOf,
  optional,
  resolved,
  type Schema,
  text,
} from "../../src/web/schema.ts";
import { upTo } from "../support/client.ts";
import { THINGS } from "../support/things.ts";

const FIELDS = {
  name: text({ max: 9 }),
  size: optional(oneOf(["big", "small"]), "big"),
  isNew: boolean(),
  weight: int64(),
  note: optional(text({ max: 9 })),
};
const TEA_CUPS = {
  name: "tea_cups",
  item: "TeaCup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: FIELDS,
  filters: ["size", "isNew"],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Best", isNew: true, weight: 90 }, change: { note: "chipped" } },
} as const;

Deno.test("resource() derives every name from those of the collection and its items", () => {
  const { path, items, id, errors, rows } = resource(TEA_CUPS);

  assertEquals([path, items, id], ["/v1/tea_cups", "TeaCups", "teaCupId"]);
  assertEquals([errors.notFound.code, errors.notYours.code], ["tea_cup_not_found", "not_your_tea_cup"]);
  assertEquals([rows.items, rows.index(["isNew", "size"]), rows.ids, rows.version], [
    ["items", "tea_cups"],
    ["items_by", "tea_cups", "isNew,size"],
    ["ids", "tea_cups"],
    ["versions", "tea_cups"],
  ]);
});

Deno.test("resource() changes items by merge patches, and keeps the declared order of fields", () => {
  const { changed, schemas } = resource(TEA_CUPS);
  const cup = { id: 1, name: "Best", size: "big", isNew: true, weight: 90 };
  const change = (patch: object) => JSON.stringify(changed(cup, schemas.patch.parse(patch, "")));

  assertEquals(change({}), JSON.stringify(cup));
  assertEquals(
    change({ note: "chipped", name: "Old" }),
    '{"id":1,"name":"Old","size":"big","isNew":true,"weight":90,"note":"chipped"}',
  );
  assertEquals(JSON.stringify(changed({ ...cup, note: "chipped" }, { note: null })), JSON.stringify(cup));
  assertEquals(changed({ ...cup, note: null }, { name: "Old" }), { ...cup, note: null, name: "Old" });
});

Deno.test.each<[string, Members]>([
  ["Fields cannot be removed, so none may be null.", {}],
  ["Null removes note. No other field may be null.", { note: optional(text()) }],
  ["Null is a value of shelf. No other field may be null.", { shelf: nullable(text()) }],
  [
    "Null removes note and shelf. Null is a value of box. No other field may be null.",
    { note: optional(text()), shelf: optional(nullable(text())), box: nullable(text()) },
  ],
])("resource() describes null in a patch: %s", (description, fields) => {
  const { schemas } = resource({ ...TEA_CUPS, fields, filters: [], examples: { item: {}, change: {} } });

  assertEquals(resolved(schemas.patch).description, `A JSON Merge Patch (RFC 7396). ${description}`);
});

const DECLARATION: Declaration = { ...TEA_CUPS, name: "cups", item: "Cup", filters: [] };
type Resources = Catalogue["resources"];
type Changes = Partial<Declaration>;

/** Cups that are declared otherwise. */
function cups(changes: Changes = {}): Resource {
  return resource({ ...DECLARATION, ...changes });
}

/** Cups with other fields besides their own. */
function withFields(fields: Members, item: object = {}): Changes {
  const examples = { item: { ...TEA_CUPS.examples.item, ...item }, change: {} };
  return { fields: { ...FIELDS, ...fields }, examples };
}

/** Cups with these filters. */
function filteredBy(...filters: string[]): Changes {
  return { filters: untyped(filters) };
}

/** Cups whose lists can be sorted. */
function sortedBy(...sorts: string[]): Changes {
  return { sorts: untyped(sorts) };
}

/** Cups with a hook like this. */
function withHook(hook: Partial<Hook>): Changes {
  return { extend: [{ name: "mine", apply() {}, ...hook }] };
}

/** A value as JavaScript can declare it. */
function untyped(value: unknown) {
  return JSON.parse(JSON.stringify(value));
}

/** Several resources. */
function numbered(count: number): Resources {
  return [cups(), ...upTo(count - 1).map((n) => cups({ name: `cups${n}`, item: `Cup${n}` }))];
}

function openMemory(): Promise<Store> {
  return openStore(":memory:", { clock: () => 0, create: true });
}

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

const TAKEN = ["id", "limit", "sort", "cursor", "accountId", "idempotencyKey", "help", "constructor"];
/** A hook that does nothing. */
const MINE: Hook = { name: "mine", apply() {} };
/** Schemas that a declaration must not have, and why. */
const FAULTY: readonly (readonly [fault: string, Schema])[] = [
  ["must not have a pattern with the flag i, which documents cannot show", text({ max: 9, pattern: /x/i })],
  ["must not have a pattern with the flag g, which documents cannot show", text({ max: 9, pattern: /x/gu })],
  [
    "must have a pattern that is valid with the flag u, because readers of documents take it to have that",
    text({ max: 9, pattern: /\-/ }),
  ],
  ["must have a max that is a whole number from 1, not 0.5", text({ max: 0.5 })],
  ["must have bounds that are safe integers, the smaller one first, not 2 and 1", integer(2, 1)],
  [
    "must have bounds that are safe integers, the smaller one first, not 0 and Infinity",
    integer(0, Infinity),
  ],
  ["must be one of at least one value, none of which is there twice", oneOf(["a", "a"])],
  ["must be one of at least one value, none of which is there twice", oneOf([])],
];
/** Cups that refer to things. */
const REFERRING = { fields: { ...FIELDS, thingId: optional(int64()) }, extend: [exists(THINGS, "thingId")] };

Deno.test.each<[fault: string, Changes]>([
  ...TAKEN.map((name): [string, Changes] => [
    `must not have a field with the name ${name}, which is taken`,
    withFields({ [name]: optional(boolean()) }),
  ]),
  [
    "must not have a field with the name in_stock: it must begin in lower case and have only ASCII letters and digits",
    withFields({ in_stock: optional(boolean()) }),
  ],
  ["must have a name of lower-case letters, digits and _, such as toys", { name: "Cups" }],
  ["must have an item with a name such as Toy, not cup", { item: "cup" }],
  ["must not have the filter isNew twice", filteredBy("isNew", "isNew")],
  ...["status", "name", "weight"].map((filter): [string, Changes] => [
    `must not have the filter ${filter}: filters are fields that are one of a list, or true or false, or integers that ` +
    "exists() names",
    filteredBy(filter),
  ]),
  ...["status", "size", "isNew", "words", "plain", "long"].map((sort): [string, Changes] => [
    `must not have the sort ${sort}: sorts are fields with a date, a time, an integer, or a text of at most 100 characters`,
    {
      ...withFields({
        words: optional(list(text({ max: 9 }), 2)),
        plain: optional(text({ max: 101 })),
        long: optional(nullable(text({ max: 101 }))),
      }),
      ...sortedBy(sort),
    },
  ]),
  ["must have at most one sort, not also weight", sortedBy("name", "weight")],
  ["must have at most 2 filters, because its lists can be sorted", {
    ...withFields({ isOld: optional(boolean()) }),
    ...filteredBy("isNew", "size", "isOld"),
    ...sortedBy("name"),
  }],
  ...["from", "to"].map((name): [string, Changes] => [
    `must not have a field with the name ${name}, which is taken`,
    { ...withFields({ [name]: optional(boolean()) }), ...sortedBy("name") },
  ]),
  [
    "can have keys of 2085 bytes in its lists, but KV has room for 2048: shorten the values of kind, or drop one of these " +
    "filters",
    { ...withFields({ kind: optional(oneOf(["a".repeat(2_014), "b"])) }), ...filteredBy("kind") },
  ],
  [
    "needs up to 28 rows, 25004 bytes of keys and 667061 bytes of values for one change of an item of up to 30205 bytes, " +
    "which 8 rows have, but a commit has room for 900 rows, 75000 bytes of keys and 600000 bytes of values: lower a " +
    "maximum, such as that of note, or drop the sort name, the filter isNew, the filter size or a hook, or say in its " +
    "valueBytes how many a value has at most",
    {
      ...withFields({ note: optional(text({ max: 5_000 })) }),
      ...filteredBy("isNew", "size"),
      ...sortedBy("name"),
      extend: [{ name: "mine", rows: 6, apply() {} }],
    },
  ],
  ["must have at most 3 filters", filteredBy("isNew", "isNew", "size", "size")],
  ["must have a tag with a name and a description", { tag: { name: " ", description: "All cups" } }],
  ["must have a tag with a name and a description", { tag: { name: "Cups", description: "" } }],
  ["must have a tag with a name and a description", { tag: untyped({}) }],
  ['must have nouns such as ["a toy", "toys"]', { noun: ["a ", "cups"] }],
  ['must have nouns such as ["a toy", "toys"]', { noun: ["a cup", ""] }],
  ...[object({}), nullable(object({ x: int64() }))].map((size): [string, Changes] => [
    "must not have an object as the field size, because PATCH does not merge it: declare its fields one by one",
    withFields({ size }, { size: {} }),
  ]),
  [
    "has an invalid default: note must have 1 to 3 characters",
    withFields({ note: optional(text({ max: 3 }), "none") }),
  ],
  ...["Cup", "Cups", "CupCreation", "CupPatch"].map((name): [string, Changes] => [
    `has two schemas with the name ${name}: rename the one in its fields`,
    withFields({ note: optional(named(name, text({ max: 9 }))) }),
  ]),
  [
    "has two schemas with the name Words: rename the one in its fields",
    withFields({ note: named("Words", text({ max: 9 })), nick: named("Words", text({ max: 8 })) }),
  ],
  [
    "has an invalid example of an item: The field name must have 1 to 9 characters",
    withFields({}, { name: "" }),
  ],
  [
    "has an invalid example of a change: The field name must have 1 to 9 characters",
    { examples: { ...DECLARATION.examples, change: { name: "too long a name" } } },
  ],
  ...[optional(text()), optional(list(text(), 2))].map((note): [string, Changes] => [
    "must limit the size of note: give each text in it a max, such as text({ max: 100 })",
    withFields({ note }),
  ]),
  [
    "can have items of 60183 bytes, but a row has room for 32768. Lower a maximum: the largest field, note, can have " +
    "60002 bytes, 6 for each character of text",
    withFields({ note: optional(text({ max: 10_000 })) }),
  ],
  ['must say who sees an item: readableBy is "everyone" or "owner"', { readableBy: untyped("all") }],
  ['must say who writes an item: writableBy is "owner" or "operator"', { writableBy: untyped("all") }],
  [
    "must have the field thingId for exists(things, thingId, keep) in extend: declare it, or name another one",
    { extend: [exists(THINGS, "thingId")] },
  ],
  [
    "must have an integer, such as int64(), as the field name, because it refers to things",
    { extend: [exists(THINGS, "name")] },
  ],
  ["refers to things by thingId: add things to the catalogue, before cups", REFERRING],
  [
    "must have the field email for unique(email) in extend: declare it, or name another one",
    { extend: [unique("email")] },
  ],
  ...[" ", untyped(null)].map((name): [string, Changes] => [
    "must have a name for each entry in extend, because the store remembers it",
    { extend: [{ ...MINE, name }] },
  ]),
  [
    "must have errors of mine in extend with a status from 400 to 499, not 503, as overloaded has",
    { extend: [{ ...MINE, errors: [ERRORS.overloaded] }] },
  ],
  ...[[0, NaN], [NaN, 1], [1, 1]].map(([since = 0, sunset = 0]): [string, Changes] => [
    "must have times in get.deprecated, such as Date.UTC(2027, 0, 15), and since before sunset",
    { get: { deprecated: { since, sunset, advice: "Use the list" } } },
  ]),
  ...[...FAULTY, ...FAULTY.map(([fault, schema]) => [fault, list(schema, 2)] as const)]
    .map(([fault, schema]): [string, Changes] => [
      `has an invalid field extra: it ${fault}`,
      withFields({ extra: optional(schema) }),
    ]),
  [
    "has an invalid field extra: it must have a max that is a whole number from 1, not 0",
    withFields({ extra: optional(list(boolean(), 0)) }),
  ],
  ["must not have unique(name) twice in extend", { extend: [unique("name"), unique("name")] }],
  [
    "has hooks that get 7 rows for one creation of an item, but there is room for 6: a change gets 3 for exists(), 1 for " +
    'exists() with onDelete: "keep", 2 for unique() and 2 for another hook, unless its rows say otherwise. Remove one',
    withHook({ rows: 7 }),
  ],
  [
    "has the hook mine with keys: remove them, because apply now gets any row, and say in rows how many it gets at most, " +
    "if that is more than 2",
    withHook({ keys: () => [] }),
  ],
  ["must have a whole number as the rows of the hook mine, not 1.5", withHook({ rows: 1.5 })],
  ["must have a check or a checkDeletion in rule 1", { rules: [{}] }],
  ['must have "owner" or "everyone" as among of unique(name), not all', {
    extend: [unique("name", { among: untyped("all") })],
  }],
  [
    'must say among whose items name is unique: among: "owner", or among: "everyone", which keeps what is stored, but ' +
    "tells an account which values others have",
    { readableBy: "owner", extend: [unique("name")] },
  ],
  [
    "has an example that breaks a rule: The field name must be short",
    {
      rules: [
        { check: ({ now }) => now < 0 ? "The field name must be old." : undefined },
        { check: () => "The field name must be short." },
      ],
    },
  ],
  [
    "has an example that breaks a rule: The field note must stay",
    {
      rules: [{
        check: ({ item, before }) =>
          before && item.note !== before.note ? "The field note must stay." : undefined,
      }],
    },
  ],
  ...(["account", "operator", "service"] as const).map((actor): [string, Changes] => [
    "has a rule that refuses an item as it is, which would excuse all changes of it: The field name must stay. Let it " +
    "refuse only what differs between item and before",
    {
      rules: [{
        check: ({ before, by }) => before && by === actor ? "The field name must stay." : undefined,
      }],
    },
  ]),
  [
    "must have rules whose errors have a status from 400 to 499, not 500, as internal_error has",
    { rules: [{ error: ERRORS.internal_error, check: () => undefined }] },
  ],
])("openCollections() refuses a resource: it %s", async (fault, changes) => {
  const store = await openMemory();

  assertEquals(await refusalOf(store, [cups(changes)]), `The resource ${changes.name ?? "cups"} ${fault}.`);

  assertEquals(await store.list({ prefix: ["resources"] }, 9), []);
  await store.close();
});

Deno.test("openCollections() refuses resources with the same rows or in the wrong order, more than nine, and a title for no metrics", async () => {
  const store = await openMemory();
  const same = "Two resources have the same rows: give each a name of its own.";
  const later = "The resource cups refers to things by thingId: list things before cups in the catalogue.";

  assertEquals(await refusalOf(store, [THINGS, THINGS]), same);
  assertEquals(await refusalOf(store, [cups(REFERRING), THINGS]), later);
  const misspelt = { ...REFERRING, extend: [exists(THINGS, "thingId", { onDelete: untyped("cascade") })] };
  assertEquals(
    await refusalOf(store, [THINGS, cups(misspelt)]),
    'The resource cups must have "refuse" or "keep" as onDelete of exists(things, thingId), not cascade.',
  );
  assertEquals(await refusalOf(store, numbered(10)), "There can be at most 9 resources.");
  assertEquals(await refusalOf(store, numbered(9)), "");
  for (const title of ["", "3D Cups", "  "]) {
    await assertRejects(
      () => openCollections(store, { title, resources: [cups()] }, { create: true }),
      ResourceError,
      "The title of the catalogue must begin with a letter from A to Z, as the names of metrics do.",
    );
  }
  await store.close();
});

Deno.test("openCollections() accepts fields with the names from and to if lists cannot be sorted", async () => {
  const store = await openMemory();

  const between = cups(withFields({ from: optional(boolean()), to: optional(boolean()) }));
  assertEquals(await refusalOf(store, [between]), "");
  await store.close();
});

Deno.test("openCollections() accepts items of up to 32 KiB", async () => {
  const store = await openMemory();
  const ofSize = (max: number) =>
    cups({
      fields: { counts: optional(list(int64(), 1_000)), note: text({ max }) },
      examples: { item: { note: "x" }, change: {} },
    });

  assertEquals(await refusalOf(store, [ofSize(1_953)]), "");
  assertStringIncludes(await refusalOf(store, [ofSize(1_954)]), "32771 bytes");
  await store.close();
});

Deno.test("openCollections() stores the filters of a collection, and refuses others from then on", async () => {
  const store = await openMemory();
  const of = (...filters: string[]) => refusalOf(store, [cups(filteredBy(...filters))]);

  assertEquals(await refusalOf(store, [cups(filteredBy("isNew"))], false), "");
  assertEquals([await of("isNew", "size"), await of("size", "isNew")], ["", ""]);
  assertEquals(
    await of("size"),
    "The store has cups filtered by isNew and size, but this release declares them filtered by size. Declare them " +
      "as before, or stop every process of the service and run: deno task items cups rebuild",
  );
  assertStringIncludes(await of(), "declares them without filters");
  assertStringIncludes(
    await refusalOf(store, [cups({ readableBy: "owner" })]),
    "The store has cups filtered by isNew and size and readable by everyone, but this release declares them without " +
      "filters and readable by their owners.",
  );
  assertStringIncludes(await refusalOf(store, [cups(filteredBy("isNew"))], false), "filtered by isNew");
  await store.close();
});

Deno.test("openCollections() refuses filters that another process declares at the same time", async () => {
  const store = await openMemory();

  const refusals = await Promise.all(
    ["isNew", "size"].map((filter) => refusalOf(store, [cups(filteredBy(filter))])),
  );

  const [none = "", one = ""] = refusals.sort();
  assertEquals(none, "");
  assertStringIncludes(one, "The store has cups filtered by");
  await store.close();
});

/** A store with a damaged cup, and with 300 cups, one of which has other fields. */
async function withOddCup(odd: number): Promise<Store> {
  const store = await openMemory();
  await store.commit((operation) => {
    operation.set(["items", "cups", 0], encodeText("no cup"));
    for (let id = 1; id <= 300; id++) {
      const cup = { id, name: "Big", isNew: true, weight: 1, ...(id === odd && { size: "small", rank: 7 }) };
      operation.set(["items", "cups", id], encodeText(`${JSON.stringify(cup)}\na`));
    }
  });
  return store;
}

const OTHER_TYPE =
  "has a value that is not declared, so this release cannot read the item. Keep the type and all values of the field, " +
  "or declare a new field with another name.";

Deno.test.each<[change: string, odd: number, fields: Members, example: object, why: string]>([
  [
    "a new field is required",
    1,
    { rank: int64() },
    { rank: 1 },
    "In item 2 of cups, the field rank is missing, so this release cannot read the item. Make the field optional, or " +
    "give it a default.",
  ],
  [
    "a type changes",
    99,
    { rank: optional(text({ max: 9 })) },
    {},
    `In item 99 of cups, the field rank ${OTHER_TYPE}`,
  ],
  [
    "a value goes",
    300,
    { size: optional(oneOf(["big"]), "big") },
    {},
    `In item 300 of cups, the field size ${OTHER_TYPE}`,
  ],
  ["an optional field is new", 1, { owner: optional(text({ max: 9 })) }, {}, ""],
  ["a field has a default", 1, { grade: optional(text({ max: 9 }), "A") }, {}, ""],
  ["a maximum is lower", 1, { name: text({ max: 2 }) }, { name: "B" }, ""],
])(
  "openCollections() refuses a declaration only if items break it: %s",
  async (_, odd, fields, item, why) => {
    const store = await withOddCup(odd);
    const changed = cups(withFields(fields, item));

    assertEquals(await refusalOf(store, [changed]), why);
    assertEquals(await refusalOf(store, [changed], false), "");
    await store.close();
  },
);
