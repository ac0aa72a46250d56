import { exactInteger } from "./json.ts";
import { type Annotations, Invalid, type JsonSchema, mismatch, type Schema } from "./schema_types.ts";

/** Options of {@linkcode text}. With `max`, a text must have 1 to `max` Unicode code points. */
export interface TextRules extends Annotations {
  readonly max?: number;
  /** Documents show only its source, which their readers take to have the flag `u`. Use no other flag. */
  readonly pattern?: RegExp;
  /** Follows `must` in the message if the text does not match the pattern. By default, it shows the pattern. */
  readonly rule?: string;
}

/** Matches texts without U+0000 in all languages, in linear time. */
const WITHOUT_NULL = String.raw`^[^\x00]*$`;

/**
 * A string without lone surrogates, which RFC 7493 section 2.1 forbids and some clients cannot read, and without U+0000,
 * which some languages and databases cannot store.
 */
export function text(
  { max, pattern, rule = `match ${pattern}`, ...annotations }: TextRules = {},
): Schema<string> {
  const json = { type: "string", ...(max !== undefined && { minLength: 1, maxLength: max }) };
  const isBounded = max !== undefined && !pattern;
  return scalar({
    json: {
      ...json,
      ...(pattern && { pattern: pattern.source }),
      ...(isBounded && { pattern: WITHOUT_NULL }),
      ...annotations,
    },
    // Rows of earlier releases may have texts with U+0000.
    ...(isBounded && { outputJson: { ...json, ...annotations } }),
    faults: [...(max === undefined ? [] : faultsOfMax(max)), ...(pattern ? faultsOfPattern(pattern) : [])],
    maxBytes: bytesOfText(max),
    accepts: (value) => typeof value === "string",
    expected: "be a string",
    brokenRule(value) {
      if (!value.isWellFormed()) return "not contain half a surrogate pair";
      if (max !== undefined && (value === "" || (value.length > max && [...value].length > max))) {
        return `have 1 to ${max} characters`;
      }
      // Unlike `test`, this does not depend on earlier calls if the pattern has the flag `g`.
      if (pattern && value.search(pattern) < 0) return rule;
      return value.includes("\u0000") ? "not contain U+0000" : undefined;
    },
  });
}

/** What is wrong with a maximum number of characters or items. */
export function faultsOfMax(max: number): string[] {
  return Number.isSafeInteger(max) && max > 0
    ? []
    : [`must have a max that is a whole number from 1, not ${max}`];
}

function faultsOfPattern({ source, flags }: RegExp): string[] {
  const [flag] = flags.replace("u", "");
  if (flag !== undefined) {
    return [`must not have a pattern with the flag ${flag}, which documents cannot show`];
  }
  try {
    new RegExp(source, "u");
    return [];
  } catch {
    return [
      "must have a pattern that is valid with the flag u, because readers of documents take it to have that",
    ];
  }
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
    faults: [min, max].every(Number.isSafeInteger) && min <= max
      ? []
      : [`must have bounds that are safe integers, the smaller one first, not ${min} and ${max}`],
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
    faults: values.length > 0 && new Set(values).size === values.length
      ? []
      : ["must be one of at least one value, none of which is there twice"],
    maxBytes: Math.max(...values.map(({ length }) => bytesOfText(length))),
    accepts: (value): value is Value => values.some((known) => known === value),
    expected: `be one of ${values.join(", ")}`,
  });
}

/** A string in a response: one of these, or one that is added later. */
export function extensibleEnum(values: readonly string[], description: string): Schema<string> {
  return text({
    description: `${description}. Others may be added; known are ${values.join(", ")}.`,
    "x-extensible-enum": values,
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

/** A day that exists in the Gregorian calendar (RFC 3339), from the year 1, as text. */
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

/** Hour to second, with up to nine digits after the point, and the offset, at most 14 hours. */
const TIME = /^T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{1,9})?(?:Z|[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00))$/;
const DAY_LENGTH = "2027-01-15".length;

function isDay(text: string): boolean {
  const time = /^(?!0000)\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  // Date.parse() takes 30 February as a day in March.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * A time (RFC 3339), as text, with T and Z in upper case. What many programs cannot read is invalid: leap seconds, years
 * before 1, and offsets of more than 14 hours.
 */
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
interface Scalar<Value>
  extends Pick<Schema<Value>, "json" | "outputJson" | "faults" | "maxBytes" | "accepts"> {
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

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
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
  const { json, outputJson = json } = text({ max, description });
  return { ...schema, json: { ...schema.json, pattern: ASCII_RULES }, outputJson };
}
