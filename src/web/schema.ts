/**
 * Schemas of JSON and of texts: each parses a value, names every fault, and describes itself in JSON Schema.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const toy = object({ name: text({ max: 20 }), price: optional(integer(0, 99), 1) });
 * assertEquals(toy.parse({ name: "Ball" }, ""), { name: "Ball", price: 1 });
 * assertThrows(() => toy.parse({ price: 100 }, ""), Invalid, "name is required");
 * ```
 *
 * @module
 */
import { isJsonObject, type JsonObject } from "./body.ts";
import { exactInteger, parseJson, stringifyJson } from "./json.ts";
import { nearestName, shownName } from "./unknown_names.ts";

export { isJsonObject, type JsonObject } from "./body.ts";
export { parseJson, parseStoredJson, stringifyJson } from "./json.ts";
export { shownName } from "./unknown_names.ts";

/** The part of JSON Schema (draft 2020-12) that describes schemas. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  /** The known values of a string that can have others. */
  readonly "x-extensible-enum"?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean;
  readonly readOnly?: true;
  readonly examples?: readonly unknown[];
}

/** Parses and describes values. */
export interface Schema<out Value = unknown> {
  /** Its description. A named schema has a reference instead. */
  readonly json: JsonSchema;
  /** Its description in responses, if its rules have changed and stored values may break them. */
  readonly answerJson?: JsonSchema;
  /** Descriptions of the schemas that `json` refers to, by name. */
  readonly definitions: Readonly<Record<string, JsonSchema>>;
  /** Whether documents mark it as a parameter that the original interface does not have. */
  readonly isExtension?: true;
  /** Maximum size of a value as JSON, in bytes; Infinity if it has no bound. */
  readonly maxBytes: number;
  /**
   * Validates a value, which messages call `subject`; if that is empty, they name only its fields. Unknown fields of
   * objects are refused if `isStrict`, else ignored.
   *
   * @throws {Invalid}
   */
  readonly parse: (value: unknown, subject: string, isStrict?: boolean) => Value;
  /** Whether a value has the type. Ignores bounds, because they may have changed since the value was stored. */
  readonly accepts: (value: unknown) => value is Value;
  /**
   * Converts the strings given for a query parameter or a command's option to a value that `parse` can validate.
   *
   * @throws {Invalid}
   */
  readonly fromStrings: (texts: readonly string[], name: string) => unknown;
}

/** The schema of an optional field. */
export interface Optional<out Value> extends Schema<Value | undefined> {
  readonly isOptional: true;
}

/** The schema of a field with a default. */
export interface Defaulted<out Value> extends Schema<Value> {
  readonly defaultValue: Value;
}

/** The type of a schema's values. */
export type Parsed<Of> = Of extends Schema<infer Value> ? Value : never;

/** Schemas by the names of an object's fields, or of parameters. */
export type Members = Readonly<Record<string, Schema>>;

type OptionalNames<Of> = { [Name in keyof Of]: Of[Name] extends Optional<unknown> ? Name : never }[keyof Of];

/** The type of an object with these fields. */
export type ParsedMembers<Of extends Members> =
  & { readonly [Name in Exclude<keyof Of, OptionalNames<Of>>]: Parsed<Of[Name]> }
  & { readonly [Name in OptionalNames<Of>]?: Exclude<Parsed<Of[Name]>, undefined> };

type DefaultedNames<Of> = {
  [Name in keyof Of]: Of[Name] extends Defaulted<unknown> ? Name : never;
}[keyof Of];

/** The type of an object with these fields as clients send it: those with a default may be missing. */
export type SentMembers<Of extends Members> =
  & Omit<ParsedMembers<Of>, DefaultedNames<Of>>
  & { readonly [Name in DefaultedNames<Of>]?: Parsed<Of[Name]> };

/** The documentation of a schema. */
type Annotations = Pick<JsonSchema, "description" | "examples" | "format" | "x-extensible-enum">;

/** Maximum number of faults that a message shows. */
export const MAX_FAULTS = 5;

