import { createHash, timingSafeEqual } from "node:crypto";
import { bearerToken } from "../web/headers.ts";
import { type Access, ApiError, errorResponse } from "../web/mod.ts";
import { ACCESS, ACCESS_ERRORS } from "../service/mod.ts";
import { challengeOf } from "../accounts/api_key.ts";
import { hasTwoCredentials, SENT_TWICE } from "../accounts/bearer.ts";

/** Returns a function that checks whether an Authorization header has one of the tokens, in constant time. */
export function tokenCheck(tokens: readonly string[]): (authorization: string | null) => boolean {
  const expected = tokens.map(digest);
  return (authorization) => {
    const given = digest(bearerToken(authorization) ?? "");
    return expected.map((token) => timingSafeEqual(token, given)).includes(true);
  };
}

/** The 401 for a wrong operator token, with its challenge (RFC 6750 section 3). */
export function wrongOperatorToken(
  access: Access,
  realm: string,
  authorization: string | null,
): Response {
  const name = access === ACCESS.metrics ? "METRICS_TOKEN" : "OPERATOR_TOKEN";
  const message = hasTwoCredentials(authorization)
    ? SENT_TWICE
    : `Send the operator's token as 'Authorization: Bearer <${name}>'.`;
  const headers = { "www-authenticate": challengeOf(`${realm}-operator`) };
  return errorResponse(new ApiError(ACCESS_ERRORS.invalid_operator_token, message, headers));
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
