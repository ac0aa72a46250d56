import { createHash, timingSafeEqual } from "node:crypto";
import { CHALLENGE, type Environment, environmentOf, invalidApiKey, isApiKey, KEY_FORM } from "./api_key.ts";
import { bearerToken } from "../web/request.ts";
import { ApiError, errorResponse, ERRORS } from "../web/error.ts";
import type { OperatorAccess } from "../web/router.ts";
import { shared } from "../web/response.ts";

const MISSING = shared(errorResponse(
  new ApiError(ERRORS.missing_api_key, "Send your API key as 'Authorization: Bearer <API_KEY>'.", {
    "www-authenticate": CHALLENGE,
  }),
));
const MISTYPED = invalid("The API key is mistyped: its checksum is wrong.");
const QUOTED = invalid("The API key is in quotes; send it without them.");
const OTHER_FORM = invalid(`This is not an API key. An API key is ${KEY_FORM}.`);
const QUOTE = /^["']|["']$/;

/** The 403 for a suspended account's keys. It is a shared response. */
export const SUSPENDED: Response = shared(errorResponse(
  new ApiError(
    ERRORS.account_suspended,
    "The account is suspended. Ask the operator of the service to resume it.",
  ),
));

/**
 * Returns a function that selects the 401 for an Authorization header: a shared response with a challenge (RFC 6750
 * section 3). The response depends only on what the key itself shows. Unknown and replaced keys, and closed accounts'
 * keys, all get the same response.
 */
export function unauthorizedIn(environment: Environment): (authorization: string | null) => Response {
  const other = environment === "staging" ? "production" : "staging";
  const ofOther = invalid(`This is a ${other} key; this service is ${environment}.`);
  const ofThis = invalid();
  return function unauthorized(authorization: string | null): Response {
    const token = bearerToken(authorization);
    if (token === undefined) return MISSING;
    const named = environmentOf(token);
    if (named !== undefined && named !== environment) return ofOther;
    if (named !== undefined) return isApiKey(token, environment) ? ofThis : MISTYPED;
    return QUOTE.test(token) ? QUOTED : OTHER_FORM;
  };
}

function invalid(message?: string): Response {
  return shared(errorResponse(invalidApiKey(message)));
}

/** Returns a function that checks whether an Authorization header has one of the tokens, in constant time. */
export function tokenCheck(tokens: readonly string[]): (authorization: string | null) => boolean {
  const expected = tokens.map(digest);
  return (authorization) => {
    const given = digest(bearerToken(authorization) ?? "");
    return expected.map((token) => timingSafeEqual(token, given)).includes(true);
  };
}

/** The 401 for a wrong operator token, with its challenge (RFC 6750 section 3). */
export function wrongOperatorToken(access: OperatorAccess): Response {
  const name = access === "metrics" ? "METRICS_TOKEN" : "OPERATOR_TOKEN";
  const message = `Send the operator's token as 'Authorization: Bearer <${name}>'.`;
  const headers = { "www-authenticate": 'Bearer realm="animal-store-operator"' };
  return errorResponse(new ApiError(ERRORS.invalid_operator_token, message, headers));
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
