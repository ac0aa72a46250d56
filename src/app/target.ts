import { wasSentTwice } from "../web/headers.ts";
import { MAX_ID_LENGTH } from "../service/mod.ts";

/** The parts of a request's URL. */
export interface Target {
  /** Scheme and authority, such as `http://localhost:8000`. The authority comes from the Host header. */
  readonly origin: string;
  /** Still percent-encoded. */
  readonly path: string;
  /** With the leading `?`, or empty. */
  readonly query: string;
}

/**
 * Splits the absolute URL of a request. This is much faster than `new URL`.
 */
export function targetOf(url: string): Target {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start === -1) return { origin: url, path: "/", query: "" };
  const origin = url.slice(0, start);
  const mark = url.indexOf("?", start);
  if (mark === -1) return { origin, path: url.slice(start), query: "" };
  return { origin, path: url.slice(start, mark), query: url.slice(mark) };
}

const AUTHORITY = /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/;
const MAX_AUTHORITY = 255;

/**
 * Whether the Host header and the URL's authority are each missing, or a host with an optional port (RFC 3986 section
 * 3.2). Deno builds the URL from the Host header and the path, so a Host with a slash would change the path. A target
 * in absolute form and an HTTP/2 request have their own authority.
 */
export function hasValidHost({ headers }: Request, { origin }: Target): boolean {
  const host = headers.get("host") ?? "";
  const authority = origin.slice(origin.indexOf("://") + 3);
  return isAuthority(host) && (authority === host || isAuthority(authority));
}

/** Says why {@linkcode hasValidHost} refuses a request. */
export function hostFault({ headers }: Request): string {
  if (wasSentTwice(headers.get("host") ?? "", isAuthority)) return "The Host was sent twice.";
  return "The Host header must be a host name or address, and a port or none.";
}

function isAuthority(text: string): boolean {
  return text === "" || (text.length <= MAX_AUTHORITY && AUTHORITY.test(text));
}

const REQUEST_ID = new RegExp(String.raw`^[\x21-\x7e]{1,${MAX_ID_LENGTH}}$`);

/**
 * Returns a function that gives each request an ID: its X-Request-Id if that is 1 to 64 visible characters, otherwise a
 * generated one. Generated IDs have a random prefix and a counter, which is much faster than a UUID for each request.
 */
export function createRequestIds(): (request: Request) => string {
  const prefix = crypto.randomUUID().slice(0, 13);
  let count = 0;
  return function requestId({ headers }: Request): string {
    // `has` loads all headers, so that later lookups need no call into the runtime.
    const given = headers.has("x-request-id") ? headers.get("x-request-id") : null;
    return given !== null && REQUEST_ID.test(given) ? given : `${prefix}-${++count}`;
  };
}
