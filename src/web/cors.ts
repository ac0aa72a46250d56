import { HTTP_HEADERS } from "./response_headers.ts";

const REQUEST_HEADERS = "Access-Control-Request-Headers";
/** Maximum length of the list of headers that a preflight asks for. */
const MAX_ASKED = 1_024;
const PREFLIGHT_SECONDS = "86400";

/** A response header that every page may read (Fetch standard). */
const SAFELISTED = "Cache-Control";

/** The origins whose pages may read responses: `*` for all, or these. */
export type AllowedOrigins = "*" | readonly string[];

/**
 * Returns a function that allows pages from these origins to read a response without credentials, with the headers of
 * HTTP and those named. A preflight allows the headers that it asks for, because libraries for tracing add headers of
 * their own (Fetch standard, CORS protocol).
 */
export function createCors(
  named: readonly string[],
  allowed: AllowedOrigins = "*",
): (request: Request, headers: Headers) => void {
  const exposed = ["Allow", ...Object.keys(HTTP_HEADERS), ...named].filter((name) => name !== SAFELISTED)
    .sort().join(", ");

  return function setCorsHeaders(request: Request, headers: Headers): void {
    // Where any origin is allowed, the same headers are right for all pages.
    if (allowed !== "*" && !headers.has("vary")) headers.set("vary", "Origin");
    const origin = request.headers.get("origin");
    if (origin === null || (allowed !== "*" && !allowed.includes(origin))) return;
    headers.set("access-control-allow-origin", allowed === "*" ? "*" : origin);
    if (request.method === "OPTIONS" && request.headers.has("access-control-request-method")) {
      headers.set("access-control-allow-methods", headers.get("allow") ?? "");
      headers.append("vary", REQUEST_HEADERS);
      const asked = request.headers.get(REQUEST_HEADERS);
      if (asked !== null && asked.length <= MAX_ASKED) headers.set("access-control-allow-headers", asked);
      headers.set("access-control-max-age", PREFLIGHT_SECONDS);
    } else {
      headers.set("access-control-expose-headers", exposed);
    }
  };
}
