import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError, problemResponse } from "../http/error.ts";
import { shared } from "../http/response.ts";

const BEARER = /^Bearer +([^\s]+) *$/i;

/** The bearer token in an Authorization value (RFC 6750 section 2.1); undefined where it holds none. */
export function bearerToken(authorization: string | null): string | undefined {
  return BEARER.exec(authorization ?? "")?.[1];
}

const CHALLENGE = 'Bearer realm="animal-store"';
const MISSING = shared(problemResponse({
  code: "missing_api_key",
  message: "Send your API key as 'Authorization: Bearer <API_KEY>'.",
  headers: { "www-authenticate": CHALLENGE },
}));
const INVALID = shared(problemResponse(invalidApiKey()));

/** For a key that opens no account, or no longer does by the time that it matters; it does not say why. */
export function invalidApiKey(): ApiError {
  const headers = { "www-authenticate": `${CHALLENGE}, error="invalid_token"` };
  return new ApiError("invalid_api_key", "The API key is not valid.", headers);
}

/** The 401 with its challenge (RFC 6750 section 3); shared. */
export function unauthorized(authorization: string | null): Response {
  return bearerToken(authorization) === undefined ? MISSING : INVALID;
}

/** Whether an Authorization value carries one of the operator's tokens, compared in constant time. */
export function operatorTokenCheck(tokens: readonly string[]): (authorization: string | null) => boolean {
  const expected = tokens.map(digest);
  return (authorization) => {
    const given = digest(bearerToken(authorization) ?? "");
    return expected.map((token) => timingSafeEqual(token, given)).includes(true);
  };
}

/** The 401 for a wrong token, with its challenge (RFC 6750 section 3). */
export function wrongOperatorToken(): Response {
  return problemResponse({
    code: "invalid_operator_token",
    message: "Send the operator's token as 'Authorization: Bearer <OPERATOR_TOKEN>'.",
    headers: { "www-authenticate": 'Bearer realm="animal-store-operator"' },
  });
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
