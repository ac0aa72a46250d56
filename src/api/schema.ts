import { isJsonObject, type JsonObject } from "../http/body.ts";
import { exactInteger } from "../http/json.ts";

/** The part of JSON Schema (draft 2020-12) that schemas describe themselves in. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
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
  readonly examples?: readonly unknown[];
}

/** What a value must be. A schema parses values and describes itself. */
export interface Schema<out Value = unknown> {
  /** Its description: a reference if it has a name. */
  readonly json: JsonSchema;
  /** Descriptions of the schemas that `json` refers to, by name. */
  readonly definitions: Readonly<Record<string, JsonSchema>>;
  /**
   * The value, checked. Messages call it `subject`.
   *
   * @throws {Invalid}
   */
  readonly parse: (value: unknown, subject: string) => Value;
  /** Whether a value has the type. What was stored has, although its bounds may have been others then. */
  readonly accepts: (value: unknown) => value is Value;
  /**
   * The value, not checked yet, that the texts of a query parameter or a command's option stand for.
   *
   * @throws {Invalid}
   */
  readonly fromTexts: (texts: readonly string[], name: string) => unknown;
}

/** What an object may have or not. */
export interface Optional<out Value> extends Schema<Value | undefined> {
  readonly isOptional: true;
}

/** The type of what a schema parses. */
export type Parsed<Of> = Of extends Schema<infer Value> ? Value : never;

/** Schemas by the names of an object's members, or of parameters. */
export type Members = Readonly<Record<string, Schema>>;

type OptionalNames<Of> = { [Name in keyof Of]: Of[Name] extends Optional<unknown> ? Name : never }[keyof Of];

/** The type of an object with these members. */
export type ParsedMembers<Of extends Members> =
  & { readonly [Name in Exclude<keyof Of, OptionalNames<Of>>]: Parsed<Of[Name]> }
  & { readonly [Name in OptionalNames<Of>]?: Exclude<Parsed<Of[Name]>, undefined> };

/** What a schema says of itself beside its bounds. */
type Words = Pick<JsonSchema, "description" | "examples" | "format">;

/** A value is not what its schema wants. There is a phrase for each fault, such as `name must be a string`. */
export class Invalid extends Error {
  override readonly name = "Invalid";
  readonly faults: readonly string[];

  constructor(...faults: readonly string[]) {
    super(faults.join("; "));
    this.faults = faults;
  }
}

/** What a text must be. With `max` it has 1 to so many characters, which are Unicode code points. */
export interface TextRules extends Words {
  readonly max?: number;
  readonly pattern?: RegExp;
  /** How a message says that the text does not match: what it must. */
  readonly rule?: string;
}

/**
 * A string. It never has half a surrogate pair, which RFC 7493 section 2.1 forbids and some clients cannot read.
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
export function text({ max, pattern, rule = "", ...words }: TextRules = {}): Schema<string> {
  const length = max === undefined ? {} : { minLength: 1, maxLength: max };
  const json = { type: "string", ...length, ...(pattern && { pattern: pattern.source }), ...words };
  return scalar(json, isText, (value, subject) => {
    if (!isText(value)) throw expected(subject, "a string", value);
    if (!value.isWellFormed()) throw new Invalid(`${subject} must not contain half a surrogate pair`);
    if (max !== undefined && (value === "" || (value.length > max && [...value].length > max))) {
      throw new Invalid(`${subject} must have 1 to ${max} characters`);
    }
    if (pattern?.test(value) === false) throw new Invalid(`${subject} must ${rule}`);
    return value;
  });
}

/** An integer from `min` to `max`, both safe. As text it has no more digits than `max`. */
export function integer(min: number, max: number, words: Words = {}): Schema<number> {
  return scalar({ type: "integer", minimum: min, maximum: max, ...words }, isInteger, (value, subject) => {
    if (isInteger(value) && value >= min && value <= max) return value;
    throw expectedNumber(subject, `an integer from ${min} to ${max}`, value);
  }, (text) => /^\d+$/.test(text) && text.length <= `${max}`.length ? Number(text) : null);
}

