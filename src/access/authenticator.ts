import { problemResponse } from "../http/error.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import type { KeyStore } from "./key_store.ts";
import type { Claim } from "./limiter.ts";
import { type Environment, hashSecret, isSecret } from "./secret.ts";

const SCHEME = "Bearer ";
const BEARER = /^Bearer +([^\s]+) *$/i;
const CHALLENGE = 'Bearer realm="animal-store"';
const MISSING = problemResponse({
  code: "missing_api_key",
  message: "Send your API key as 'Authorization: Bearer <API_KEY>'.",
  headers: { "www-authenticate": CHALLENGE },
});
const INVALID = problemResponse({
  code: "invalid_api_key",
  message: "The API key is not valid.",
  headers: { "www-authenticate": `${CHALLENGE}, error="invalid_token"` },
});
const MAX_CACHED_CLAIMS = 10_000;

/** Tells which key a request claims to hold, by its bearer credential (RFC 6750 section 2.1). */
export class Authenticator {
  readonly #keys: KeyStore;
  readonly #environment: Environment;
  /** By Authorization value. A secret belongs to its key for ever, so entries never go stale. */
  readonly #claims: BoundedMap<string, Claim> = new BoundedMap(MAX_CACHED_CLAIMS);

  constructor(keys: KeyStore, environment: Environment) {
    this.#keys = keys;
    this.#environment = environment;
  }

  /**
   * The key that the Authorization header's secret belongs to, valid or not; undefined when there is none.
   * Known at once for a secret that came before.
   *
   * @throws {StoreUnavailable}
   */
  identify(authorization: string | null): Claim | undefined | Promise<Claim | undefined> {
    if (authorization === null) return undefined;
    return this.#claims.get(authorization) ?? this.#lookUp(authorization);
  }

  async #lookUp(authorization: string): Promise<Claim | undefined> {
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined || !isSecret(secret, this.#environment)) return undefined;
    const hash = hashSecret(secret);
    const keyId = await this.#keys.findId(hash);
    if (keyId === undefined) return undefined;
    const claim = { keyId, hash };
    // With extra spaces around it, one secret could fill the cache with long strings.
    if (authorization.length === SCHEME.length + secret.length) this.#claims.set(authorization, claim);
    return claim;
  }
}

/** The 401 with its challenge (RFC 6750 section 3); it does not say what is wrong with a bad key. */
export function unauthorized(authorization: string | null): Response {
  return (authorization === null || !BEARER.test(authorization) ? MISSING : INVALID).clone();
}
