import { createHash, timingSafeEqual } from "node:crypto";
import { bearerToken } from "../web/headers.ts";
import { type Access, ApiError, errorResponse } from "../web/mod.ts";
import { ACCESS, ACCESS_ERRORS } from "../service/mod.ts";
import { challengeOf } from "../accounts/api_key.ts";
import { hasTwoCredentials, SENT_TWICE } from "../accounts/bearer.ts";

/** A token of the operators, as a setting has it. */
export interface OperatorToken {
  readonly token: string;
  /** The name of the operator who has it, if its entry has one. */
  readonly operator?: string;
}

/** The tokens of each setting. */
export interface OperatorTokens {
  /** Tokens that allow everything. */
  readonly operatorTokens: readonly OperatorToken[];
  /** Tokens that only read. */
  readonly operatorReadTokens: readonly OperatorToken[];
  /** Tokens that read metrics only. */
  readonly metricsTokens: readonly OperatorToken[];
}

/** What a valid token says of its request. */
export interface Grant extends Pick<OperatorToken, "operator"> {
  /** Whether it allows only GET and HEAD. */
  readonly isReadOnly?: true;
}

/** Returns what an Authorization header is granted; undefined if it has no valid token. */
export type FindGrant = (authorization: string | null) => Grant | undefined;

/** The tokens that are valid for operations with each access that needs one. */
export function grantsOf(
  { operatorTokens, operatorReadTokens, metricsTokens }: OperatorTokens,
): ReadonlyMap<Access, FindGrant> {
  const reading = operatorReadTokens.map((entry) => ({ ...entry, isReadOnly: true } as const));
  const ofOperators = [...operatorTokens, ...reading];
  return new Map([
    [ACCESS.operator, grantFinder(ofOperators)],
    [ACCESS.metrics, grantFinder([...ofOperators, ...metricsTokens])],
  ]);
}

/** Compares with all tokens, each in constant time. */
function grantFinder(tokens: readonly (OperatorToken & Grant)[]): FindGrant {
  const expected = tokens.map(({ token, ...grant }) => ({ grant, digest: digestOf(token) }));
  return (authorization) => {
    const given = digestOf(bearerToken(authorization) ?? "");
    return expected.filter(({ digest }) => timingSafeEqual(digest, given))[0]?.grant;
  };
}

/** The error for a write with a token that only reads. */
export const READ_ONLY: ApiError = new ApiError(
  ACCESS_ERRORS.read_only_token,
  "This token can only read, with GET and HEAD. Send one of OPERATOR_TOKEN.",
);

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

function digestOf(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
