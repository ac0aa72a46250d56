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

const REQUEST_HEADERS = "Access-Control-Request-Headers";
/** Maximum length of the list of headers that a preflight asks for. */
const MAX_ASKED = 1_024;
const PREFLIGHT_SECONDS = "86400";

/**
 * Allows pages from any origin to read the response without credentials. A preflight allows the headers that it asks
 * for, because libraries for tracing add headers of their own (Fetch standard, CORS protocol).
 */
export function setCorsHeaders(request: Request, headers: Headers): void {
  headers.set("access-control-allow-origin", "*");
  if (request.method === "OPTIONS" && request.headers.has("access-control-request-method")) {
    headers.set("access-control-allow-methods", headers.get("allow") ?? "");
    headers.append("vary", REQUEST_HEADERS);
    const asked = request.headers.get(REQUEST_HEADERS);
    if (asked !== null && asked.length <= MAX_ASKED) headers.set("access-control-allow-headers", asked);
    headers.set("access-control-max-age", PREFLIGHT_SECONDS);
  } else {
    headers.set("access-control-expose-headers", EXPOSED);
  }
}
