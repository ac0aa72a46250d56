import { requiredHeader } from "../web/openapi.ts";

/** Maximum length of an X-Request-Id. */
export const MAX_ID_LENGTH = 64;

const LIMIT_HEADERS: Readonly<Record<string, object>> = {
  "X-RateLimit-Limit": requiredHeader("The limit currently applying to the caller", 60),
  "X-RateLimit-Remaining": requiredHeader("Requests remaining", 59),
  "X-RateLimit-Reset": requiredHeader("Unix timestamp at which the limit resets", 1_795_294_080),
  "RateLimit-Policy": requiredHeader(
    "Each limit: q requests in w seconds",
    '"minute";q=60;w=60, "day";q=1000;w=86400',
  ),
  "RateLimit": requiredHeader(
    "Remaining requests of each limit: r in the next t seconds",
    '"minute";r=59;t=21, "day";r=999;t=11541',
  ),
};
/** Names of the headers of limits. */
export const LIMIT_HEADER_NAMES: readonly string[] = Object.keys(LIMIT_HEADERS);

/** Descriptions of headers that HTTP does not define. */
export const SERVICE_HEADERS: Readonly<Record<string, object>> = {
  ...LIMIT_HEADERS,
  "X-Request-Id": requiredHeader(
    `The request's id: the client's own if it has 1 to ${MAX_ID_LENGTH} visible characters, otherwise a generated one`,
    "5e5dd3e6-2b1c-7",
  ),
};

/** Names of headers that errors have, by status. */
export const ERROR_HEADERS: Readonly<Record<number, readonly string[]>> = {
  401: ["WWW-Authenticate"],
  404: ["Link"],
  412: ["ETag"],
  429: ["Retry-After", ...LIMIT_HEADER_NAMES],
  503: ["Retry-After"],
};
