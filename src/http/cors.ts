import { createResponse } from "./response.ts";

const EXPOSED = [
  "Allow",
  "Deprecation",
  "ETag",
  "Idempotency-Replayed",
  "Link",
  "Location",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "Sunset",
  "WWW-Authenticate",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
].join(", ");

const ALLOWED = "Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id";
const PREFLIGHT_SECONDS = "86400";

/** Lets a page of any origin read the response, without credentials (Fetch standard, CORS protocol). */
export function setCorsHeaders(headers: Headers): void {
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", EXPOSED);
}

/** The answer to OPTIONS, and to the preflight that a browser sends as OPTIONS. */
export function optionsResponse(request: Request, allow: string): Response {
  const response = createResponse(null, { status: 204, headers: { allow } });
  if (request.headers.has("access-control-request-method")) {
    response.headers.set("access-control-allow-methods", allow);
    response.headers.set("access-control-allow-headers", ALLOWED);
    response.headers.set("access-control-max-age", PREFLIGHT_SECONDS);
  }
  return response;
}
