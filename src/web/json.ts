/** A JSON object as received. Its fields are not validated yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a parsed JSON text is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Bounds of a JSON text. */
export interface JsonBounds {
  /** Maximum number of objects, arrays and scalars, not counting the names of fields. */
  readonly values: number;
  /** Maximum depth of nested objects and arrays, including the outermost. */
  readonly levels: number;
}

const [TAB, LINE_FEED, RETURN, SPACE, QUOTE, BACKSLASH, COMMA] = [0x09, 0x0a, 0x0d, 0x20, 0x22, 0x5c, 0x2c];
const [OPENING_BRACKET, CLOSING_BRACKET, OPENING_BRACE, CLOSING_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The bound that a JSON text in UTF-8 exceeds; undefined if none. This is much faster than parsing, because it only
 * scans strings and punctuation. If the text is not JSON, the bounds apply to the part before its first fault.
 */
export function exceededBound(
  json: Uint8Array,
  { values, levels }: JsonBounds,
): keyof JsonBounds | undefined {
  // Each value of an object or array except the first follows a comma.
  let count = 1;
  let level = 0;
  let isEmpty = false;
  for (let index = 0; index < json.length; index++) {
    switch (json[index]) {
      case SPACE:
      case TAB:
      case LINE_FEED:
      case RETURN:
        continue;
      case QUOTE:
        index = endOfString(json, index);
        break;
      case OPENING_BRACE:
      case OPENING_BRACKET:
        if (++level > levels) return "levels";
        isEmpty = true;
        continue;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        level--;
        if (!isEmpty) count++;
        break;
      case COMMA:
        count++;
    }
    if (count > values) return "values";
    isEmpty = false;
  }
  return undefined;
}

/** The index of the closing quote of the string at `start`, or the end of the text. */
function endOfString(json: Uint8Array, start: number): number {
  for (let index = start + 1; index < json.length; index++) {
    if (json[index] === QUOTE) return index;
    if (json[index] === BACKSLASH) index++;
  }
  return json.length;
}

/**
 * Parses JSON with exact integers: a safe one becomes a number, another of up to 19 digits a bigint, a longer one an
 * unsafe number. `1.0` and `1e3` are integers, as in JSON Schema. A number with a fraction becomes NaN.
 *
 * @throws {SyntaxError} if the text is not JSON. The message is the place of the first fault.
 * @throws {RangeError} if it is nested too deeply.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const text = '{"a":7.0,"b":9007199254740993,"c":1.5}';
 * assertEquals(parseJson(text), { a: 7, b: 9007199254740993n, c: NaN });
 * assertThrows(() => parseJson('{"a":True}'), SyntaxError, "line 1, column 6");
 * ```
 */
export function parseJson(text: string): unknown {
  try {
    return parseNumbers(text, exactNumber);
  } catch (error) {
    throw error instanceof SyntaxError ? new SyntaxError(placeOf(error, text)) : error;
  }
}

/** Parses stored JSON with exact integers, and keeps other numbers as they are. */
export function parseStoredJson(text: string): unknown {
  return parseNumbers(text, (source) => INT64.test(source) ? exactInteger(source) : Number(source));
}

function parseNumbers(text: string, numberIn: (source: string) => number | bigint): unknown {
  // Most texts do not need a reviver, which is slow.
  if (text.length < SHORT && !UNSAFE_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source }) => {
    return typeof value === "number" && source !== undefined ? numberIn(source) : value;
  });
}

/** In characters. A shorter text is never nested too deeply for the reviver. */
const SHORT = 1_000;
/** May also match within a string, which is harmless. */
const UNSAFE_NUMBER = /\d{16}|\d[.eE]/;
/** The digits of an int64. A bigint of a million digits would take 200 ms to parse. */
const MAX_DIGITS = 19;
const INT64 = new RegExp(`^-?\\d{1,${MAX_DIGITS}}$`);
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/;

/** The value of a JSON number. It is decided by digits, because a floating-point number loses some. */
function exactNumber(source: string): number | bigint {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = NUMBER.exec(source) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return 0;
  const significant = withoutZeros(digits);
  const zeros = Number(exponent) - fraction.length + digits.length - significant.length;
  if (zeros < 0) return NaN;
  if (significant.length + zeros > MAX_DIGITS) return Number(source);
  return exactInteger(sign + significant + "0".repeat(zeros));
}

/** The text without zeros at its end. A regular expression would take quadratic time. */
function withoutZeros(text: string): string {
  let end = text.length;
  while (text[end - 1] === "0") end--;
  return text.slice(0, end);
}

/** Parses an integer: to a number if it is safe, otherwise to a bigint. */
export function exactInteger(source: string): number | bigint {
  const number = Number(source);
  return Number.isSafeInteger(number) ? number : BigInt(source);
}

/** The place of the first fault in a text that is not JSON. It repeats nothing of the text. */
function placeOf({ message }: SyntaxError, text: string): string {
  const [, position = positionOfToken(message, text)] = / at position (\d+)[^"]*$/.exec(message) ?? [];
  const lines = text.slice(0, Number(position)).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}`;
}

/**
 * The position of a token that V8 reports without one: the end of the longest beginning without this fault. Any other
 * message is about the end of the text.
 */
function positionOfToken(message: string, text: string): number {
  if (!isAboutToken(message)) return text.length;
  let [good, bad] = [0, text.length];
  while (good + 1 < bad) {
    const middle = (good + bad) >> 1;
    if (hasWrongToken(text.slice(0, middle))) bad = middle;
    else good = middle;
  }
  return good;
}

function hasWrongToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return error instanceof SyntaxError && isAboutToken(error.message);
  }
}

function isAboutToken(message: string): boolean {
  return message.endsWith("is not valid JSON");
}

/**
 * Writes a value as JSON, with all digits of a bigint. Indents it by `indent` spaces, unless it has a bigint.
 */
export function stringifyJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch {
    // The value contains a bigint.
    return stringifyParts(value);
  }
}

function stringifyParts(value: unknown): string {
  if (typeof value === "bigint") return `${value}`;
  if (Array.isArray(value)) return `[${value.map(stringifyParts).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${stringifyParts(member)}`).join()}}`;
}
