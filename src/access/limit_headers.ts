import { type ErrorCode, problemResponse } from "../http/error.ts";
import { isShared, shared } from "../http/response.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import type { Limits } from "./plans.ts";
import { dayEnd, minuteEnd, type Refusal, roll, type Usage } from "./usage.ts";

/** One limit as a response describes it. */
export interface Window {
  readonly limit: number;
  readonly remaining: number;
  /** When it opens again, ms since the epoch. */
  readonly reset: number;
}

/** What was decided on a request, and how that leaves the caller. */
export interface Decision {
  /** Undefined when the request was admitted. */
  readonly refusal: Refusal | undefined;
  readonly minute: Window;
  /** Undefined for callers without a daily limit. */
  readonly day: Window | undefined;
  /** When it was decided, ms since the epoch. */
  readonly now: number;
}

/** The decision on a request of an account, of whose places so many are left that were taken ahead. */
export function decide(
  usage: Usage,
  limits: Limits,
  left: number,
  refusal: Refusal | undefined,
  now: number,
): Decision {
  const current = roll(usage, now);
  const isBanned = refusal === "ban";
  return {
    refusal,
    minute: {
      limit: limits.minute,
      remaining: isBanned ? 0 : Math.max(0, limits.minute - current.used + left),
      reset: isBanned ? current.bannedUntil : minuteEnd(current),
    },
    day: {
      limit: limits.day,
      remaining: Math.max(0, limits.day - current.usedToday + left),
      reset: dayEnd(current),
    },
    now,
  };
}

/** Shared responses with the headers that stay for as long as a window: by those headers, then by response. */
const WITH_POLICY: BoundedMap<string, BoundedMap<Response, Response>> = new BoundedMap(20);
const MAX_RESPONSES = 500;

/**
 * The response, or one of its own for a shared one, with the rate limit headers: X-RateLimit-*, which describe the
 * window that matters most to the caller, and RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers),
 * which describe both.
 */
export function withLimitHeaders(response: Response, decision: Decision): Response {
  const { minute, day, now } = decision;
  const window = decisiveWindow(decision);
  const told = isShared(response) ? sharedWithPolicy(response, decision, window).clone() : response;
  if (told === response) setPolicy(response.headers, decision, window);
  const dailyLeft = day ? `, "day";r=${day.remaining};t=${secondsUntil(day, now)}` : "";
  told.headers.set("x-ratelimit-remaining", `${window.remaining}`);
  told.headers.set("ratelimit", `"minute";r=${minute.remaining};t=${secondsUntil(minute, now)}${dailyLeft}`);
  return told;
}

/** Sets the headers that stay the same until the window ends. */
function setPolicy(headers: Headers, { minute, day }: Decision, { limit, reset }: Window): void {
  const daily = day ? `, "day";q=${day.limit};w=86400` : "";
  headers.set("x-ratelimit-limit", `${limit}`);
  headers.set("x-ratelimit-reset", `${Math.ceil(reset / 1000)}`);
  headers.set("ratelimit-policy", `"minute";q=${minute.limit};w=60${daily}`);
}

function sharedWithPolicy(response: Response, decision: Decision, window: Window): Response {
  const policy = `${window.limit} ${window.reset} ${decision.minute.limit} ${decision.day?.limit}`;
  const responses = WITH_POLICY.get(policy) ?? new BoundedMap(MAX_RESPONSES);
  const known = responses.get(response);
  if (known !== undefined) return known;
  const made = response.clone();
  setPolicy(made.headers, decision, window);
  WITH_POLICY.set(policy, responses.set(response, made));
  return made;
}

const REASONS: Readonly<Record<Refusal, (limit: number) => [code: ErrorCode, reason: string]>> = {
  minute: (limit) => ["rate_limit_minute", `More than ${limit} requests in a minute.`],
  day: (limit) => ["rate_limit_day", `More than ${limit} requests in a day (UTC).`],
  ban: () => ["key_banned", "The API key is banned because requests went on after 429 responses."],
};

/** Refusals by what they say: whoever is refused goes on within the second, more often than not. */
const REFUSED: BoundedMap<string, Response> = new BoundedMap(1_000);

/** The 429 of a request that was refused, with `Retry-After` in seconds and the limit headers; shared. */
export function refusedResponse(decision: Decision, refusal: Refusal): Response {
  const { minute, day, now } = decision;
  const state = (window: Window) =>
    `${window.limit} ${window.remaining} ${window.reset} ${secondsUntil(window, now)}`;
  const content = `${refusal} ${state(minute)} ${day ? state(day) : ""}`;
  const known = REFUSED.get(content);
  if (known !== undefined) return known;
  const made = shared(createRefused(decision, refusal));
  REFUSED.set(content, made);
  return made;
}

function createRefused(decision: Decision, refusal: Refusal): Response {
  const window = decisiveWindow(decision);
  const seconds = secondsUntil(window, decision.now);
  const [code, reason] = REASONS[refusal](window.limit);
  const problem = {
    code,
    message: `${reason} Try again in ${seconds} s.`,
    headers: { "retry-after": `${seconds}` },
  };
  return withLimitHeaders(problemResponse(problem), decision);
}

/** The window that refused; for an admitted request, the one with fewer requests left. */
function decisiveWindow({ refusal, minute, day = minute }: Decision): Window {
  if (refusal === undefined) return day.remaining <= minute.remaining ? day : minute;
  return refusal === "day" ? day : minute;
}

/** Whole seconds until the window opens again, rounded up, at least 1. */
function secondsUntil({ reset }: Window, now: number): number {
  return Math.max(1, Math.ceil((reset - now) / 1000));
}
