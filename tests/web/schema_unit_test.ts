import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  boolean,
  date,
  ignored,
  int64,
  integer,
  Invalid,
  isValid,
  list,
  named,
  nullable,
  object,
  oneOf,
  optional,
  output,
  partial,
  resolved,
  type Schema,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import { parseJson, stringifyJson } from "../../src/web/json.ts";
import { strict } from "../../src/web/objects.ts";
import { nearestName, shownName } from "../../src/web/unknown_names.ts";

const INT64 = "an integer from -9223372036854775808 to 9223372036854775807";
const STATE = oneOf(["new", "lost"]);

/** The faults that `parse` reports for a value, which messages call `value`. */
function faultsOf(schema: Schema, value: unknown): readonly string[] {
  return assertThrows(() => schema.parse(value, "value"), Invalid).faults;
}

/** The value that a schema parses from the texts of a parameter. */
function fromStrings(schema: Schema, ...texts: string[]): unknown {
  return schema.parse(schema.fromStrings(texts, "value"), "value");
}

/** A case for each of these values. */
function each(schema: Schema, values: readonly unknown[], fault: string): [Schema, unknown, string][] {
  return values.map((value) => [schema, value, fault]);
}

Deno.test.each<[schema: Schema, values: readonly unknown[]]>([
  [text({ max: 3 }), ["a", "🐶", "abc", "🐶🐱", "🐶🐱🐭", "   ", "a\u0001", "e\u0301x"]],
  [text({ pattern: /^\d+$/g }), ["1", "12", "123"]],
  [integer(2, 3), [2, 3]],
  [int64(), [0, -1, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)]],
  [int64({ minimum: 1 }), [1]],
  [STATE, ["new", "lost"]],
  [timestamp(), ["2027-01-15T12:00:00Z", "2027-01-15T12:00:00.000+01:00"]],
  [list(integer(1, 2), 2), [[], [1], [1, 2]]],
  [nullable(STATE), [null, "lost"]],
  [optional(STATE), [undefined, "lost"]],
  [optional(nullable(STATE)), [undefined, null, "lost"]],
])("parse() returns valid values of %j unchanged", (schema, values) => {
  for (const value of values) {
    assertEquals(schema.parse(value, "value"), value);
    assertEquals([isValid(schema, value), schema.accepts(value)], [true, true]);
  }
});

Deno.test.each<[schema: Schema, largest: unknown]>([
  [text({ max: 3 }), "\u0000\u0001\u0002"],
  [integer(-5, 9_999), 9_999],
  [int64(), -(2n ** 63n)],
  [boolean(), false],
  [date(), "2027-01-15"],
  [timestamp(), "2027-01-15T12:00:00.123456789+01:00"],
  [list(boolean(), 3), [false, false, false]],
  [nullable(integer(0, 9)), null],
  [object({ name: optional(text({ max: 1 })), isNew: boolean() }), { name: "\u0000", isNew: false }],
])("maxBytes is the size of the largest value, or little more: %j", ({ maxBytes }, largest) => {
  const more = maxBytes - new TextEncoder().encode(stringifyJson(largest)).length;
  assert(more >= 0 && more < 3, `${more}`);
});

Deno.test.each<Schema>([text(), list(text(), 2), nullable(object({ a: optional(text()) }))])(
  "maxBytes is infinite if a text has no maximum: %j",
  (schema) => assertEquals(named("Any", schema).maxBytes, Infinity),
);

