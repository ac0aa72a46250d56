import { SECOND } from "../base/mod.ts";
import { ApiError, type ErrorKind } from "../web/mod.ts";
import { limitHeadersOf } from "../limits/mod.ts";

/** Whose limit it is: an account's, a client address's, or that of all clients together. */
export type LimitOf = "account" | "address" | "service";

/** A limit on something other than requests. */
export interface OwnLimit {
  readonly of: LimitOf;
  /** Its name in RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
  readonly name: string;
  readonly count: number;
  /** Length of its window, in ms; undefined if it has none. */
  readonly ms?: number;
  readonly kind: ErrorKind;
  /** The first sentence of the error's message. */
  readonly reason: (count: string) => string;
}

/** The headers that describe this limit while `left` remain until `reset`. */
export function limitHeaders(
  { name, count, ms }: OwnLimit,
  { left, reset, now }: { readonly left: number; readonly reset: number; readonly now: number },
): Readonly<Record<string, string>> {
  const seconds = ms === undefined ? undefined : ms / SECOND;
  return limitHeadersOf({ limit: count, remaining: left, reset }, { name, seconds, now });
}

/** The 429 of a limit of this kind. */
export class UsedUp extends ApiError {
  readonly limitOf: LimitOf;

  constructor({ kind, of }: OwnLimit, message: string, headers: ApiError["headers"]) {
    super(kind, message, headers);
    this.limitOf = of;
  }
}

/** The 429 of a limit that is used up until `reset`. */
export function usedUp(limit: OwnLimit, reset: number, now: number): UsedUp {
  const seconds = Math.ceil((reset - now) / SECOND);
  const message = `${limit.reason(limit.count.toLocaleString("en"))} Try again in ${seconds} s.`;
  const headers = { "retry-after": `${seconds}`, ...limitHeaders(limit, { left: 0, reset, now }) };
  return new UsedUp(limit, message, headers);
}
