import type { ErrorCode, Problem } from "../http/error.ts";
import { dayEnd, minuteEnd, type Refusal, roll, type Verdict } from "./usage.ts";

/** One limit as a response describes it. Times are ms since the epoch. */
interface Window {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}

/**
 * Sets the rate limit headers: those of interface section 8, which describe the window that matters
 * most to the caller, and RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), which
 * describe both.
 */
export function setLimitHeaders(headers: Headers, verdict: Verdict): void {
  const { limits, now } = verdict;
  const minute = minuteWindow(verdict);
  const day = dayWindow(verdict);
  const { limit, remaining, reset } = decisive(verdict, minute, day);
  headers.set("x-ratelimit-limit", `${limit}`);
  headers.set("x-ratelimit-remaining", `${remaining}`);
  headers.set("x-ratelimit-reset", `${Math.ceil(reset / 1000)}`);
  const daily = limits.day !== Infinity;
  headers.set(
    "ratelimit-policy",
    `"minute";q=${limits.minute};w=60` + (daily ? `, "day";q=${limits.day};w=86400` : ""),
  );
  headers.set(
    "ratelimit",
    `"minute";r=${minute.remaining};t=${seconds(minute, now)}` +
      (daily ? `, "day";r=${day.remaining};t=${seconds(day, now)}` : ""),
  );
}

/** The 429 of a refused request, with `Retry-After` in seconds. */
export function refusalProblem(verdict: Verdict, refusal: Refusal): Problem {
  const window = decisive(verdict, minuteWindow(verdict), dayWindow(verdict));
  const retryAfter = seconds(window, verdict.now);
  const [code, reason] = REASONS[refusal](window.limit);
  return {
    code,
    message: `${reason} Try again in ${retryAfter} s.`,
    headers: { "retry-after": `${retryAfter}` },
  };
}

const REASONS: Readonly<Record<Refusal, (limit: number) => [code: ErrorCode, reason: string]>> = {
  minute: (limit) => ["rate_limit_minute", `More than ${limit} requests in a minute.`],
  day: (limit) => ["rate_limit_day", `More than ${limit} requests in a day (UTC).`],
  ban: () => ["key_banned", "The API key is banned because requests went on after 429 responses."],
};

/** The window that refused; for an admitted request, the one with fewer requests left. */
function decisive({ refusal }: Verdict, minute: Window, day: Window): Window {
  if (refusal === undefined) return day.remaining <= minute.remaining ? day : minute;
  return refusal === "day" ? day : minute;
}

/** A ban closes the minute window until the ban ends. */
function minuteWindow({ refusal, usage, limits }: Verdict): Window {
  if (refusal === "ban") return { limit: limits.minute, remaining: 0, reset: usage.bannedUntil };
  return {
    limit: limits.minute,
    remaining: Math.max(0, limits.minute - usage.minuteUsed),
    reset: minuteEnd(usage),
  };
}

function dayWindow({ usage: decided, limits, now }: Verdict): Window {
  // A ban leaves the usage as it was, perhaps on an earlier day.
  const usage = roll(decided, now);
  return { limit: limits.day, remaining: Math.max(0, limits.day - usage.dayUsed), reset: dayEnd(usage) };
}

/** Whole seconds until the reset, rounded up, at least 1. */
function seconds({ reset }: Window, now: number): number {
  return Math.max(1, Math.ceil((reset - now) / 1000));
}
