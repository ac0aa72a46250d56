import { type Access, ApiError, type ErrorKind, WAIT, withCodes } from "../web/mod.ts";
import { KEY_SCOPE, needsOfKey } from "./scope.ts";

/** Errors that follow from who may call an operation, or from the state of the service. */
export const ACCESS_ERRORS = withCodes({
  service_stopping: {
    status: 503,
    means: "The service is stopping. A write may or may not have been carried out.",
    todo: "Send the request again after Retry-After. An Idempotency-Key makes it safe to repeat a POST.",
  },
  store_unavailable: {
    status: 503,
    means: "The store does not respond. A write may or may not have been carried out.",
    todo: "Try again after Retry-After. An Idempotency-Key makes it safe to repeat a POST.",
  },
  missing_api_key: {
    status: 401,
    means: "The request has no bearer token, or two.",
    todo: "Send Authorization: Bearer API_KEY.",
  },
  invalid_api_key: {
    status: 401,
    means:
      "The API key is mistyped, has been replaced or revoked, has expired, or belongs to a closed account or the other " +
      "environment.",
    todo: "Use a valid key.",
  },
  invalid_operator_token: {
    status: 401,
    means: "Only the operator of the service may do this, and the token is missing or wrong.",
    todo: "Send the OPERATOR_TOKEN of the service as a bearer token.",
  },
  read_only_token: {
    status: 403,
    means: "The operator's token can only read.",
    todo: "Send a token of OPERATOR_TOKEN, or ask an operator who has one.",
  },
  account_suspended: {
    status: 403,
    means: "The operator of the service has suspended the account. Its keys and items are kept.",
    todo: "Stop, and ask the operator to resume the account.",
  },
  rate_limit_minute: { status: 429, means: "The limit per minute is used up.", todo: WAIT },
  rate_limit_day: { status: 429, means: "The limit per day (UTC) is used up.", todo: WAIT },
  key_banned: {
    status: 429,
    means: "The account is banned because it kept sending requests after 429.",
    todo: "Send nothing until Retry-After has passed. Each further ban is longer.",
  },
});

/** Errors of the proxies in the guide for operators. */
export const PROXY_ERRORS: readonly ErrorKind[] = [
  {
    code: "too_many_connections",
    status: 429,
    means: "The proxy in front of the service has too many requests of this address under way.",
    todo: WAIT,
  },
  {
    code: "service_unreachable",
    status: 502,
    means: "The proxy in front of the service gets no response from it. It can send 504, too.",
    todo: WAIT,
  },
];

/** The error for requests that arrive while the service is stopping. */
export const STOPPING: ApiError = new ApiError(
  ACCESS_ERRORS.service_stopping,
  "The service is stopping. Try again shortly.",
  { "retry-after": "1" },
);

/** The error for requests that need the store while it does not respond. */
export const UNAVAILABLE: ApiError = new ApiError(
  ACCESS_ERRORS.store_unavailable,
  "The store does not respond. Try again shortly.",
  { "retry-after": "5" },
);

const ANY: readonly ErrorKind[] = [ACCESS_ERRORS.service_stopping, ACCESS_ERRORS.store_unavailable];
const OF_OPERATORS = {
  hasCredential: true,
  errors: [...ANY, ACCESS_ERRORS.invalid_operator_token, ACCESS_ERRORS.rate_limit_minute],
};

/** Who may call an operation. */
export const ACCESS: Readonly<Record<"key" | "address" | "public" | "operator" | "metrics", Access>> = {
  /** Clients with a valid API key. Requests count toward the account's limits. */
  key: {
    name: "key",
    hasCredential: true,
    isStrict: true,
    errors: [
      ...ANY,
      ACCESS_ERRORS.missing_api_key,
      ACCESS_ERRORS.invalid_api_key,
      ACCESS_ERRORS.account_suspended,
      ACCESS_ERRORS.rate_limit_minute,
      ACCESS_ERRORS.rate_limit_day,
      ACCESS_ERRORS.key_banned,
    ],
    scopes: { error: KEY_SCOPE, needs: needsOfKey },
  },
  /** Everyone. Requests count toward the limit of the client's address. */
  address: {
    name: "address",
    hasCredential: false,
    isStrict: true,
    errors: [...ANY, ACCESS_ERRORS.rate_limit_minute],
  },
  /** Everyone. Requests do not count. */
  public: { name: "public", hasCredential: false, isStrict: false, errors: ANY },
  /** Operators, whose requests do not count. Other requests count toward the address's limit. */
  operator: { ...OF_OPERATORS, name: "operator", isStrict: true },
  /** Operators and Prometheus. Requests count as for `operator`. */
  metrics: { ...OF_OPERATORS, name: "metrics", isStrict: false },
};

/** Whether an operation needs one of the operator's tokens. */
export function needsToken(access: Access): boolean {
  return access === ACCESS.operator || access === ACCESS.metrics;
}
