import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { ApiError } from "../web/mod.ts";
import { ACCESS_ERRORS } from "../resource/mod.ts";

/** The challenge in a 401 of this realm (RFC 6750 section 3). */
export function challengeOf(realm: string): string {
  return `Bearer realm="${realm}"`;
}

/** The error for an invalid key. The default message does not say why it is invalid. */
export function invalidApiKey(realm: string, message: string = "The API key is not valid."): ApiError {
  const headers = { "www-authenticate": `${challengeOf(realm)}, error="invalid_token"` };
  return new ApiError(ACCESS_ERRORS.invalid_api_key, message, headers);
}

/** A service's environment. A key from one environment is not valid in the other. */
export type Environment = "production" | "staging";

/** Prefixes of API keys. */
export const KEY_PREFIXES: Readonly<Record<Environment, string>> = {
  production: "as_live_",
  staging: "as_test_",
};
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const KEY_LENGTH = RANDOM_LENGTH + CHECKSUM_LENGTH;
const API_KEY = new RegExp(`^as_(?:live|test)_[0-9A-Za-z]{${KEY_LENGTH}}$`);

/** The format of an API key, in words. */
export const KEY_FORM = `as_test_ or as_live_ followed by ${KEY_LENGTH} letters and digits`;

/**
 * Creates an API key: prefix, 32 random base62 characters, and a 6-character checksum.
 *
 * @example
 * ```ts
 * import { assert } from "@std/assert";
 *
 * const key = createApiKey("staging");
 * assert(isApiKey(key, "staging"));
 * assert(!isApiKey(key, "production"));
 * assert(!isApiKey(key.slice(0, -1) + (key.endsWith("0") ? "1" : "0"), "staging"));
 * ```
 */
export function createApiKey(environment: Environment): string {
  const body = KEY_PREFIXES[environment] + randomBase62(RANDOM_LENGTH);
  return body + checksum(body);
}

/** A key's environment; undefined if the text does not have the format of a key. */
export function environmentOf(text: string): Environment | undefined {
  if (!API_KEY.test(text)) return undefined;
  return text.startsWith(KEY_PREFIXES.production) ? "production" : "staging";
}

/** Whether a text has the format and checksum of a key for this environment. Finds typos without reading KV. */
export function isApiKey(text: string, environment: Environment): boolean {
  if (environmentOf(text) !== environment) return false;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
}

/** SHA-256 of the key, in hex. The key itself is never stored. */
export function hashApiKey(key: string): string {
  return hash("sha256", key);
}

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

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}
