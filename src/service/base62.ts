import { randomBytes } from "node:crypto";

/** The digits of base 62. */
export const BASE62: string = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Returns uniformly random base62 characters from the system's generator. */
export function randomBase62(length: number): string {
  const largestUnbiased = 256 - 256 % BASE62.length;
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < largestUnbiased && text.length < length) text += BASE62.charAt(byte % BASE62.length);
    }
  }
  return text;
}
