import { ApiError } from "./error.ts";
import { isMismatch, isNotModified } from "./etag.ts";

const TAG = String.raw`(?:W\/)?"[!#-~\x80-\xff]*"`;
/** Tags with commas in between; elements of the list may be empty (RFC 9110 sections 5.6.1 and 8.8.3). */
const TAGS = new RegExp(String.raw`^(?:,[ \t]*)*${TAG}[ \t]*(?:,[ \t]*(?:${TAG}[ \t]*)?)*$`);
/** The first or a later tag of a list is weak. A strong tag may hold `W/`, too. */
const WEAK_TAG = /(?:^|,)[ \t]*W\//;

/**
 * Requires that If-Match and If-None-Match are entity tags or `*` (RFC 9110 sections 13.1.1 and 13.1.2).
 *
 * @throws {ApiError} `invalid_request`, naming the header.
 *
 * @example
 * ```ts
 * import { assertThrows } from "@std/assert";
 *
 * const asks = (tags: string) => new Request("http://localhost/", { headers: { "If-Match": tags } });
 * requireEntityTags(asks('"3f42", W/"3f43"'));
 * assertThrows(() => requireEntityTags(asks("3f42")), Error, "If-Match must be * or entity tags");
 * ```
 */
export function requireEntityTags({ headers }: Request): void {
  for (const name of ["If-Match", "If-None-Match"]) {
    const value = headers.get(name);
    if (value === null || value === "*" || TAGS.test(value)) continue;
    throw new ApiError(
      "invalid_request",
      `${name} must be * or entity tags in double quotes, such as "a3219ffc0c406b50".`,
    );
  }
}

/**
 * Requires that If-Match and If-None-Match hold for what has this entity tag (RFC 9110 section 13.2.2).
 *
 * @throws {ApiError} `precondition_failed`, naming the header, with the entity tag as `ETag`.
 */
export function requirePreconditions(request: Request, etag: string): void {
  if (isMismatch(request, etag)) {
    const isWeak = WEAK_TAG.test(request.headers.get("if-match") ?? "");
    const reason = isWeak ? "a weak tag (W/) never matches" : "read it again";
    throw new ApiError("precondition_failed", `If-Match does not have the current ETag: ${reason}.`, {
      etag,
    });
  }
  if (isNotModified(request, etag)) {
    throw new ApiError("precondition_failed", "If-None-Match has the current ETag, or is *.", { etag });
  }
}
