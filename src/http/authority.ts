import { ApiError } from "./error.ts";

const AUTHORITY = /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/;

/** Whether the text is a host with or without a port, such as `localhost:8000` (RFC 3986 section 3.2). */
export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text);
}

/**
 * Refuses a request whose Host is none. Deno puts Host before the path to make the URL, so one with a
 * slash would change the path.
 *
 * @throws {ApiError} `invalid_request` (RFC 9112 section 3.2).
 */
export function requireValidHost(request: Request): void {
  const host = request.headers.get("host");
  if (host && !isAuthority(host)) {
    throw new ApiError(
      "invalid_request",
      "The Host header must be a host name or address, and a port or none.",
    );
  }
}
