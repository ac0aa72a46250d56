import { encodeText } from "./row.ts";

/** KV's limits on one row, in bytes. */
export const LARGEST_KEY = 2_048;
export const LARGEST_VALUE = 65_536;
/** Limits on one atomic operation. They leave room for everything that is not counted here. */
export const MAX_KEY_BYTES = 75_000;
export const MAX_VALUE_BYTES = 600_000;
export const MAX_MUTATIONS = 900;

/**
 * The size of a key in KV, in bytes.
 *
 * @throws {TypeError} if KV has no such keys.
 * @throws {RangeError} if it is too large.
 */
export function sizeOf(key: Deno.KvKey): number {
  if (key.length === 0) throw new TypeError("A key is empty");
  const size = keyBytesOf(key);
  if (size > LARGEST_KEY) throw new RangeError(`A key of ${String(key[0])} is over ${LARGEST_KEY} bytes`);
  return size;
}

/** The size that a key would have in KV, in bytes. */
export function keyBytesOf(key: Deno.KvKey): number {
  return key.reduce<number>((sum, part) => sum + sizeOfPart(part), 0);
}

function sizeOfPart(part: Deno.KvKeyPart): number {
  switch (typeof part) {
    case "string":
      return isPlain(part) ? part.length + 2 : sizeOfPart(encodeText(part));
    case "bigint":
      return part.toString(16).length / 2 + 3;
    case "number":
    case "boolean":
      return 9;
  }
  if (!(part instanceof Uint8Array)) throw new TypeError(`A key has a part of type ${typeof part}`);
  // A byte before it, one after it, and another after each that is zero.
  return part.reduce((sum, byte) => byte === 0 ? sum + 2 : sum + 1, 2);
}

/** The size of a text in UTF-8, in bytes. */
export function bytesOf(text: string): number {
  return isPlain(text) ? text.length : encodeText(text).length;
}

/** Whether all of a text is ASCII without zeros, so that each character takes a byte. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0 || code > 127) return false;
  }
  return true;
}