Deno.test.each<[schema: Schema, value: unknown, fault: string]>([
  [text(), undefined, "is required and must be a string"],
  ...each(text(), [null, 1n, ["ab"]], "must be a string"),
  ...each(text(), ["a\ud83d", "a\udc36"], "must not contain half a surrogate pair"),
  ...each(text({ max: 3 }), ["a\u0000", "\u0000"], "must not contain U+0000"),
  ...each(text({ max: 3 }), ["", "abcd", "🐶🐱🐭🐹"], "must have 1 to 3 characters"),
  [text({ pattern: /^a+$/, rule: "have nothing but a" }), "ab", "must have nothing but a"],
  [text({ pattern: /^\d+$/ }), "1x", "must match /^\\d+$/"],
  [integer(2, 3), undefined, "is required and must be an integer from 2 to 3"],
  ...each(integer(2, 3), [1, 4, 2n ** 60n, null, true, {}], "must be an integer from 2 to 3"),
  [int64(), undefined, `is required and must be ${INT64}`],
  ...each(int64(), [2n ** 63n, -(2n ** 63n) - 1n, null, true, {}], `must be ${INT64}`),
  [int64({ minimum: 0 }), -1, "must be an integer from 0 to 9223372036854775807"],
  ...[integer(2, 3), int64()].flatMap((schema): [Schema, unknown, string][] => [
    [schema, "2", "must be a number, not a string"],
    [schema, parseJson("2.5"), "must not have a fraction"],
  ]),
  [STATE, undefined, "is required and must be one of new, lost"],
  ...each(STATE, ["broken", "Lost", "constructor", ["lost"], null], "must be one of new, lost"),
  ...each(date(), [20_270_115, "2027-02-30"], "must be a day such as 2027-01-15"),
  ...each(timestamp(), ["2027-01-15", "noon", 7], "must be a time such as 2027-01-15T12:00:00Z"),
  [list(text(), 2), "a", "must be an array"],
  [list(text(), 2), ["a", "b", "c"], "must have at most 2 items"],
  [nullable(STATE), undefined, "is required and must be one of new, lost, or null"],
  [nullable(STATE), 7, "must be one of new, lost"],
  [optional(STATE), null, "must not be null: leave it out"],
  [optional(STATE, "lost"), null, "must not be null: leave it out"],
  [object({}), [], "must be an object"],
])("parse() of %j rejects %j: value %s", (schema, value, fault) => {
  assertEquals(faultsOf(schema, value), [`value ${fault}`]);
  assertEquals(isValid(schema, value), false);
});

Deno.test("parse() reports every fault of an object, its nested objects and its lists", () => {
  const schema = object({
    name: text(),
    tags: list(text({ max: 2 }), 9),
    limits: output({ day: integer(1, 2), minute: integer(1, 2) }),
  });

  assertEquals(faultsOf(schema, { tags: ["a", "", "abc"], limits: { day: 3 } }), [
    "value.name is required and must be a string",
    "value.tags[1] must have 1 to 2 characters",
    "value.tags[2] must have 1 to 2 characters",
    "value.limits.day must be an integer from 1 to 2",
    "value.limits.minute is required and must be an integer from 1 to 2",
  ]);
  assertThrows(() => schema.parse({ tags: [], limits: {} }, ""), Invalid, "name is required");
});

Deno.test("parse() throws Invalid with the path of its first fault, which is a field or an item in it", () => {
  const line = object({ cents: integer(1, 9), tags: optional(list(text({ max: 2 }), 2)) });
  const schema = object({ name: text({ max: 9 }), lines: optional(list(line, 9)), size: optional(line) });
  const fieldOf = (value: unknown) => assertThrows(() => schema.parse(value, "", true), Invalid).field;
  const good = { cents: 1 };

  for (
    const [field, value] of [
      ["name", {}],
      ["name", { name: 1, lines: [{}] }],
      ["lines", { name: "a", lines: 1 }],
      ["lines[2].cents", { name: "a", lines: [good, good, { cents: 0 }], size: {} }],
      ["lines[0].tags[1]", { name: "a", lines: [{ cents: 1, tags: ["a", "abc"] }] }],
      ["size.cents", { name: "a", size: {} }],
      ["size.cent", { name: "a", size: { cents: 1, cent: 1 }, names: 1 }],
      ["a [0].b", { name: "a", "a [0].b": 1, other: 1 }],
      ["lines[0].[0]", { name: "a", lines: [{ cents: 1, "[0]": 1 }] }],
      [undefined, []],
    ] as const
  ) {
    assertEquals([value, fieldOf(value)], [value, field]);
  }
});

Deno.test("parse() of an object drops unknown fields and fills in defaults", () => {
  const members = { name: text(), state: optional(STATE, "new"), note: optional(text()) };
  const sent = JSON.parse('{"name":"Hammer","id":9,"__proto__":{"note":"x"},"constructor":null}');

  const [whole, part] = [object(members), object(partial(members))];

  assertEquals<unknown>(whole.parse(sent, ""), { name: "Hammer", state: "new" });
  assertEquals<unknown>(part.parse({}, ""), {});
  assertEquals<unknown>(part.parse({ state: "lost" }, ""), { state: "lost" });
  for (const inherited of [JSON.parse('{"__proto__":{"name":"Hammer"}}'), { Name: "Hammer" }]) {
    assertEquals(faultsOf(whole, inherited), ["value.name is required and must be a string"]);
  }
});

