/**
 * Value of a row: JSON in UTF-8, which KV stores as it is. Anything but bytes is written in a format of V8's,
 * which takes longer and which older versions of Deno cannot read. Rows of before hold the value itself.
 */
export type JsonValue<T> = Uint8Array<ArrayBuffer> | T;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/**
 * The row's value for what JSON can express.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(decodeJson<number[]>(encodeJson([1, 2])), [1, 2]);
 * ```
 */
export function encodeJson(value: unknown): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(JSON.stringify(value));
}

/** What the row's value stands for. */
export function decodeJson<T>(value: JsonValue<T>): T {
  return value instanceof Uint8Array ? JSON.parse(DECODER.decode(value)) : value;
}
