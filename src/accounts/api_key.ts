import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { ApiError } from "../web/mod.ts";
import { ACCESS_ERRORS, BASE62, type Environment, type KeyPrefixes, randomBase62 } from "../service/mod.ts";

/** The challenge in a 401 of this realm (RFC 6750 section 3). */
export function challengeOf(realm: string): string {
  return `Bearer realm="${realm}"`;
}

/** The error for an invalid key. The default message does not say why it is invalid. */
export function invalidApiKey(realm: string, message: string = "The API key is not valid."): ApiError {
  const headers = { "www-authenticate": `${challengeOf(realm)}, error="invalid_token"` };
  return new ApiError(ACCESS_ERRORS.invalid_api_key, message, headers);
}

const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const KEY_LENGTH = RANDOM_LENGTH + CHECKSUM_LENGTH;
const MODES = { production: "live", staging: "test" } as const;

/**
 * The form of a service's API keys: prefix, environment, 32 random base62 characters, and a 6-character checksum.
 *
 * @example
 * ```ts
 * import { assert, assertMatch } from "@std/assert";
 *
 * const keys = new KeyForm({ keyPrefix: "my", formerKeyPrefixes: ["our"] });
 * const key = keys.create("staging");
 * assertMatch(key, /^my_test_/);
 * assert(keys.accepts(key, "staging"));
 * assert(!keys.accepts(key, "production"));
 * assert(!keys.accepts(key.slice(0, -1) + (key.endsWith("0") ? "1" : "0"), "staging"));
 * ```
 */
export class KeyForm {
  /** In words. */
  readonly words: string;
  /** Matches anything in a text that may be a key, with any prefix. */
  readonly secret: RegExp;
  readonly #prefix: string;
  readonly #key: RegExp;

  constructor({ keyPrefix, formerKeyPrefixes }: KeyPrefixes) {
    const prefixes = [keyPrefix, ...formerKeyPrefixes].join("|");
    const [live, test] = [keyStart(keyPrefix, "production"), keyStart(keyPrefix, "staging")];
    this.words = `${test} or ${live} followed by ${KEY_LENGTH} letters and digits`;
    this.secret = new RegExp(`(?:${prefixes})_(?:live|test)_\\w+`, "g");
    this.#prefix = keyPrefix;
    this.#key = new RegExp(`^(?:${prefixes})_(live|test)_[0-9A-Za-z]{${KEY_LENGTH}}$`);
  }

  /** Creates a key. */
  create(environment: Environment): string {
    const body = keyStart(this.#prefix, environment) + randomBase62(RANDOM_LENGTH);
    return body + checksum(body);
  }

  /** A key's environment; undefined if the text does not have the form of a key. */
  environmentOf(text: string): Environment | undefined {
    const [, mode] = this.#key.exec(text) ?? [];
    if (mode === undefined) return undefined;
    return mode === MODES.production ? "production" : "staging";
  }

  /** Whether a text has the form and checksum of a key for this environment. Finds typos without reading KV. */
  accepts(text: string, environment: Environment): boolean {
    if (this.environmentOf(text) !== environment) return false;
    return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
  }
}

/** How keys with this prefix begin, such as `my_test_`. */
export function keyStart(prefix: string, environment: Environment): string {
  return `${prefix}_${MODES[environment]}_`;
}

/** SHA-256 of the key, in hex. The key itself is never stored. */
export function hashApiKey(key: string): string {
  return hash("sha256", key);
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
