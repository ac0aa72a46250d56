// A collection with every kind of schema, in every form that a declaration allows.
import { type Catalogue, type Resource, resource } from "../../src/resource/mod.ts";
import {
  boolean,
  date,
  int64,
  integer,
  list,
  type Members,
  nameText,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import { OF_THINGS } from "./things.ts";

/** A schema and a value by the kind of schema. */
const KINDS: Readonly<Record<string, readonly [schema: Schema, value: unknown]>> = {
  text: [text({ max: 20, description: "A text" }), "Élan"],
  name: [nameText(20, "A name"), "Élan"],
  integer: [integer(-9, 9, { description: "An integer" }), -9],
  long: [int64({ description: "A large integer" }), 2n ** 62n],
  flag: [boolean({ description: "A flag" }), true],
  choice: [oneOf(["one", "two"], { description: "A choice" }), "two"],
  day: [date({ description: "A day" }), "2027-01-15"],
  time: [timestamp({ description: "A time" }), "2027-01-15T12:00:00Z"],
  texts: [list(text({ max: 20 }), 2, { description: "Texts" }), ["a", "b"]],
  numbers: [list(integer(1, 9), 2), [1, 2]],
  lines: [
    list(object({ text: text({ max: 20, description: "A text" }), count: optional(integer(1, 9), 1) }), 2),
    [{ text: "a", count: 1 }, { text: "b", count: 2 }],
  ],
};

/** The forms of a schema, by the end of its field's name. */
const FORMS: Readonly<Record<string, (schema: Schema, value: unknown) => Schema>> = {
  Plain: (schema) => schema,
  Optional: (schema) => optional(schema),
  Nullable: (schema) => nullable(schema),
  OptionalNullable: (schema) => optional(nullable(schema)),
  Usual: (schema, value) => optional(schema, value),
  NullByDefault: (schema) => optional(nullable(schema), null),
};

/** What of every form is made for every kind. */
function everyForm<Made>(make: (form: string, schema: Schema, value: unknown) => Made): Record<string, Made> {
  return Object.fromEntries(
    Object.entries(KINDS).flatMap(([kind, [schema, value]]) =>
      Object.keys(FORMS).map((form) => [kind + form, make(form, schema, value)])
    ),
  );
}

const FIELDS: Members = everyForm((form, schema, value) => FORMS[form]?.(schema, value) ?? schema);
/** A value for every field. */
export const FULL: Readonly<Record<string, unknown>> = everyForm((_form, _schema, value) => value);
/** Null for every field that can be null, and no value for those that can lack one. */
export const EMPTY: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.entries(FIELDS).flatMap(([name, schema]) => {
    if (schema.accepts(null)) return [[name, null]];
    return name.endsWith("Plain") ? [[name, FULL[name]]] : [];
  }),
);

/** Items with every kind of schema, plain, optional, nullable, both, and with defaults. */
export const SPECIMENS: Resource = resource({
  name: "specimens",
  item: "Specimen",
  tag: { name: "Specimens", description: "Items with every kind of field" },
  noun: ["a specimen", "specimens"],
  fields: FIELDS,
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: FULL, change: EMPTY },
});

/** A catalogue of specimens. */
export const OF_SPECIMENS: Catalogue = { ...OF_THINGS, resources: [SPECIMENS] };
