import type { Decision, Refusal, Window } from "../accounts/usage.ts";
import { ApiError, type ErrorCode, errorResponse } from "../http/error.ts";
import { BoundedMap } from "../store/cache.ts";
import { isShared, shared } from "../http/response.ts";

/** A response with the headers that stay until the minute ends. */
interface Kept {
  readonly policy: string;
  readonly until: number;
  readonly response: Response;
}

/** By shared response; other policies of the same minute go without. */
const KEPT: WeakMap<Response, Kept> = new WeakMap();

/**
 * The response, or one of its own for a shared one, with the rate limit headers: X-RateLimit-*, which describe the
 * window that matters most to the caller, and RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers),
 * which describe both.
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
  const { minute, day, now } = decision;
  const policy = `${window.limit} ${window.reset} ${minute.limit} ${day?.limit}`;
  const kept = KEPT.get(response);
  if (kept?.policy === policy) return kept.response.clone();
  const own = setPolicy(response.clone(), decision, window);
  if (kept === undefined || kept.until <= now) {
    KEPT.set(response, { policy, until: minute.reset, response: own.clone() });
  }
  return own;
}

const REASONS: Readonly<Record<Refusal, (limit: number) => [code: ErrorCode, reason: string]>> = {
  minute: (limit) => ["rate_limit_minute", `More than ${limit} requests in a minute.`],
  day: (limit) => ["rate_limit_day", `More than ${limit} requests in a day (UTC).`],
  ban: () => ["key_banned", "The API key is banned because requests went on after 429 responses."],
};

function tooManyWithoutKey(limit: number): [code: ErrorCode, reason: string] {
  return ["rate_limit_minute", `More than ${limit} requests in a minute came without a valid API key.`];
}

/** Refusals by what they say: a refused client mostly goes on within the second. */
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
  const [code, reason] = decision.day ? REASONS[refusal](window.limit) : tooManyWithoutKey(window.limit);
  const message = `${reason} Try again in ${seconds} s.`;
  const error = new ApiError(code, message, { "retry-after": `${seconds}` });
  return withLimitHeaders(errorResponse(error), decision);
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