/** A phrase, such as `name must be a string`; a function if it repeats a name of the client, without what matches. */
export type Fault = string | ((secret?: RegExp) => string);

/** A value does not match its schema. */
export class Invalid extends Error {
  override readonly name = "Invalid";
  readonly faults: readonly Fault[];

  constructor(...faults: readonly Fault[]) {
    super(faults.map((fault) => phraseOf(fault)).join("; "));
    this.faults = faults;
  }
}

/** The phrase of a fault, without what matches `secret` in names that a client has sent. */
export function phraseOf(fault: Fault, secret?: RegExp): string {
  return typeof fault === "string" ? fault : fault(secret);
}

/** Options of {@linkcode text}. With `max`, a text must have 1 to `max` Unicode code points. */
export interface TextRules extends Annotations {
  readonly max?: number;
  /** Documents show only its source, which their readers take to have the flag `u`. Use no other flag. */
  readonly pattern?: RegExp;
  /** Follows `must` in the message if the text does not match the pattern. By default, it shows the pattern. */
  readonly rule?: string;
}

/**
 * A string without lone surrogates, which RFC 7493 section 2.1 forbids and some clients cannot read.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const name = text({ max: 3 });
 * assertEquals(name.parse("Rex", "name"), "Rex");
 * assertThrows(() => name.parse("", "name"), Invalid, "name must have 1 to 3 characters");
 * ```
 */
export function text(
  { max, pattern, rule = `match ${pattern}`, ...annotations }: TextRules = {},
): Schema<string> {
  const length = max === undefined ? {} : { minLength: 1, maxLength: max };
  return scalar({
    json: { type: "string", ...length, ...(pattern && { pattern: pattern.source }), ...annotations },
    maxBytes: bytesOfText(max),
    accepts: (value) => typeof value === "string",
    expected: "be a string",
    brokenRule(value) {
      if (!value.isWellFormed()) return "not contain half a surrogate pair";
      if (max !== undefined && (value === "" || (value.length > max && [...value].length > max))) {
        return `have 1 to ${max} characters`;
      }
      // Unlike `test`, this does not depend on earlier calls if the pattern has the flag `g`.
      return pattern && value.search(pattern) < 0 ? rule : undefined;
    },
  });
}

const INT32_MAX = 2 ** 31 - 1;

/**
 * An integer from `min` to `max`, both safe integers. As text, it may not have more digits than the longer of them. If
 * it may need more than 32 bits, documents say int64.
 */
export function integer(min: number, max: number, annotations: Annotations = {}): Schema<number> {
  const expected = `be an integer from ${min} to ${max}`;
  const length = Math.max(...[min, max].map((bound) => `${Math.abs(bound)}`.length));
  const digits = new RegExp(`^${min < 0 ? "-?" : ""}\\d{1,${length}}$`);
  return scalar({
    json: {
      type: "integer",
      ...(Math.max(-min, max) > INT32_MAX && { format: "int64" }),
      minimum: min,
      maximum: max,
      ...annotations,
    },
    maxBytes: length + 1,
    accepts: isInteger,
    expected,
    brokenRule: (value) => value < min || value > max ? expected : undefined,
    fromText: (text) => digits.test(text) ? Number(text) : undefined,
  });
}

