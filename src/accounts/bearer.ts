import { bearerToken, wasSentTwice } from "../web/headers.ts";
import { ApiError, errorResponse, shared } from "../web/mod.ts";
import { ACCESS_ERRORS, type Environment } from "../service/mod.ts";
import { challengeOf, hashApiKey, invalidApiKey, type KeyForm } from "./api_key.ts";

const QUOTE = /^["']|["']$/;
const CREDENTIALS = /^[\w-]+ +[^\s,]+ *$/;
/** The message to clients that sent two Authorization headers. */
export const SENT_TWICE = "The Authorization header was sent twice: send it once.";

/** The error for a suspended account's keys. */
export const ACCOUNT_SUSPENDED: ApiError = new ApiError(
  ACCESS_ERRORS.account_suspended,
  "The account is suspended. Ask the operator of the service to resume it.",
);

/** The 403 for a suspended account's keys. It is a shared response. */
export const SUSPENDED: Response = shared(errorResponse(ACCOUNT_SUSPENDED));

/** Properties of a service that its 401 responses depend on. */
export interface Realm {
  /** The name of the service in challenges (RFC 9110 section 11.5). */
  readonly realm: string;
  /** Only API keys of this environment are valid. */
  readonly environment: Environment;
  readonly keys: KeyForm;
}

/**
 * Returns a function that selects the 401 for an Authorization header: a shared response with a challenge (RFC 6750
 * section 3). It depends only on what the key itself shows: unknown keys, replaced keys and keys of closed accounts all
 * get the same response.
 */
export function unauthorizedIn(
  { realm, environment, keys }: Realm,
): (authorization: string | null) => Response {
  const other = environment === "staging" ? "production" : "staging";
  const invalid = (message?: string) => shared(errorResponse(invalidApiKey(realm, message)));
  const challenge = { "www-authenticate": challengeOf(realm) };
  const withoutKey = (message: string) =>
    shared(errorResponse(new ApiError(ACCESS_ERRORS.missing_api_key, message, challenge)));
  const missing = withoutKey("Send your API key as 'Authorization: Bearer <API_KEY>'.");
  const twice = withoutKey(SENT_TWICE);
  const mistyped = invalid("The API key is mistyped: its checksum is wrong.");
  const quoted = invalid("The API key is in quotes; send it without them.");
  const otherForm = invalid(`This is not an API key. An API key is ${keys.words}.`);
  const ofOther = invalid(`This is a ${other} key; this service is ${environment}.`);
  const ofThis = invalid();
  return function unauthorized(authorization: string | null): Response {
    const token = bearerToken(authorization);
    if (token === undefined) return hasTwoCredentials(authorization) ? twice : missing;
    const named = keys.environmentOf(token);
    if (named !== undefined && named !== environment) return ofOther;
    if (named !== undefined) return keys.accepts(token, environment) ? ofThis : mistyped;
    return QUOTE.test(token) ? quoted : otherForm;
  };
}

/** The hash of a request's API key. */
export function keyHashIn({ headers }: Request): string {
  return hashApiKey(bearerToken(headers.get("authorization")) ?? "");
}

/** Whether an Authorization header was sent twice, which joins two credentials. */
export function hasTwoCredentials(authorization: string | null): boolean {
  return wasSentTwice(authorization ?? "", (value) => CREDENTIALS.test(value));
}
