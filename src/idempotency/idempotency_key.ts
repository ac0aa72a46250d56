import { ApiError } from "../http/error.ts";

const BARE = /^[\x21\x23-\x7e]{1,255}$/;
const QUOTED = /^"([\x21\x23-\x7e]{1,255})"$/;

/**
 * The request's Idempotency-Key, quoted as in draft-ietf-httpapi-idempotency-key-header or bare.
 *
 * @throws {ApiError} `invalid_request` when it is not 1 to 255 visible characters.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const request = new Request("http://localhost/", { headers: { "Idempotency-Key": '"rex-1"' } });
 * assertEquals(readIdempotencyKey(request), "rex-1");
 * ```
 */
export function readIdempotencyKey(request: Request): string | undefined {
  const value = request.headers.get("idempotency-key");
  if (value === null) return undefined;
  const key = QUOTED.exec(value)?.[1] ?? BARE.exec(value)?.[0];
  if (key === undefined) {
    throw new ApiError(
      "invalid_request",
      "The Idempotency-Key must be 1 to 255 visible ASCII characters other than the double quote, which may enclose them.",
    );
  }
  return key;
}
