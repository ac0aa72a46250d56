import { jsonResponse } from "./response.ts";

/** Every `code` an Error body can carry, with its HTTP status. */
export const STATUS = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_content_type: 400,
  missing_api_key: 401,
  invalid_api_key: 401,
  invalid_operator_token: 401,
  account_suspended: 403,
  sign_up_closed: 403,
  not_your_pet: 403,
  pet_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  gone: 410,
  length_required: 411,
  precondition_failed: 412,
  payload_too_large: 413,
  idempotency_key_reused: 422,
  rate_limit_minute: 429,
  rate_limit_day: 429,
  key_banned: 429,
  sign_up_limit: 429,
  rotation_limit: 429,
  queue_full: 429,
  idempotency_limit: 429,
  internal_error: 500,
  overloaded: 503,
  store_unavailable: 503,
} as const;

/** A machine-readable error code. */
export type ErrorCode = keyof typeof STATUS;

/** All of them. */
export const ERROR_CODES: readonly string[] = Object.keys(STATUS);

/** What an error response says. */
export interface Problem {
  readonly code: ErrorCode;
  /** Written for the client: what was wrong and what was expected. */
  readonly message: string;
  /** Response headers that belong to it, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A problem to throw; anything else that is thrown becomes a bare 500. */
export class ApiError extends Error implements Problem {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

/** For requests that arrive too late. */
export const STOPPING: Problem = {
  code: "store_unavailable",
  message: "The service is stopping. Try again shortly.",
  headers: { "retry-after": "1", connection: "close" },
};

/** For requests beyond those that can be answered at once. */
export const OVERLOADED: Problem = {
  code: "overloaded",
  message: "Too many requests are being answered. Try again shortly.",
  headers: { "retry-after": "1" },
};

/** For requests that the store has let down. */
export const UNAVAILABLE: Problem = {
  code: "store_unavailable",
  message: "The store does not answer. Try again shortly.",
  headers: { "retry-after": "5" },
};

/** For requests that the service itself has let down. */
export const INTERNAL: Problem = {
  code: "internal_error",
  message: "Something went wrong here.",
  headers: {},
};

/**
 * The response with the Error body: code, message and status.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const response = problemResponse(new ApiError("pet_not_found", "No animal has the id 7."));
 * assertEquals(response.status, 404);
 * assertEquals(await response.json(), {
 *   code: "pet_not_found",
 *   message: "No animal has the id 7.",
 *   status: 404,
 * });
 * ```
 */
export function problemResponse({ code, message, headers }: Problem): Response {
  const status = STATUS[code];
  return jsonResponse(JSON.stringify({ code, message, status }), { status, headers });
}
