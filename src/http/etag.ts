import { hash } from "node:crypto";
import { ifMatch, ifNoneMatch } from "@std/http/etag";

/**
 * The strong entity tag of a content: a hash of it, so one tag never names two contents (RFC 9110 section
 * 8.8.3).
 */
export function etagOf(text: string): string {
  return `"${hash("sha256", text).slice(0, 32)}"`;
}

/**
 * Whether a request wants what has this entity tag unless it has changed, and it has not (RFC 9110 section
 * 13.1.2).
 */
export function isNotModified({ headers }: Request, etag: string): boolean {
  const known = headers.get("if-none-match");
  return known !== null && !ifNoneMatch(squeeze(known), etag);
}

/** Whether a request wants something else changed than what has this content (RFC 9110 section 13.1.1). */
export function isPreconditionFailed({ headers }: Request, text: string): boolean {
  const wanted = headers.get("if-match");
  return wanted !== null && !ifMatch(squeeze(wanted), etagOf(text));
}

/** Runs of spaces cost those functions seconds: they split by an expression that tries each space in turn. */
function squeeze(tags: string): string {
  return tags.replaceAll(/\s+/g, " ");
}