const [INT64_MIN, INT64_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** An exact int64: a bigint if a number would lose digits. */
export function int64(json: Annotations & Pick<JsonSchema, "minimum"> = {}): Schema<number | bigint> {
  const { minimum = INT64_MIN } = json;
  const expected = `be an integer from ${minimum} to ${INT64_MAX}`;
  return scalar({
    json: { type: "integer", format: "int64", ...json },
    maxBytes: 20,
    accepts: (value): value is number | bigint =>
      isInteger(value) || (typeof value === "bigint" && value >= INT64_MIN && value <= INT64_MAX),
    expected,
    brokenRule: (value) => value < minimum ? expected : undefined,
    fromText: (text) => /^-?\d+$/.test(text) ? exactInteger(text) : undefined,
  });
}

/** One of several strings. */
export function oneOf<const Value extends string>(
  values: readonly Value[],
  annotations: Annotations = {},
): Schema<Value> {
  return scalar({
    json: { type: "string", enum: values, ...annotations },
    maxBytes: Math.max(...values.map(({ length }) => bytesOfText(length))),
    accepts: (value): value is Value => values.some((known) => known === value),
    expected: `be one of ${values.join(", ")}`,
  });
}

/** True or false; as text, `true` or `false`. */
export function boolean(annotations: Annotations = {}): Schema<boolean> {
  return scalar({
    json: { type: "boolean", ...annotations },
    maxBytes: 5,
    accepts: (value) => typeof value === "boolean",
    expected: "be true or false",
    fromText: (text) => text === "true" || (text === "false" ? false : text),
  });
}

/** A day that exists in the Gregorian calendar (RFC 3339), as text. */
export function date(annotations: Annotations = {}): Schema<string> {
  const expected = "be a day such as 2027-01-15";
  return scalar({
    json: { type: "string", format: "date", ...annotations },
    maxBytes: '"2027-01-15"'.length,
    accepts: (value) => typeof value === "string",
    expected,
    brokenRule: (value) => isDay(value) ? undefined : expected,
  });
}

/** Hour to second, with up to nine digits after the point, and the offset. */
const TIME = /^T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
const DAY_LENGTH = "2027-01-15".length;

function isDay(text: string): boolean {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  // Date.parse() takes 30 February as a day in March.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** A time (RFC 3339), as text. Leap seconds, which most programs cannot read, are invalid. */
export function timestamp(annotations: Annotations = {}): Schema<string> {
  const expected = "be a time such as 2027-01-15T12:00:00Z";
  return scalar({
    json: { type: "string", format: "date-time", ...annotations },
    maxBytes: '"2027-01-15T12:00:00.123456789+01:00"'.length,
    accepts: (value) => typeof value === "string",
    expected,
    brokenRule(value) {
      return isDay(value.slice(0, DAY_LENGTH)) && TIME.test(value.slice(DAY_LENGTH)) ? undefined : expected;
    },
  });
}

/** An array of at most `max` items. `fromStrings` ignores empty strings. */
export function list<Item>(
  item: Schema<Item>,
  max: number,
  annotations: Annotations = {},
): Schema<readonly Item[]> {
  return {
    json: { type: "array", items: item.json, maxItems: max, ...annotations },
    definitions: item.definitions,
    maxBytes: max * (item.maxBytes + 1) + 2,
    parse(value, subject, isStrict) {
      if (!Array.isArray(value)) throw mismatch(value, subject, "be an array");
      if (value.length > max) throw new Invalid(`${subject} must have at most ${max} items`);
      return together<readonly Item[]>(
        ...value.map((one, index) => () => item.parse(one, `${subject}[${index}]`, isStrict)),
      );
    },
    accepts: (value) => Array.isArray(value) && value.every(item.accepts),
    fromStrings: (texts, name) =>
      texts.filter((text) => text !== "").map((text) => item.fromStrings([text], name)),
  };
}

/** A value, or null. */
export function nullable<Value>(schema: Schema<Value>): Schema<Value | null> {
  // Without a name, because its reference could not be null.
  const json = resolved(schema);
  return {
    ...schema,
    json: {
      ...json,
      type: [String(json.type), "null"],
      ...(json.enum && { enum: [...json.enum, null] }),
    },
    maxBytes: Math.max(schema.maxBytes, "null".length),
    parse: (value, subject, isStrict) => value === null ? null : schema.parse(value, subject, isStrict),
    accepts: (value) => value === null || schema.accepts(value),
  };
}

/**
 * An optional field, with a default if `defaultValue` is given.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const newPet = object({ name: text(), status: optional(oneOf(["available", "sold"]), "available") });
 * assertEquals(newPet.parse({ name: "Rex" }, "").status, "available");
 * ```
 */
export function optional<Value>(schema: Schema<Value>): Optional<Value>;
export function optional<Value>(schema: Schema<Value>, defaultValue: NoInfer<Value>): Defaulted<Value>;
export function optional(schema: Schema, defaultValue?: unknown): Schema {
  const parse: Schema["parse"] = (value, subject, isStrict) => {
    if (value === undefined) return defaultValue;
    if (value === null && !schema.accepts(null)) {
      throw new Invalid(`${subject} must not be null: leave it out`);
    }
    return schema.parse(value, subject, isStrict);
  };
  if (defaultValue !== undefined) {
    const json = { ...schema.json, default: defaultValue };
    return Object.assign({ ...schema, parse, json }, { defaultValue });
  }
  const accepts = (value: unknown): value is unknown => value === undefined || schema.accepts(value);
  return Object.assign({ ...schema, parse, accepts }, { isOptional: true });
}

/** Makes all fields optional. */
export function partial<Of extends Members>(
  members: Of,
): { readonly [Name in keyof Of]: Optional<Exclude<Parsed<Of[Name]>, undefined>> };
export function partial(members: Members): Members {
  return mapValues(members, (schema) => optional(withoutDefault(schema)));
}

/** The fields of a merge patch (RFC 7396). Null removes those that are optional and have no default. */
export function mergePatch(members: Members): Members {
  return mapValues(members, (schema) => {
    const sent = withoutDefault(schema);
    return optional(isRemovable(schema) ? nullable(sent) : sent);
  });
}

/** Whether objects may lack a field of this schema, even after defaults have been filled in. */
export function isRemovable(schema: Schema): boolean {
  return "isOptional" in schema;
}

/** A field that clients cannot set. Requests may have it, because clients send back what they read. It is ignored. */
export function readOnly(schema: Schema): Optional<never> {
  const json = { ...schema.json, readOnly: true } as const;
  const accepts = (value: unknown): value is never => value === undefined || schema.accepts(value);
  return { ...schema, json, parse: () => undefined, accepts, isOptional: true };
}

/** An object in a request. */
export function object<Of extends Members>(members: Of, json?: JsonSchema): Schema<ParsedMembers<Of>>;
export function object(members: Members, json: JsonSchema = {}): Schema<JsonObject> {
  const entries = Object.entries(members);
  const required = entries.filter(([, schema]) => isRequired(schema)).map(([name]) => name);
  const parseMembers = membersParser(members, (object: JsonObject, name) => object[name]);
  return {
    json: {
      type: "object",
      properties: mapValues(members, memberJson),
      ...(required.length > 0 && { required }),
      ...json,
    },
    definitions: Object.assign({}, ...entries.map(([, { definitions }]) => definitions)),
    maxBytes: entries.reduce((sum, [name, { maxBytes }]) => sum + name.length + 4 + maxBytes, 2),
    parse(value, subject, isStrict) {
      if (!isJsonObject(value)) throw mismatch(value, subject, "be an object");
      const prefix = subject === "" ? "The field " : `${subject}.`;
      const [parsed] = together(
        () => parseMembers(value, prefix, isStrict),
        () => isStrict && requireKnown(Object.keys(value), members, prefix),
      );
      return parsed;
    },
    accepts: (value): value is JsonObject =>
      isJsonObject(value) && entries.every(([name, { accepts }]) => accepts(value[name])),
    fromStrings([text = ""], name) {
      try {
        return parseJson(text);
      } catch {
        throw new Invalid(`${name} must be an object in JSON`);
      }
    },
  };
}

/** A schema whose objects always refuse unknown fields. */
export function strict<Value>(schema: Schema<Value>): Schema<Value> {
  const closed = (json: JsonSchema) => json.properties ? { ...json, additionalProperties: false } : json;
  return {
    ...schema,
    json: closed(schema.json),
    definitions: mapValues(schema.definitions, closed),
    parse: (value, subject) => schema.parse(value, subject, true),
  };
}

/** Describes a field. Its default is in the description, because generated clients require fields with a `default`. */
function memberJson(schema: Schema): JsonSchema {
  const { default: defaultValue, ...json } = schema.json;
  if (defaultValue === undefined) return json;
  const { description } = resolved(schema);
  const usual = `${typeof defaultValue === "string" ? defaultValue : stringifyJson(defaultValue)} by default`;
  return { ...json, description: description ? `${description}; ${usual}` : usual };
}

/** An object in a response. It may get further fields, and its fields have no defaults and no outdated rules. */
export function answer<Of extends Members>(members: Of, annotations?: Annotations): Schema<ParsedMembers<Of>>;
export function answer(members: Members, annotations: Annotations = {}): Schema<JsonObject> {
  const shown = mapValues(
    members,
    (schema) => withoutDefault({ ...schema, json: schema.answerJson ?? schema.json }),
  );
  return object(shown, annotations);
}

/** Gives a schema a name, so that descriptions refer to it. */
export function named<Value>(name: string, schema: Schema<Value>): Schema<Value> {
  return {
    ...schema,
    json: { $ref: `#/components/schemas/${name}` },
    definitions: { ...schema.definitions, [name]: schema.json },
  };
}

/** The description of a schema. If the schema is named, its reference is resolved. */
export function resolved(
  { json: { $ref = "", ...json }, definitions }: Pick<Schema, "json" | "definitions">,
): JsonSchema {
  return { ...definitions[$ref.split("/").at(-1) ?? ""], ...json };
}

/** Whether requests must have a value for this schema. */
export function isRequired(schema: Schema): boolean {
  return !isRemovable(schema) && schema.json.default === undefined;
}

/** What is wrong with a value, which the phrases call `subject`; empty if it matches the schema. */
export function faultsIn(schema: Schema, value: unknown, subject = ""): string[] {
  const faults: Fault[] = [];
  attempt(() => schema.parse(value, subject, true), faults);
  return faults.map((fault) => phraseOf(fault));
}

/** Whether a value matches a schema. */
export function isValid(schema: Schema, value: unknown): boolean {
  return faultsIn(schema, value).length === 0;
}

/**
 * Returns a parser for fields. `valueOf` returns each field's value, and messages put `prefix` before its name. The
 * parser throws Invalid with the faults of all fields.
 */
export function membersParser<Source>(
  members: Members,
  valueOf: (source: Source, name: string, schema: Schema) => unknown,
): (source: Source, prefix?: string, isStrict?: boolean) => JsonObject {
  const entries = Object.entries(members);
  return function parseMembers(source, prefix = "", isStrict = false) {
    const faults: Fault[] = [];
    const parsed: Record<string, unknown> = {};
    for (const [name, schema] of entries) {
      const value = attempt(
        () => schema.parse(valueOf(source, name, schema), prefix + name, isStrict),
        faults,
      );
      if (value !== undefined) parsed[name] = value;
    }
    if (faults.length > 0) throw new Invalid(...faults);
    return parsed;
  };
}

/**
 * Requires that all names are those of members. Messages put `prefix` before an unknown one.
 *
 * @throws {Invalid}
 */
export function requireKnown(given: Iterable<string>, members: Members, prefix: string): void {
  const unknown = [...new Set(given)].filter((name) => !Object.hasOwn(members, name));
  if (unknown.length === 0) return;
  const settable = Object.keys(members).filter((name) => !members[name]?.json.readOnly);
  throw new Invalid(...unknown.map((name, index) => {
    if (index >= MAX_FAULTS) return prefix;
    const meant = nearestName(name, settable);
    const end = `is unknown${meant === undefined ? "" : `; did you mean ${meant}?`}`;
    return (secret?: RegExp) => `${prefix}${shownName(name, secret)} ${end}`;
  }));
}

/**
 * Calls all parsers, and returns their results.
 *
 * @throws {Invalid} with the faults of all parsers.
 */
export function together<Values extends readonly unknown[]>(
  ...parsers: { readonly [Index in keyof Values]: () => Values[Index] }
): Values;
export function together(...parsers: readonly (() => unknown)[]): readonly unknown[] {
  const faults: Fault[] = [];
  const values = parsers.map((parse) => attempt(parse, faults));
  if (faults.length > 0) throw new Invalid(...faults);
  return values;
}

/** Calls `parse`. If it throws Invalid, adds its faults to `faults`. */
function attempt<Value>(parse: () => Value, faults: Fault[]): Value | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    faults.push(...error.faults);
    return undefined;
  }
}

