import { SECOND } from "../base/mod.ts";
import type { Decision, Window } from "./usage.ts";

/**
 * Sets the rate limit headers of a response. X-RateLimit-* describe the decisive window. RateLimit-Policy and RateLimit
 * (draft-ietf-httpapi-ratelimit-headers) describe both windows.
 */
export function setLimitHeaders(headers: Headers, decision: Decision): void {
  setPolicy(headers, decision);
  setRemaining(headers, decision);
}

/** Sets the headers that stay the same until the window ends. */
export function setPolicy(headers: Headers, decision: Decision): void {
  const { minute, day } = decision;
  const { limit, reset } = decisiveWindow(decision);
  const daily = day ? `, ${policyOf("day", day, 86_400)}` : "";
  headers.set("x-ratelimit-limit", `${limit}`);
  headers.set("x-ratelimit-reset", `${Math.ceil(reset / SECOND)}`);
  headers.set("ratelimit-policy", `${policyOf("minute", minute, 60)}${daily}`);
}

/** Sets the headers that change with each request. */
export function setRemaining(headers: Headers, decision: Decision): void {
  const { minute, day, now } = decision;
  const daily = day ? `, ${leftOf("day", day, now)}` : "";
  headers.set("x-ratelimit-remaining", `${decisiveWindow(decision).remaining}`);
  headers.set("ratelimit", `${leftOf("minute", minute, now)}${daily}`);
}

/** The same headers of a limit that has one window, of `seconds` or without an end. */
export function limitHeadersOf(
  window: Window,
  { name, seconds, now }: {
    readonly name: string;
    readonly seconds: number | undefined;
    readonly now: number;
  },
): Readonly<Record<string, string>> {
  return {
    "x-ratelimit-limit": `${window.limit}`,
    "x-ratelimit-remaining": `${window.remaining}`,
    "x-ratelimit-reset": `${Math.ceil(window.reset / SECOND)}`,
    "ratelimit-policy": policyOf(name, window, seconds),
    "ratelimit": leftOf(name, window, now),
  };
}

function policyOf(name: string, { limit }: Window, seconds: number | undefined): string {
  return `"${name}";q=${limit}${seconds === undefined ? "" : `;w=${seconds}`}`;
}

function leftOf(name: string, window: Window, now: number): string {
  return `"${name}";r=${window.remaining};t=${secondsUntil(window, now)}`;
}

/** Whether `setPolicy()` sets the same headers for two decisions. */
export function hasSamePolicy(one: Decision, other: Decision): boolean {
  const [window, its] = [decisiveWindow(one), decisiveWindow(other)];
  return window.limit === its.limit && window.reset === its.reset &&
    one.minute.limit === other.minute.limit && one.day?.limit === other.day?.limit;
}

/** Whether two refusals have the same reason and the same headers. */
export function isSameRefusal(one: Decision, other: Decision): boolean {
  return one.refusal === other.refusal && isSame(one.minute, other.minute) && isSame(one.day, other.day) &&
    secondsUntil(one.minute, one.now) === secondsUntil(other.minute, other.now) &&
    (!one.day || secondsUntil(one.day, one.now) === secondsUntil(one.day, other.now));
}

/** How long a refused client should wait, in seconds, for `Retry-After` (RFC 9110 section 10.2.3). */
export function retryAfter(decision: Decision): number {
  return secondsUntil(decisiveWindow(decision), decision.now);
}

/** The window that refused the request or, if it was admitted, the one with fewer requests left. */
export function decisiveWindow({ refusal, minute, day = minute }: Decision): Window {
  if (refusal === undefined) return day.remaining <= minute.remaining ? day : minute;
  return refusal === "day" ? day : minute;
}

/** Seconds until the window resets, rounded up, at least 1. */
function secondsUntil({ reset }: Window, now: number): number {
  return Math.max(1, Math.ceil((reset - now) / SECOND));
}

function isSame(one: Window | undefined, other: Window | undefined): boolean {
  return one?.limit === other?.limit && one?.remaining === other?.remaining && one?.reset === other?.reset;
}
