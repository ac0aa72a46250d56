import { ApiError } from "./error.ts";
import { isMismatch, isNotModified } from "./etag.ts";

/** The headers of a conditional request. */
export interface Preconditions {
  readonly "If-Match"?: string | undefined;
  readonly "If-None-Match"?: string | undefined;
}

/** The first or a later tag of a list is weak. A strong tag may hold `W/`, too. */
const WEAK_TAG = /(?:^|,)[ \t]*W\//;

/**
 * Requires that If-Match and If-None-Match hold for what has this entity tag (RFC 9110 section 13.2.2).
 *
 * @throws {ApiError} `precondition_failed`, naming the header, with the entity tag as `ETag`.
 */
export function requirePreconditions(headers: Preconditions, etag: string): void {
  const wanted = headers["If-Match"];
  if (isMismatch(wanted, etag)) {
    const isWeak = WEAK_TAG.test(wanted ?? "");
    const reason = isWeak ? "a weak tag (W/) never matches" : "read it again";
    throw new ApiError("precondition_failed", `If-Match does not have the current ETag: ${reason}.`, {
      etag,
    });
  }
  if (isNotModified(headers["If-None-Match"], etag)) {
    throw new ApiError("precondition_failed", "If-None-Match has the current ETag, or is *.", { etag });
  }
}