interface Scalar<Value> extends Pick<Schema<Value>, "json" | "maxBytes" | "accepts"> {
  /** Follows `must` in the message for a value of the wrong type, such as `be a string`. */
  readonly expected: string;
  /** Returns the rule that a value breaks, such as `have 1 to 3 characters`; undefined if it is valid. */
  readonly brokenRule?: (value: Value) => string | undefined;
  /** Returns undefined for a text of the wrong type. */
  readonly fromText?: (text: string) => unknown;
}

function scalar<Value>(
  { expected, brokenRule = () => undefined, fromText = (text) => text, ...scalar }: Scalar<Value>,
): Schema<Value> {
  const { json, accepts } = scalar;
  return {
    ...scalar,
    definitions: {},
    parse(value, subject) {
      if (!accepts(value)) throw mismatch(value, subject, expected, json.type);
      const rule = brokenRule(value);
      if (rule !== undefined) throw new Invalid(`${subject} must ${rule}`);
      return value;
    },
    fromStrings([text = "", ...more], name) {
      if (more.length > 0) throw new Invalid(`${name} must be given at most once`);
      const value = fromText(text);
      if (value === undefined) throw new Invalid(`${name} must ${expected}`);
      return value;
    },
  };
}

/** The maximum size of a text as JSON, which has six bytes for a control character. */
function bytesOfText(characters: number = Infinity): number {
  return 6 * characters + 2;
}