Deno.test("parse() of an object refuses unknown fields on every level if it is strict, after other faults", () => {
  const item = object({ name: text(), tags: optional(list(text(), 2)) });
  const schema = object({ id: ignored(integer(1, 9)), items: list(item, 9), size: optional(item) });
  const sent = JSON.parse(
    '{"id":"x","Items":1,"__proto__":1,"items":[{"name":1,"tag":1},{"name":"","neme":1}],"size":{"name":"","x":1}}',
  );
  const known = { items: [{ name: "a" }], size: { name: "b" } };
  const parse = (value: unknown) => schema.parse(value, "", true);
  const parseStrict = (value: unknown) => strict(schema).parse(value, "");

  for (const parsed of [parse, parseStrict]) {
    assertEquals<unknown>(parsed(known), known);
    assertEquals<unknown>(parsed({ ...known, id: null }), known);
    assertEquals(assertThrows(() => parsed(sent), Invalid).faults, [
      "The field items[0].name must be a string",
      "The field items[0].tag is unknown; did you mean tags?",
      "The field items[1].neme is unknown; did you mean name?",
      "The field size.x is unknown",
      "The field Items is unknown; did you mean items?",
      "The field __proto__ is unknown",
    ]);
  }
});

Deno.test("accepts() checks types but not bounds, which may have changed since a value was stored", () => {
  const schema = object({ name: text({ max: 1 }), count: integer(1, 2), note: optional(STATE) });

  assertEquals(schema.accepts({ name: "Hammer", count: 99 }), true);
  assertEquals(list(schema, 0).accepts([{ name: "Hammer", count: 99 }]), true);
  for (const value of [{ name: "Hammer" }, { name: 1, count: 1 }, { name: "", count: 1, note: "x" }, null]) {
    assertEquals([schema.accepts(value), list(schema, 1).accepts([value])], [false, false]);
  }
});

Deno.test("fromStrings() reads integers only as plain digits, at most as many as the bounds have", () => {
  const days = integer(2, 30);

  assertEquals(["2", "02", "30"].map((text) => fromStrings(days, text)), [2, 2, 30]);
  for (const wrong of ["", "1", "31", "002", "-2", "2.0", "1e1", " 2", "２", "0x2", "1n"]) {
    assertThrows(() => fromStrings(days, wrong), Invalid, "value must be an integer from 2 to 30");
  }
  assertEquals(["-40", "7", "007"].map((text) => fromStrings(integer(-100, 9), text)), [-40, 7, 7]);
  assertThrows(() => fromStrings(integer(-9, 9), "--7"), Invalid, "value must be an integer from -9 to 9");
  for (const digits of ["0", "-7", "9007199254740993", "-9223372036854775808"]) {
    assertEquals(`${fromStrings(int64(), digits)}`, digits);
  }
  for (const wrong of ["", "1.0", "1e3", "9223372036854775808", "hammer"]) {
    assertThrows(() => fromStrings(int64(), wrong), Invalid, `value must be ${INT64}`);
  }
});

Deno.test("fromStrings() accepts one string, or any number for a list, which skips empty ones", () => {
  for (const schema of [text(), days(), STATE, timestamp(), nullable(STATE), optional(text())]) {
    assertThrows(() => fromStrings(schema, "1", "1"), Invalid, "value must be given at most once");
  }
  assertEquals(fromStrings(list(days(), 9), "2", "3"), [2, 3]);
  assertEquals(fromStrings(list(object({ days: days() }), 9), '{"days":2}'), [{ days: 2 }]);
  assertThrows(() => fromStrings(object({}), "{"), Invalid, "value must be an object in JSON");
  assertEquals(fromStrings(list(text(), 9), ""), []);

  function days(): Schema<number> {
    return integer(2, 30);
  }
});

