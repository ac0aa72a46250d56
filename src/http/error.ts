import { jsonResponse } from "./response.ts";

/** What an error code stands for. */
export interface ErrorKind {
  readonly status: number;
  readonly means: string;
  /** What a client should do about it. */
  readonly todo: string;
}

const MEND = "Fix the request; the message names what was expected.";
const WAIT = "Try again after Retry-After, and wait longer each time.";

const CATALOGUE = {
  invalid_request: {
    status: 400,
    means: "A field, a parameter or a header is missing or has a wrong value.",
    todo: MEND,
  },
  invalid_json: {
    status: 400,
    means: "The body is not JSON in UTF-8, or has more than 1,000 values or 16 levels.",
    todo: MEND,
  },
  invalid_content_type: {
    status: 400,
    means: "The body is not declared as plain JSON in UTF-8.",
    todo: MEND,
  },
  missing_api_key: {
    status: 401,
    means: "There is no API key in bearer form.",
    todo: "Send Authorization: Bearer API_KEY.",
  },
  invalid_api_key: {
    status: 401,
    means: "The API key is not valid: mistyped, replaced, closed or of the other environment.",
    todo: "Use the key of an open account.",
  },
  invalid_operator_token: {
    status: 401,
    means: "Only the operator of the service may do this, and the token sent is not the operator's.",
    todo: "Send the OPERATOR_TOKEN that the service was started with.",
  },
  account_suspended: {
    status: 403,
    means: "The operator of the service has suspended the account: its keys and animals stay.",
    todo: "Stop, and ask the operator to resume the account.",
  },
  sign_up_closed: {
    status: 403,
    means: "Nobody can sign up here.",
    todo: "Ask the operator of the service for a key.",
  },
  not_your_pet: {
    status: 403,
    means: "Another account added the animal.",
    todo: "Leave the animal, or ask its account.",
  },
  pet_not_found: { status: 404, means: "No animal has this id.", todo: "List the animals." },
  not_found: {
    status: 404,
    means: "There is nothing at this path.",
    todo: "Look at the paths in the reference.",
  },
  method_not_allowed: {
    status: 405,
    means: "The path does not answer this method.",
    todo: "Use a method that Allow names.",
  },
  request_timeout: {
    status: 408,
    means: "The body took longer than 10 seconds.",
    todo: "Send it again, faster.",
  },
  gone: { status: 410, means: "The operation was removed.", todo: "Use its successor, which Link names." },
  length_required: {
    status: 411,
    means: "The body came in chunks, of unknown length.",
    todo: "Send a Content-Length.",
  },
  precondition_failed: {
    status: 412,
    means: "If-Match or If-None-Match does not hold for the animal as it is now.",
    todo: "Read the animal again, such as with PATCH and {}, and decide anew; ETag has its current tag.",
  },
  payload_too_large: { status: 413, means: "The body is larger than 64 KiB.", todo: MEND },
  idempotency_key_reused: {
    status: 422,
    means: "The Idempotency-Key was used with another body before.",
    todo: "Use a new Idempotency-Key for each new request.",
  },
  rate_limit_minute: { status: 429, means: "The minute's requests are used up.", todo: WAIT },
  rate_limit_day: { status: 429, means: "The day's requests are used up (UTC).", todo: WAIT },
  key_banned: {
    status: 429,
    means: "Requests went on after 429: the account is banned for a while.",
    todo: "Stop until Retry-After has passed; further bans are longer.",
  },
  sign_up_limit: { status: 429, means: "Too many accounts were made.", todo: WAIT },
  rotation_limit: {
    status: 429,
    means: "Too many keys were made for the account in this hour (UTC).",
    todo: "Go on with the key that you have, or try again after Retry-After; the request itself has counted.",
  },
  queue_full: {
    status: 429,
    means: "Too many messages of the account wait to be sent.",
    todo: "Try again after Retry-After; the request itself has counted.",
  },
  idempotency_limit: {
    status: 429,
    means: "Too many Idempotency-Keys of the account were used on this day (UTC).",
    todo: "Go on without one, or after Retry-After; the request itself has counted.",
  },
  internal_error: {
    status: 500,
    means: "Something went wrong in the service.",
    todo: "Report the X-Request-Id.",
  },
  overloaded: {
    status: 503,
    means: "The service answers as many requests, or reads as many bodies, as it can.",
    todo: WAIT,
  },
  store_unavailable: {
    status: 503,
    means: "The store does not answer, or the service is stopping. A write may or may not have been made.",
    todo: "Try again after Retry-After; an Idempotency-Key makes that safe for writes.",
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** A machine-readable error code. */
export type ErrorCode = keyof typeof CATALOGUE;

/** Every `code` that an Error body can carry. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorKind>> = CATALOGUE;

/** An error to answer with. Any other that is thrown is answered with `INTERNAL`. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  /** Response headers that belong to it, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  /** The message is for the client: what was wrong and what was expected. */
  constructor(code: ErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

/** For requests that arrive while the service stops. */
export const STOPPING: ApiError = new ApiError(
  "store_unavailable",
  "The service is stopping. Try again shortly.",
  { "retry-after": "1", connection: "close" },
);

/** For requests beyond those that can be answered at once. */
export const OVERLOADED: ApiError = new ApiError(
  "overloaded",
  "Too many requests are being answered. Try again shortly.",
  { "retry-after": "1" },
);

/** For requests that the store has failed. */
export const UNAVAILABLE: ApiError = new ApiError(
  "store_unavailable",
  "The store does not answer. Try again shortly.",
  { "retry-after": "5" },
);

/** For requests that the service itself has failed. */
export const INTERNAL: ApiError = new ApiError("internal_error", "Something went wrong here.");

/**
 * The response with the Error body: code, message and status.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const response = errorResponse(new ApiError("pet_not_found", "No animal has the id 7."));
 * assertEquals(response.status, 404);
 * assertEquals(await response.json(), {
 *   code: "pet_not_found",
 *   message: "No animal has the id 7.",
 *   status: 404,
 * });
 * ```
 */
export function errorResponse({ code, message, headers }: ApiError): Response {
  const { status } = ERRORS[code];
  return jsonResponse(JSON.stringify({ code, message, status }), { status, headers });
}
