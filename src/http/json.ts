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
 * scans strings and punctuation. If the text is not JSON, the bounds apply to the part before its first error.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const json = new TextEncoder().encode('{"a":[1,"2,3",{}]}');
 * assertEquals(exceededBound(json, { values: 5, levels: 3 }), undefined);
 * assertEquals(exceededBound(json, { values: 4, levels: 3 }), "values");
 * assertEquals(exceededBound(json, { values: 5, levels: 2 }), "levels");
 * ```
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
 * Parses JSON with exact int64s: a safe integer becomes a number, any other int64 a bigint. A number with a fraction or
 * an exponent becomes NaN. An integer with more digits than an int64 becomes an unsafe number.
 *
 * @throws {SyntaxError} if the text is not JSON.
 * @throws {RangeError} if it is nested too deeply.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const text = '{"a":7,"b":9007199254740993,"c":1.5}';
 * assertEquals(parseJson(text), { a: 7, b: 9007199254740993n, c: NaN });
 * ```
 */
export function parseJson(text: string): unknown {
  return parseExact(text, () => NaN);
}

/** Parses stored JSON like `parseJson`, but keeps numbers with a fraction or exponent. */
export function parseStoredJson(text: string): unknown {
  return parseExact(text, Number);
}

function parseExact(text: string, fraction: (source: string) => number): unknown {
  // Most texts do not need a reviver, which is slow.
  if (text.length < SHORT && !UNSAFE_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source }) => {
    if (typeof value !== "number" || source === undefined) return value;
    if (INT64.test(source)) return exactInteger(source);
    return INTEGER.test(source) ? value : fraction(source);
  });
}

/** In characters. A shorter text is never nested too deeply for the reviver. */
const SHORT = 1_000;
/** May also match within a string, which is harmless. */
const UNSAFE_NUMBER = /\d{16}|\d[.eE]/;
const INTEGER = /^-?\d+$/;
/** An integer with at most as many digits as an int64. A bigint of a million digits would take 200 ms to parse. */
const INT64 = /^-?\d{1,19}$/;

/** Parses an integer: to a number if it is safe, otherwise to a bigint. */
export function exactInteger(source: string): number | bigint {
  const number = Number(source);
  return Number.isSafeInteger(number) ? number : BigInt(source);
}

/**
 * Writes a value as JSON, with all digits of a bigint.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(stringifyJson({ id: 9007199254740993n, tags: ["a"] }), '{"id":9007199254740993,"tags":["a"]}');
 * ```
 */
export function stringifyJson(value: unknown): string {
  try {
    return JSON.stringify(value);
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