Deno.test("Schema.json has bounds, describes the defaults of requests, and refers to named schemas", () => {
  const status = named("Status", oneOf(["a", "b"], { description: "State" }));
  const members = { name: text({ max: 9 }), status: optional(status, "a"), note: optional(text()) };
  const usual = (schema: Schema) => object({ some: schema }).json.properties?.some?.description;
  const ref = { $ref: "#/components/schemas/Status" };
  const stored = { type: "string", minLength: 1, maxLength: 9 };
  const name = { ...stored, pattern: String.raw`^[^\x00]*$` };

  assertEquals<unknown>(object(members).json, {
    type: "object",
    required: ["name"],
    properties: { name, status: { ...ref, description: "State; a by default" }, note: { type: "string" } },
  });
  assertEquals<unknown>(output(members).json, {
    type: "object",
    required: ["name", "status"],
    properties: { name: stored, status: ref, note: { type: "string" } },
    additionalProperties: true,
  });
  const lists = { all: optional(nullable(list(text({ max: 9 }), 2))) };
  assertEquals(output(lists).json.properties?.["all"]?.items, stored);
  assertEquals(object(lists).json.properties?.["all"]?.items, name);
  assertEquals<unknown>(object(partial(members)).json, {
    type: "object",
    properties: { name, status: ref, note: { type: "string" } },
  });
  assertEquals(usual(optional(text(), "x")), "x by default");
  assertEquals(usual(optional(boolean(), false)), "false by default");
  assertEquals(usual(optional(int64(), 2n ** 63n - 1n)), "9223372036854775807 by default");
  assertEquals(usual(optional(list(text(), 2), [])), "[] by default");
  assertEquals<unknown>(object({ id: ignored(integer(1, 2)) }).json.properties, {
    id: {
      type: "integer",
      minimum: 1,
      maximum: 2,
      description: "Ignored, so that you can send back what you read",
    },
  });
  const closed = strict(named("Named", object({ name: text() })));
  assertEquals(closed.definitions["Named"]?.additionalProperties, false);
  assertEquals(object(members).definitions, status.definitions);
  assertEquals(resolved(status), { type: "string", enum: ["a", "b"], description: "State" });
  for (
    const schema of [
      nullable(text()),
      nullable(nullable(text())),
      optional(nullable(optional(nullable(text())))),
    ]
  ) {
    assertEquals(schema.json.type, ["string", "null"]);
  }
  assertEquals(nullable(nullable(oneOf(["a"]))).json.enum, ["a", null]);
});

Deno.test.each<[nearest: string | undefined, names: readonly string[]]>([
  ["status", ["staus", "stauts", "Status", "statuses", "state"]],
  ["name", ["nam", "nmae", "names"]],
  ["weightInGrams", ["weight_in_grams", "WEIGHT-IN-GRAMS", "wheightInGrams"]],
  [undefined, ["", "date", "id", "categoryName", "x".repeat(65_536)]],
])("nearestName() is %s for names that resemble it, if any", (nearest, names) => {
  for (const name of names) {
    assertEquals([name, nearestName(name, ["name", "weightInGrams", "status"])], [name, nearest]);
  }
});

Deno.test("nearestName() prefers the name with the fewest differences, and the first of two", () => {
  assertEquals(nearestName("statis", ["status", "stati", "statics"]), "status");
  assertEquals(nearestName("Limit", ["limits", "limit"]), "limit");
});

const SHOWN = [
  ["graceSeconds", "graceSeconds"],
  ["x-y.z_0", "x-y.z_0"],
  ["", '""'],
  ["a b", '"a b"'],
  ["a\nb\u001b[2J\u009b", '"a\\u{a}b\\u{1b}[2J\\u{9b}"'],
  ["a\u202eb\u2066c\u200fd\u061c", '"a\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}"'],
  ["\ud800\u2028\u200b\u{e0041}", '"\\u{d800}\\u{2028}\\u{200b}\\u{e0041}"'],
  ["né🐕", '"né🐕"'],
  ["x".repeat(40), "x".repeat(40)],
  ["x".repeat(41), `"${"x".repeat(40)}…"`],
  ["🐕".repeat(100_000), `"${"🐕".repeat(40)}…"`],
] as const;

Deno.test("shownName() shows at most 40 characters, in quotes unless all are plain, and without controls", () => {
  for (const [name, shown] of SHOWN) assertEquals(shownName(name), shown);
});
