/** How much a JSON text may hold. */
export interface JsonBounds {
  /** Most objects, arrays and scalars in all; the names of members do not count. */
  readonly values: number;
  /** Most objects and arrays within one another, the outermost included. */
  readonly levels: number;
}

const [TAB, LINE_FEED, RETURN, SPACE, QUOTE, BACKSLASH, COMMA] = [0x09, 0x0a, 0x0d, 0x20, 0x22, 0x5c, 0x2c];
const [OPENING_BRACKET, CLOSING_BRACKET, OPENING_BRACE, CLOSING_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The bound that a JSON text in UTF-8 exceeds, if it does. Counting is much faster than parsing, because it looks at
 * strings and structure alone. If the text is not JSON, the bounds hold for the part before its first error.
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
  // A comma stands before each value of an object or array except the first.
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

/** Where the string that starts at `start` ends: at its closing quote, or else with the text. */
function endOfString(json: Uint8Array, start: number): number {
  for (let index = start + 1; index < json.length; index++) {
    if (json[index] === QUOTE) return index;
    if (json[index] === BACKSLASH) index++;
  }
  return json.length;
}

/**
 * Parses JSON text whose numbers are int64s, each exact: as a number if that is safe, else as a bigint. A number
 * with a fraction or an exponent becomes NaN, and a longer integer one that is not safe.
 *
 * @throws {SyntaxError} when the text is not JSON; {RangeError} when it is nested too deeply.
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

/** The same of text that was stored: a number with a fraction or an exponent stays what it is. */
export function parseStoredJson(text: string): unknown {
  return parseExact(text, Number);
}

function parseExact(text: string, fraction: (source: string) => number): unknown {
  // A reviver is slow, and most texts are as simple as that.
  if (text.length < SHORT && !UNSAFE_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source }) => {
    if (typeof value !== "number" || source === undefined) return value;
    if (INT64.test(source)) return exactInteger(source);
    return INTEGER.test(source) ? value : fraction(source);
  });
}

/** In characters; no shorter text is nested so deeply that the reviver would refuse it. */
const SHORT = 1_000;
/** May also match within a string, to no harm. */
const UNSAFE_NUMBER = /\d{16}|\d[.eE]/;
const INTEGER = /^-?\d+$/;
/** As many digits as an int64 may have: a bigint of a million digits takes 200 ms to make. */
const INT64 = /^-?\d{1,19}$/;

/** The integer that digits stand for: a number if that is safe, else a bigint. */
export function exactInteger(source: string): number | bigint {
  const number = Number(source);
  return Number.isSafeInteger(number) ? number : BigInt(source);
}

/**
 * The JSON text of a value. A bigint is written digit for digit.
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
    // It has a bigint, as few values do.
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
