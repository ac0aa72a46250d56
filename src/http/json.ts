/**
 * Parses JSON text whose numbers are integers, each exact: as a number where that is safe, else as a bigint.
 * A number with a fraction or an exponent, which nothing here takes, becomes NaN.
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
  // A reviver is slow, and most bodies are as simple as that.
  if (text.length < SHORT && !UNSAFE_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(
    text,
    (_key, value, { source }) => typeof value === "number" && source !== undefined ? exact(source) : value,
  );
}

/** In characters; no shorter text is nested so deeply that the reviver would refuse it. */
const SHORT = 1_000;
/** May also match within a string, to no harm. */
const UNSAFE_NUMBER = /\d{16}|\d[.eE]/;
const INTEGER = /^-?\d+$/;

function exact(source: string): number | bigint {
  return INTEGER.test(source) ? exactInteger(source) : NaN;
}

/** The integer that digits stand for: a number where that is safe, else a bigint. */
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
  if (typeof value === "bigint") return `${value}`;
  if (Array.isArray(value)) return `[${value.map(stringifyJson).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${stringifyJson(member)}`).join()}}`;
}