const [INT64_MIN, INT64_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** An int64, exact: a bigint where a number would lose digits. */
export function int64(json: Words & Pick<JsonSchema, "minimum" | "maximum"> = {}): Schema<number | bigint> {
  const { minimum = INT64_MIN, maximum = INT64_MAX } = json;
  return scalar({ type: "integer", format: "int64", ...json }, isInt64, (value, subject) => {
    if (isInt64(value) && value >= minimum && value <= maximum) return value;
    throw expectedNumber(subject, `an integer from ${minimum} to ${maximum}`, value);
  }, (text) => /^-?\d+$/.test(text) ? exactInteger(text) : null);
}

/** One of several strings. */
export function oneOf<const Value extends string>(
  values: readonly Value[],
  words: Words = {},
): Schema<Value> {
  const isOne = (value: unknown): value is Value => values.some((known) => known === value);
  return scalar({ type: "string", enum: values, ...words }, isOne, (value, subject) => {
    if (isOne(value)) return value;
    throw expected(subject, `one of ${values.join(", ")}`, value);
  });
}

/** A time (RFC 3339), as text. */
export function timestamp(words: Words = {}): Schema<string> {
  return scalar({ type: "string", format: "date-time", ...words }, isText, (value, subject) => {
    if (isText(value) && /^\d{4}-\d\d-\d\dT/.test(value) && Date.parse(value) > 0) return value;
    throw expected(subject, "a time such as 2027-01-15T12:00:00Z", value);
  });
}

/** An array of at most `max` items. Empty texts stand for none. */
export function list<Item>(item: Schema<Item>, max: number, words: Words = {}): Schema<readonly Item[]> {
  return {
    json: { type: "array", items: item.json, maxItems: max, ...words },
    definitions: item.definitions,
    parse(value, subject) {
      if (!Array.isArray(value)) throw expected(subject, "an array", value);
      if (value.length > max) throw new Invalid(`${subject} must have at most ${max} items`);
      return together<readonly Item[]>(
        ...value.map((member, index) => () => item.parse(member, `${subject}[${index}]`)),
      );
    },
    accepts: (value) => Array.isArray(value) && value.every(item.accepts),
    fromTexts: (texts, name) =>
      texts.filter((text) => text !== "").map((text) => item.fromTexts([text], name)),
  };
}

/** A value, or null. */
export function nullable<Value>(schema: Schema<Value>): Schema<Value | null> {
  return {
    ...schema,
    json: { ...schema.json, type: [String(schema.json.type), "null"] },
    parse: (value, subject) => value === null ? null : schema.parse(value, subject),
    accepts: (value) => value === null || schema.accepts(value),
  };
}

/**
 * A member that may be left out, or has a default then.
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
export function optional<Value>(schema: Schema<Value>, otherwise: Value): Schema<Value>;
export function optional(schema: Schema, otherwise?: unknown): Schema {
  const parse: Schema["parse"] = (value, subject) =>
    value === undefined ? otherwise : schema.parse(value, subject);
  if (otherwise !== undefined) return { ...schema, parse, json: { ...schema.json, default: otherwise } };
  const accepts = (value: unknown): value is unknown => value === undefined || schema.accepts(value);
  return Object.assign({ ...schema, parse, accepts }, { isOptional: true });
}

/** The same members, each of which may be left out: what a merge patch (RFC 7396) may change. */
export function partial<Of extends Members>(
  members: Of,
): { readonly [Name in keyof Of]: Optional<Exclude<Parsed<Of[Name]>, undefined>> };
export function partial(members: Members): Members {
  return mapValues(members, (schema) => optional({ ...schema, json: withoutDefault(schema) }));
}

/** The object of a request. Members that are not known are ignored. */
export function object<Of extends Members>(members: Of, words?: Words): Schema<ParsedMembers<Of>>;
export function object(members: Members, words: Words = {}): Schema<JsonObject> {
  const required = namesOf(members, (schema) => !isOptional(schema) && schema.json.default === undefined);
  return objectOf(members, { ...(required.length > 0 && { required }), ...words }, (schema) => {
    // Generators of clients take a member that has a default for one that is required.
    const { default: otherwise } = schema.json;
    if (otherwise === undefined) return schema.json;
    return {
      ...withoutDefault(schema),
      description: `${resolved(schema).description}; ${otherwise} if it is left out`,
    };
  });
}

/** The object of an answer. It has no other members, and defaults where the client left something out. */
export function answer<Of extends Members>(members: Of, words?: Words): Schema<ParsedMembers<Of>>;
export function answer(members: Members, words: Words = {}): Schema<JsonObject> {
  const required = namesOf(members, (schema) => !isOptional(schema));
  return objectOf(members, { required, additionalProperties: false, ...words }, withoutDefault);
}

/** Whether a value is what a schema wants. */
export function isValid(schema: Schema, value: unknown): boolean {
  try {
    schema.parse(value, "");
    return true;
  } catch (error) {
    if (error instanceof Invalid) return false;
    throw error;
  }
}

/** The same schema under a name. Descriptions refer to it by that. */
export function named<Value>(name: string, schema: Schema<Value>): Schema<Value> {
  return {
    ...schema,
    json: { $ref: `#/components/schemas/${name}` },
    definitions: { ...schema.definitions, [name]: schema.json },
  };
}

/** The whole description of a schema, also if it has a name. */
export function resolved(
  { json: { $ref = "", ...json }, definitions }: Pick<Schema, "json" | "definitions">,
): JsonSchema {
  return { ...definitions[$ref.split("/").at(-1) ?? ""], ...json };
}

/** Whether there may be no member with this schema. */
export function isOptional(schema: Schema): boolean {
  return "isOptional" in schema;
}

const NOTHING: JsonObject = {};

/** Parses members: `valueOf` gives the value of each. */
export type MembersParser = (
  valueOf: (name: string, schema: Schema) => unknown,
  subject?: string,
) => JsonObject;

/** Makes what parses members and throws Invalid that names every fault; `subjectOf` is what messages call them. */
export function membersParser(
  members: Members,
  subjectOf: (name: string, subject: string) => string,
): MembersParser {
  const entries = Object.entries(members);
  return function parse(valueOf, subject = "") {
    if (entries.length === 0) return NOTHING;
    const parsed = together(
      ...entries.map(([name, schema]) => () =>
        [name, schema.parse(valueOf(name, schema), subjectOf(name, subject))] as const
      ),
    );
    return Object.fromEntries(parsed.filter(([, value]) => value !== undefined));
  };
}

/**
 * What all of these return.
 *
 * @throws {Invalid} with the faults of all of them.
 */
export function together<Values extends readonly unknown[]>(
  ...parsers: { readonly [Index in keyof Values]: () => Values[Index] }
): Values;
export function together(...parsers: readonly (() => unknown)[]): readonly unknown[] {
  const faults: string[] = [];
  const values = parsers.map((parse) => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      return void faults.push(...error.faults);
    }
  });
  if (faults.length > 0) throw new Invalid(...faults);
  return values;
}

