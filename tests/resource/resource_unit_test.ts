import { assertEquals } from "@std/assert";
import { type ItemOf, type Resource, resource } from "../../src/resource/mod.ts";
import {
  boolean,
  int64,
  type Members,
  nullable,
  oneOf,
  optional,
  resolved,
  text,
} from "../../src/web/schema.ts";

const FIELDS = {
  name: text({ max: 9 }),
  size: optional(oneOf(["big", "small"]), "big"),
  isNew: boolean(),
  weight: int64(),
  note: optional(text({ max: 9 })),
};
const DECLARATION = {
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
  const { path, items, id, errors, rows } = resource(DECLARATION);

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
  const { changed, schemas } = resource(DECLARATION);
  const cup = { id: 1, name: "Best", size: "big", isNew: true, weight: 90 };
  const change = (patch: object) => JSON.stringify(changed(cup, schemas.patch.parse(patch, "")));

  assertEquals(change({}), JSON.stringify(cup));
  assertEquals(
    change({ note: "chipped", name: "Old" }),
    '{"id":1,"name":"Old","size":"big","isNew":true,"weight":90,"note":"chipped"}',
  );
  assertEquals(JSON.stringify(changed({ ...cup, note: "chipped" }, { note: null })), JSON.stringify(cup));
});

Deno.test.each<[string, Members]>([
  ["Fields cannot be removed, so none may be null.", {}],
  ["Null removes note. No other field may be null.", { note: optional(text({ max: 9 })) }],
  ["Null is a value of shelf. No other field may be null.", { shelf: nullable(text({ max: 9 })) }],
  [
    "Null removes note and shelf. Null is a value of box. No other field may be null.",
    { note: optional(text()), shelf: optional(nullable(text())), box: nullable(text()) },
  ],
])("resource() describes null in a patch: %s", (description, fields) => {
  const examples = { item: {}, change: {} };

  const { schemas } = resource({ ...DECLARATION, fields, filters: [], examples });

  assertEquals(resolved(schemas.patch).description, `A JSON Merge Patch (RFC 7396). ${description}`);
});

Deno.test("resource() types items, and refuses wrong filters, examples and nouns as type errors", () => {
  const cups: Resource<ItemOf<typeof FIELDS>> = resource(DECLARATION);
  const stored: unknown = { id: 1, name: "Best", size: "big", isNew: true, weight: 90 };
  if (cups.schemas.item.accepts(stored)) {
    const size: "big" | "small" = stored.size;
    const note: string | undefined = stored.note;
    assertEquals([size, note, stored.weight], ["big", undefined, 90]);
  }

  // @ts-expect-error: text is not a filter
  resource({ ...DECLARATION, filters: ["name"] });
  // @ts-expect-error: an integer is not a filter
  resource({ ...DECLARATION, filters: ["weight"] });
  // @ts-expect-error: it has no such field
  resource({ ...DECLARATION, filters: ["colour"] });
  // @ts-expect-error: at most three
  resource({ ...DECLARATION, filters: ["size", "isNew", "size", "isNew"] });
  const { item, change } = DECLARATION.examples;
  // @ts-expect-error: the example lacks a field
  resource({ ...DECLARATION, examples: { item: { name: "Best", isNew: true }, change } });
  // @ts-expect-error: the example has another type
  resource({ ...DECLARATION, examples: { item: { ...item, isNew: "yes" }, change } });
  // @ts-expect-error: the example has an unknown field
  resource({ ...DECLARATION, examples: { item, change: { colour: "red" } } });
  // @ts-expect-error: the noun lacks its article
  resource({ ...DECLARATION, noun: ["cup", "cups"] });
});
