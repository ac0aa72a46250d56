import type { Decision, Refusal, Window } from "./usage.ts";
import { ApiError, type ErrorCode, errorResponse } from "../web/error.ts";
import { BoundedMap } from "../base/bounded_map.ts";
import { isShared, shared } from "../web/response.ts";

/** A cached response with a decision's headers. */
interface Kept {
  readonly decision: Decision;
  readonly response: Response;
}

/** For each shared response, a clone with the headers for a single policy, cached until the minute ends. */
const KEPT: WeakMap<Response, Kept> = new WeakMap();

/**
 * Adds the rate limit headers to the response, or to a clone if it is shared. X-RateLimit-* describe the decisive
 * window. RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers) describe both windows.
 */
export function withLimitHeaders(response: Response, decision: Decision): Response {
  const { minute, day, now } = decision;
  const window = decisiveWindow(decision);
  const own = (isShared(response) ? cloneWithPolicy : setPolicy)(response, decision, window);
  const dailyLeft = day ? `, "day";r=${day.remaining};t=${secondsUntil(day, now)}` : "";
  own.headers.set("x-ratelimit-remaining", `${window.remaining}`);
  own.headers.set("ratelimit", `"minute";r=${minute.remaining};t=${secondsUntil(minute, now)}${dailyLeft}`);
  return own;
}

/** Sets the headers that stay the same until the window ends. */
function setPolicy(response: Response, { minute, day }: Decision, { limit, reset }: Window): Response {
  const daily = day ? `, "day";q=${day.limit};w=86400` : "";
  response.headers.set("x-ratelimit-limit", `${limit}`);
  response.headers.set("x-ratelimit-reset", `${Math.ceil(reset / 1000)}`);
  response.headers.set("ratelimit-policy", `"minute";q=${minute.limit};w=60${daily}`);
  return response;
}

function cloneWithPolicy(response: Response, decision: Decision, window: Window): Response {
  const kept = KEPT.get(response);
  if (kept && hasPolicyOf(kept.decision, decision, window)) return kept.response.clone();
  const own = setPolicy(response.clone(), decision, window);
  if (kept === undefined || kept.decision.minute.reset <= decision.now) {
    KEPT.set(response, { decision, response: own.clone() });
  }
  return own;
}

/** Whether two decisions have the same policy headers. The last argument is the second one's decisive window. */
function hasPolicyOf(one: Decision, { minute, day }: Decision, { limit, reset }: Window): boolean {
  const window = decisiveWindow(one);
  return window.limit === limit && window.reset === reset && one.minute.limit === minute.limit &&
    one.day?.limit === day?.limit;
}

const REASONS: Readonly<Record<Refusal, (limit: number) => [code: ErrorCode, reason: string]>> = {
  minute: (limit) => ["rate_limit_minute", `More than ${limit} requests in a minute.`],
  day: (limit) => ["rate_limit_day", `More than ${limit} requests in a day (UTC).`],
  ban: () => ["key_banned", "The account is banned because it kept sending requests after 429 responses."],
};

function tooManyWithoutKey(limit: number): [code: ErrorCode, reason: string] {
  return ["rate_limit_minute", `More than ${limit} requests in a minute without a valid API key.`];
}

/** The latest refusals. A refused client often sends more requests within the same second. */
const REFUSED: BoundedMap<number, Kept> = new BoundedMap(1_000);

/** The 429 for a refused request, with `Retry-After` in seconds and the limit headers. It is a shared response. */
export function refusedResponse(decision: Decision, refusal: Refusal): Response {
  const caller = callerOf(decision);
  const known = REFUSED.get(caller);
  if (known && isRefusedAlike(known.decision, decision)) return known.response;
  const response = shared(createRefused(decision, refusal));
  REFUSED.set(caller, { decision, response });
  return response;
}

/** The cache key for a refusal. Few accounts share a key at a time. All anonymous requests share one. */
function callerOf({ minute, day }: Decision): number {
  return day ? 1_000 * day.remaining + minute.remaining : -1;
}

/** Whether two refusals have the same response. */
function isRefusedAlike(one: Decision, other: Decision): boolean {
  return one.refusal === other.refusal && isSame(one.minute, other.minute) && isSame(one.day, other.day) &&
    secondsUntil(one.minute, one.now) === secondsUntil(other.minute, other.now) &&
    (!one.day || secondsUntil(one.day, one.now) === secondsUntil(one.day, other.now));
}

function isSame(one: Window | undefined, other: Window | undefined): boolean {
  return one?.limit === other?.limit && one?.remaining === other?.remaining && one?.reset === other?.reset;
}

function createRefused(decision: Decision, refusal: Refusal): Response {
  const window = decisiveWindow(decision);
  const seconds = secondsUntil(window, decision.now);
  const [code, reason] = decision.day ? REASONS[refusal](window.limit) : tooManyWithoutKey(window.limit);
  const message = `${reason} Try again in ${seconds} s.`;
  const error = new ApiError(code, message, { "retry-after": `${seconds}` });
  return withLimitHeaders(errorResponse(error), decision);
}

/** The window that refused the request or, if it was admitted, the one with fewer requests left. */
function decisiveWindow({ refusal, minute, day = minute }: Decision): Window {
  if (refusal === undefined) return day.remaining <= minute.remaining ? day : minute;
  return refusal === "day" ? day : minute;
}

/** Seconds until the window resets, rounded up, at least 1. */
function secondsUntil({ reset }: Window, now: number): number {
  return Math.max(1, Math.ceil((reset - now) / 1000));
}
