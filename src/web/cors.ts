const EXPOSED = [
  "Allow",
  "Content-Location",
  "Deprecation",
  "ETag",
  "Idempotency-Replayed",
  "Link",
  "Location",
  "Preference-Applied",
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

const ALLOWED = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Prefer, X-Request-Id";
const PREFLIGHT_SECONDS = "86400";

/**
 * Allows pages from any origin to read the response without credentials, and adds the headers of preflight responses
 * (Fetch standard, CORS protocol).
 */
export function setCorsHeaders(request: Request, headers: Headers): void {
  headers.set("access-control-allow-origin", "*");
  if (request.method === "OPTIONS" && request.headers.has("access-control-request-method")) {
    headers.set("access-control-allow-methods", headers.get("allow") ?? "");
    headers.set("access-control-allow-headers", ALLOWED);
    headers.set("access-control-max-age", PREFLIGHT_SECONDS);
  } else {
    headers.set("access-control-expose-headers", EXPOSED);
  }
}
