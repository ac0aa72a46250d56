import { isJsonObject, type JsonObject, parseJson, stringifyJson } from "./json.ts";
import {
  type Annotations,
  type Defaulted,
  Invalid,
  type JsonSchema,
  MAX_FAULTS,
  type Members,
  mismatch,
  type Optional,
  type Parsed,
  type ParsedMembers,
  type Schema,
} from "./schema_types.ts";
import { faultsOfMax } from "./scalars.ts";
import { nearestName, shownName } from "./unknown_names.ts";

/** An array of at most `max` items. `fromStrings` ignores empty strings. */
export function list<Item>(
  item: Schema<Item>,
  max: number,
  annotations: Annotations = {},
): Schema<readonly Item[]> {
  const jsonOf = (items: JsonSchema) => ({ type: "array", items, maxItems: max, ...annotations });
  return {
    json: jsonOf(item.json),
    ...(item.outputJson && { outputJson: jsonOf(item.outputJson) }),
    definitions: item.definitions,
    faults: [...faultsOfMax(max), ...item.faults ?? []],
    maxBytes: max * (item.maxBytes + 1) + 2,
    parse(value, subject, isStrict) {
      if (!Array.isArray(value)) throw mismatch(value, subject, "be an array");
      if (value.length > max) throw new Invalid(`${subject} must have at most ${max} items`);
      return together<readonly Item[]>(
        ...value.map((one, index) => within(index, () => item.parse(one, `${subject}[${index}]`, isStrict))),
      );
    },
    accepts: (value) => Array.isArray(value) && value.every(item.accepts),
    fromStrings: (texts, name) =>
      texts.filter((text) => text !== "").map((text) => item.fromStrings([text], name)),
  };
}

/** A value, or null. */
export function nullable<Value>(schema: Schema<Value>): Schema<Value | null> {
  if (schema.accepts(null)) return schema;
  const { outputJson } = schema;
  return {
    ...schema,
    // Without a name, because its reference could not be null.
    json: orNull(resolved(schema)),
    ...(outputJson && { outputJson: orNull(outputJson) }),
    maxBytes: Math.max(schema.maxBytes, "null".length),
    parse(value, subject, isStrict) {
      if (value === null) return null;
      try {
        return schema.parse(value, subject, isStrict);
      } catch (error) {
        if (value !== undefined || !(error instanceof Invalid)) throw error;
        throw new Invalid(...error.faults.map((fault) => `${fault}, or null`));
      }
    },
    accepts: (value) => value === null || schema.accepts(value),
  };
}

function orNull(json: JsonSchema): JsonSchema {
  return { ...json, type: [String(json.type), "null"], ...(json.enum && { enum: [...json.enum, null] }) };
}

/**
 * An optional field, with a default if `defaultValue` is given.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { integer, text } from "./scalars.ts";
 *
 * const toy = object({ name: text(), price: optional(integer(0, 99), 1) });
 * assertEquals(toy.parse({ name: "Ball" }, "").price, 1);
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

/**
 * A field that clients cannot set. Requests may have it, because clients send back what they read. It is not `readOnly`
 * in documents, because some validators refuse requests with such a field.
 */
export function ignored(schema: Schema): Optional<never> {
  const json = { ...schema.json, description: "Ignored, so that you can send back what you read" };
  const accepts = (value: unknown): value is never => value === undefined || schema.accepts(value);
  return { ...schema, json, parse: () => undefined, accepts, isOptional: true, isIgnored: true };
}

/** An object in a request. */
export function object<Of extends Members>(members: Of, json?: JsonSchema): Schema<ParsedMembers<Of>>;
export function object(members: Members, json: JsonSchema = {}): Schema<JsonObject> {
  const entries = Object.entries(members);
  const namesOf = (isWanted: (schema: Schema) => boolean) =>
    entries.filter(([, schema]) => isWanted(schema)).map(([name]) => name);
  const required = namesOf(isRequired);
  const shown = Object.fromEntries(entries.filter(([, { isHidden = false }]) => !isHidden));
  const jsonOf = (properties: Record<string, JsonSchema>): JsonSchema => ({
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
    ...json,
  });
  const parseMembers = membersParser(members, (object: JsonObject, name) => object[name]);
  return {
    json: jsonOf(mapValues(shown, memberJson)),
    ...(entries.some(([, { outputJson }]) => outputJson) && {
      outputJson: jsonOf(mapValues(shown, (schema) => memberJson(shownOf(schema)))),
    }),
    definitions: Object.assign({}, ...entries.map(([, { definitions }]) => definitions)),
    faults: entries.flatMap(([, { faults = [] }]) => faults),
    ignored: namesOf(({ isIgnored = false }) => isIgnored),
    defaults: mapValues(members, ({ json }) => json.default),
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

/** A schema whose objects always refuse unknown fields. Those that responses have, too, are described as open. */
export function strict<Value>(schema: Schema<Value>): Schema<Value> {
  const closed = (json: JsonSchema) =>
    json.properties && json.additionalProperties === undefined
      ? { ...json, additionalProperties: false }
      : json;
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
export function output<Of extends Members>(members: Of, annotations?: Annotations): Schema<ParsedMembers<Of>>;
export function output(members: Members, annotations: Annotations = {}): Schema<JsonObject> {
  const shown = mapValues(members, (schema) => withoutDefault(shownOf(schema)));
  return object(shown, { ...annotations, additionalProperties: true });
}

/** A schema as responses have it. */
function shownOf({ outputJson, ...schema }: Schema): Schema {
  return { ...schema, json: outputJson ?? schema.json };
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
  const errors: Invalid[] = [];
  attempt(() => schema.parse(value, subject, true), errors);
  return errors.flatMap(({ faults }) => faults);
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
    const errors: Invalid[] = [];
    const parsed: Record<string, unknown> = {};
    for (const [name, schema] of entries) {
      try {
        const value = schema.parse(valueOf(source, name, schema), prefix + name, isStrict);
        if (value !== undefined) parsed[name] = value;
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        errors.push(error.in(name));
      }
    }
    if (errors.length > 0) throw Invalid.all(errors);
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
  const [first] = unknown;
  if (first === undefined) return;
  const settable = Object.keys(members).filter((name) => !members[name]?.isIgnored);
  const faults = unknown.map((name, index) => {
    if (index >= MAX_FAULTS) return prefix;
    const meant = nearestName(name, settable);
    const end = `is unknown${meant === undefined ? "" : `; did you mean ${meant}?`}`;
    return `${prefix}${shownName(name)} ${end}`;
  });
  throw new Invalid(...faults).in(first);
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
  const errors: Invalid[] = [];
  const values = parsers.map((parse) => attempt(parse, errors));
  if (errors.length > 0) throw Invalid.all(errors);
  return values;
}

/** Returns `parse` for a value that has this name or index in another. */
function within<Value>(step: string | number, parse: () => Value): () => Value {
  return () => {
    try {
      return parse();
    } catch (error) {
      throw error instanceof Invalid ? error.in(step) : error;
    }
  };
}

/** Calls `parse`. If it throws Invalid, adds the error to `errors`. */
function attempt<Value>(parse: () => Value, errors: Invalid[]): Value | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    errors.push(error);
    return undefined;
  }
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
