/**
 * Headers: entity tags and preconditions, the Idempotency-Key, deprecations, CORS, credentials and addresses.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const etag = etagOf("the same text");
 * requirePreconditions({ "If-Match": etag }, etag, "note");
 * assertThrows(() => requirePreconditions({ "If-None-Match": "*" }, etag, "note"), Error, "If-None-Match is *");
 * assertEquals(bearerToken("Bearer secret"), "secret");
 * ```
 *
 * @module
 */
export { type AllowedOrigins, createCors } from "./cors.ts";
export {
  type Deprecation,
  deprecationHeaders,
  DEPRECATIONS_PATH,
  deprecationsText,
  inWords,
  isGone,
} from "./deprecation.ts";
export { etagOf, type Preconditions, quickEtagOf, requirePreconditions } from "./etag.ts";
export {
  entityTags,
  IDEMPOTENCY_KEY,
  IF_NONE_MATCH,
  NOT_MODIFIED,
  refusedHeader,
  REPLAY_HOURS,
} from "./header_schemas.ts";
export { bearerToken, clientAddress, wasSentTwice } from "./request.ts";