function scalar<Value>(
  json: JsonSchema,
  accepts: Schema<Value>["accepts"],
  parse: Schema<Value>["parse"],
  fromText: (text: string) => unknown = (text) => text,
): Schema<Value> {
  return {
    json,
    definitions: {},
    parse,
    accepts,
    fromTexts([text = "", ...more], name) {
      if (more.length > 0) throw new Invalid(`${name} must be given at most once`);
      return fromText(text);
    },
  };
}

function objectOf(
  members: Members,
  json: JsonSchema,
  describe: (schema: Schema) => JsonSchema,
): Schema<JsonObject> {
  const parse = membersParser(members, (name, subject) => subject === "" ? name : `${subject}.${name}`);
  return {
    json: { type: "object", properties: mapValues(members, describe), ...json },
    definitions: Object.assign({}, ...Object.values(members).map(({ definitions }) => definitions)),
    parse(value, subject) {
      if (!isJsonObject(value)) throw expected(subject, "an object", value);
      return parse((name) => value[name], subject);
    },
    accepts: (value): value is JsonObject =>
      isJsonObject(value) && Object.entries(members).every(([name, { accepts }]) => accepts(value[name])),
    fromTexts: ([text]) => text,
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isInt64(value: unknown): value is number | bigint {
  return isInteger(value) || (typeof value === "bigint" && value >= INT64_MIN && value <= INT64_MAX);
}

function withoutDefault({ json: { default: _, ...json } }: Schema): JsonSchema {
  return json;
}

function namesOf(members: Members, isMeant: (schema: Schema) => boolean): string[] {
  return Object.entries(members).filter(([, schema]) => isMeant(schema)).map(([name]) => name);
}

function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

function expected(subject: string, what: string, value: unknown): Invalid {
  return new Invalid(`${subject} ${value === undefined ? "is required and must" : "must"} be ${what}`);
}

function expectedNumber(subject: string, what: string, value: unknown): Invalid {
  if (typeof value === "string") return new Invalid(`${subject} must be a number, not a string`);
  if (Number.isNaN(value)) return new Invalid(`${subject} must be written without fraction or exponent`);
  return expected(subject, what, value);
}