/** The error for a missing value or one of the wrong type. */
function mismatch(value: unknown, subject: string, expected: string, type?: JsonSchema["type"]): Invalid {
  if (value === undefined) return new Invalid(`${subject} is required and must ${expected}`);
  if (type !== "integer") return new Invalid(`${subject} must ${expected}`);
  if (typeof value === "string") return new Invalid(`${subject} must be a number, not a string`);
  if (Number.isNaN(value)) return new Invalid(`${subject} must not have a fraction`);
  return new Invalid(`${subject} must ${expected}`);
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** The schema of a field whose default, if it has one, does not apply. */
export function withoutDefault<Value>(schema: Schema<Value>): Schema<Value> {
  const { default: _, ...json } = schema.json;
  return { ...schema, json };
}

function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** Control characters, which could disrupt a terminal: a Unicode property. */
const CONTROLS = "Cc";

/** Characters that change the direction of the text around them: a Unicode property. */
export const BIDI_CONTROLS = "Bidi_Control";

/** What the rules for names mean in ASCII. All languages can read this pattern, and it takes linear time. */
const ASCII_RULES = String.raw`^ *[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$`;

/**
 * A name of at most `max` characters, with at least one that is not whitespace, and without control characters or any
 * that have the Unicode properties `forbidden`.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const name = nameText(5, "The item's name");
 * assertEquals(name.parse("Rex", "name"), "Rex");
 * assertThrows(() => name.parse("R\n", "name"), Error, "no control characters (Unicode Cc)");
 * ```
 */
export function nameText(max: number, description: string, ...forbidden: readonly string[]): Schema<string> {
  const properties = [CONTROLS, ...forbidden];
  const ranges = properties.map((property) => `\\p{${property}}`).join("");
  const rule = `have a character other than whitespace, and no control characters (Unicode ${
    properties.join(" and ")
  })`;
  const schema = text({
    max,
    description:
      `${description}, stored as sent. It must ${rule} or lone surrogates; the pattern shows what this ` +
      "means in ASCII. Its length is counted in Unicode code points.",
    // White space, then one other character, then the rest. This pattern never backtracks.
    pattern: new RegExp(String.raw`^[^${ranges}\S]*[^${ranges}\s][^${ranges}]*$`, "u"),
    rule,
  });
  const answerJson = text({ max, description }).json;
  return { ...schema, json: { ...schema.json, pattern: ASCII_RULES }, answerJson };
}
