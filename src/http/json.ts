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
  if (!INTEGER.test(source)) return NaN;
  const number = Number(source);
  return Number.isSafeInteger(number) ? number : BigInt(source);
}
