import { createHash, timingSafeEqual } from "node:crypto";
import { bearerToken } from "../accounts/api_key.ts";
import { problemResponse } from "../http/error.ts";

/** Whether an Authorization value carries the operator's token, compared in constant time. */
export function operatorTokenCheck(token: string): (authorization: string | null) => boolean {
  const expected = digest(token);
  return (authorization) => {
    const given = bearerToken(authorization) ?? "";
    return timingSafeEqual(digest(given), expected);
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
