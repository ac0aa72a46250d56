import { jsonResponse, NO_STORE } from "./response.ts";

/** An error that clients can get. */
export interface ErrorKind {
  /** Machine-readable, and unique within the service. */
  readonly code: string;
  readonly status: number;
  readonly means: string;
  /** What the client should do. */
  readonly todo: string;
  /** Descriptions of additional texts in its body, by name. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Descriptions of additional numbers in its body, by name. */
  readonly counts?: Readonly<Record<string, string>>;
}

/** Advice that adds nothing to the message. */
export const FIX = "Fix the request. The message says what was expected.";
/** Advice for errors with `Retry-After`. */
export const WAIT = "Try again after Retry-After. Wait longer each time.";

const KINDS = {
  invalid_request: {
    status: 400,
    means: "A field, parameter or header is missing, invalid or unknown.",
    todo: FIX,
    texts: {
      field:
        "The name, as in the message, of the first field, parameter or header that is missing, invalid or unknown",
    },
  },
  invalid_json: {
    status: 400,
    means: "The body is not JSON in UTF-8, or has more than 1,000 values or 16 levels of nesting.",
    todo: FIX,
  },
  invalid_content_type: {
    status: 400,
    means: "The headers do not declare the body as plain JSON in UTF-8.",
    todo: FIX,
  },
  not_found: {
    status: 404,
    means: "There is nothing at this path.",
    todo: "Check the path in the reference.",
  },
  method_not_allowed: {
    status: 405,
    means: "The path does not support this method.",
    todo: "Use one of the methods in Allow.",
  },
  request_timeout: {
    status: 408,
    means: "The body took longer than 10 seconds to arrive or, sent in chunks, paused for 2 seconds.",
    todo: "Send the request again over a faster connection.",
  },
  gone: { status: 410, means: "The operation has been removed.", todo: "Use the successor in Link." },
  precondition_failed: {
    status: 412,
    means: "The item's current ETag does not satisfy If-Match or If-None-Match.",
    todo: "The current ETag is in ETag. Read the item again, for example with PATCH and {}, then decide.",
  },
  payload_too_large: {
    status: 413,
    means: "The body is larger than 64 KiB, unless the description allows more.",
    todo: FIX,
  },
  idempotency_key_reused: {
    status: 422,
    means: "The Idempotency-Key was already used with other values in the body.",
    todo: "Use a new Idempotency-Key for each new request.",
  },
  internal_error: {
    status: 500,
    means: "The service failed because of a bug.",
    todo: "Report the problem with its X-Request-Id.",
  },
  overloaded: {
    status: 503,
    means: "The service is handling as many requests or bodies as it can.",
    todo: WAIT,
  },
} as const satisfies Readonly<Record<string, Omit<ErrorKind, "code">>>;

/** Errors by code, except those that are declared where they are thrown. */
export const ERRORS: Readonly<Record<keyof typeof KINDS, ErrorKind>> = withCodes(KINDS);

/** Errors by code, without repeating it. */
export function withCodes<Code extends string>(
  kinds: Readonly<Record<Code, Omit<ErrorKind, "code">>>,
): Record<Code, ErrorKind>;
export function withCodes(
  kinds: Readonly<Record<string, Omit<ErrorKind, "code">>>,
): Record<string, ErrorKind> {
  return Object.fromEntries(Object.entries(kinds).map(([code, kind]) => [code, { code, ...kind }]));
}

/** An error for the client. Any other error that is thrown becomes `INTERNAL`. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly kind: ErrorKind;
  /** Additional response headers, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Additional members of the body. */
  readonly members: Readonly<Record<string, unknown>>;

  /** `message` says what is wrong, and names the field or parameter and what was expected. */
  constructor(
    kind: ErrorKind,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    members: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.kind = kind;
    this.headers = headers;
    this.members = members;
  }
}

/** The error for an invalid request. `field` is the name of what the message says first is missing, invalid or unknown. */
export function invalidRequest(message: string, field?: string): ApiError {
  const members = field === undefined ? {} : { field: field.toWellFormed() };
  return new ApiError(ERRORS.invalid_request, message, {}, members);
}

/** The error for requests that fail because of a bug. */
export const INTERNAL: ApiError = new ApiError(ERRORS.internal_error, "Something went wrong in the service.");

/**
 * Creates the response with an Error body: code, message and status. It must not be cached.
 */
export function errorResponse({ kind: { code, status }, message, headers, members }: ApiError): Response {
  const response = jsonResponse(JSON.stringify({ code, message, status, ...members }), {
    status,
    headers: { ...NO_STORE, ...headers },
  });
  CODES.set(response, code);
  return response;
}

const CODES: WeakMap<Response, string> = new WeakMap();

/** The code of a response that `errorResponse()` has created; empty for any other, and for a clone. */
export function codeOf(response: Response): string {
  return CODES.get(response) ?? "";
}
