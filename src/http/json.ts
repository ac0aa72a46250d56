/**
 * Parses JSON text with every integer literal as a bigint, so that int64 is exact.
 * Other numbers (with a fraction or an exponent) stay numbers.
 *
 * @throws {SyntaxError} when the text is not JSON; {RangeError} when it is nested too deeply.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const text = '{"categoryId":9007199254740993}';
 * assertEquals(parseJson(text), { categoryId: 9007199254740993n });
 * assertEquals(stringifyJson(parseJson(text)), text);
 * ```
 */
export function parseJson(text: string): unknown {
  return JSON.parse(
    text,
    (_key, value, { source }) => source !== undefined && INTEGER.test(source) ? BigInt(source) : value,
  );
}

const INTEGER = /^-?\d+$/;

/** Writes a value as JSON text, bigints digit for digit as numbers. */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(
    value,
    (_key, item) => typeof item === "bigint" ? JSON.rawJSON(item.toString()) : item,
  );
}

/** What a response has beside its body. */
export interface JsonResponseInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response with JSON text for its body. */
export function jsonResponse(
  text: string | Uint8Array<ArrayBuffer>,
  { status = 200, headers = {} }: JsonResponseInit = {},
): Response {
  // The constructor would make headers ready to send, in vain: more of them follow.
  const response = new Response(text, { status });
  response.headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
