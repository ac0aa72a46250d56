import { ifMatch, ifNoneMatch } from "@std/http/etag";
import { hash } from "node:crypto";
import { ApiError, ERRORS } from "./error.ts";

/**
 * The strong entity tag of some text: a cryptographic hash, so no two texts have the same tag (RFC 9110 section 8.8.3).
 */
export function etagOf(text: string): string {
  return `"${hash("sha256", text).slice(0, 32)}"`;
}

/**
 * A quick entity tag: FNV-1a, 64 bits (RFC 9923), of the code units. Two texts share a tag only if someone crafts them
 * to, so use it only for texts by one author. Node's hash would make adding an item cost a tenth more.
 */
export function quickEtagOf(text: string): string {
  // The 64 bits are four numbers of 16 bits, lowest first. Such small integers are exact and need no allocation.
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2];
  for (let index = 0; index < text.length; index++) {
    a ^= text.charCodeAt(index);
    // Times 2^40 + 0x1b3.
    const first = a * 0x1b3;
    const second = b * 0x1b3 + (first >>> 16);
    const third = c * 0x1b3 + (a << 8) + (second >>> 16);
    const fourth = d * 0x1b3 + (b << 8) + (third >>> 16);
    [a, b, c, d] = [first & 0xffff, second & 0xffff, third & 0xffff, fourth & 0xffff];
  }
  const hex = (high: number, low: number) => (high * 0x10000 + low).toString(16).padStart(8, "0");
  return `"${hex(d, c)}${hex(b, a)}"`;
}

/** Whether If-None-Match has this entity tag, so the client's copy is current (RFC 9110 section 13.1.2). */
export function isNotModified(known: string | undefined, etag: string): boolean {
  // Most clients send one tag, which is compared before it is split.
  return known !== undefined && (known === etag || !ifNoneMatch(squeeze(known), etag));
}

/** Whether If-Match lacks this entity tag, so the client's copy is outdated (RFC 9110 section 13.1.1). */
export function isMismatch(wanted: string | undefined, etag: string): boolean {
  return wanted !== undefined && wanted !== etag && !ifMatch(squeeze(wanted), etag);
}

/** Shortens runs of spaces. Otherwise ifMatch() and ifNoneMatch() could take seconds to split the tags. */
function squeeze(tags: string): string {
  return tags.replaceAll(/\s+/g, " ");
}

/** The headers of a conditional request. */
export interface Preconditions {
  readonly "If-Match"?: string | undefined;
  readonly "If-None-Match"?: string | undefined;
}

/** Matches a weak tag in a list. `W/` alone may also be part of a strong tag. */
const WEAK_TAG = /(?:^|,)[ \t]*W\//;

/**
 * Requires that If-Match and If-None-Match hold for the entity tag of an item, which messages call `what` (RFC 9110
 * section 13.2.2).
 *
 * @throws {ApiError} `precondition_failed`. The message names the header, and `ETag` has the entity tag.
 */
export function requirePreconditions(headers: Preconditions, etag: string, what: string): void {
  const current = `the ${what}'s current ETag, which is in the ETag header of this response`;
  const failed = (message: string) => new ApiError(ERRORS.precondition_failed, message, { etag });
  const wanted = headers["If-Match"];
  if (isMismatch(wanted, etag)) {
    const reason = WEAK_TAG.test(wanted ?? "") ? ". A weak tag (W/) never matches." : ".";
    throw failed(`If-Match does not contain ${current}${reason}`);
  }
  if (isNotModified(headers["If-None-Match"], etag)) {
    throw failed(`If-None-Match is *, or contains ${current}.`);
  }
}
