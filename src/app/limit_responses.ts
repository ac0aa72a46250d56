import { BoundedMap } from "../base/mod.ts";
import { ApiError, type ErrorKind, errorResponse, isShared, shared } from "../web/mod.ts";
import { ACCESS_ERRORS } from "../resource/mod.ts";
import {
  type Decision,
  decisiveWindow,
  hasSamePolicy,
  isSameRefusal,
  type Refusal,
  retryAfter,
  setLimitHeaders,
  setPolicy,
  setRemaining,
} from "../limits/mod.ts";

/** A cached response with a decision's headers. */
interface Kept {
  readonly decision: Decision;
  readonly response: Response;
}

/** For each shared response, a clone with the headers for a single policy, cached until the minute ends. */
const KEPT: WeakMap<Response, Kept> = new WeakMap();

/** Adds the rate limit headers to the response, or to a clone if it is shared. */
export function withLimitHeaders(response: Response, decision: Decision): Response {
  const own = isShared(response) ? cloneWithPolicy(response, decision) : response;
  if (own === response) setLimitHeaders(own.headers, decision);
  else setRemaining(own.headers, decision);
  return own;
}

function cloneWithPolicy(response: Response, decision: Decision): Response {
  const kept = KEPT.get(response);
  if (kept && hasSamePolicy(kept.decision, decision)) return kept.response.clone();
  const own = response.clone();
  setPolicy(own.headers, decision);
  if (kept === undefined || kept.decision.minute.reset <= decision.now) {
    KEPT.set(response, { decision, response: own.clone() });
  }
  return own;
}

const REASONS: Readonly<Record<Refusal, (limit: number) => [kind: ErrorKind, reason: string]>> = {
  minute: (limit) => [ACCESS_ERRORS.rate_limit_minute, `More than ${limit} requests in a minute.`],
  day: (limit) => [ACCESS_ERRORS.rate_limit_day, `More than ${limit} requests in a day (UTC).`],
  ban: () => [
    ACCESS_ERRORS.key_banned,
    "The account is banned because it kept sending requests after 429 responses.",
  ],
};

function tooManyWithoutKey(limit: number): [kind: ErrorKind, reason: string] {
  return [
    ACCESS_ERRORS.rate_limit_minute,
    `More than ${limit} requests in a minute without a valid API key.`,
  ];
}

/** The latest refusals. A refused client often sends more requests within the same second. */
const REFUSED: BoundedMap<number, Kept> = new BoundedMap(1_000);

/** The 429 for a refused request, with `Retry-After` in seconds and the limit headers. It is a shared response. */
export function refusedResponse(decision: Decision, refusal: Refusal): Response {
  const key = cacheKeyOf(decision);
  const known = REFUSED.get(key);
  if (known && isSameRefusal(known.decision, decision)) return known.response;
  const response = shared(createRefused(decision, refusal));
  REFUSED.set(key, { decision, response });
  return response;
}

/** The cache key for a refusal. Few accounts share a key at a time. All anonymous requests share one. */
function cacheKeyOf({ minute, day }: Decision): number {
  return day ? 1_000 * day.remaining + minute.remaining : -1;
}

function createRefused(decision: Decision, refusal: Refusal): Response {
  const { limit } = decisiveWindow(decision);
  const seconds = retryAfter(decision);
  const [kind, reason] = decision.day ? REASONS[refusal](limit) : tooManyWithoutKey(limit);
  const message = `${reason} Try again in ${seconds} s.`;
  const error = new ApiError(kind, message, { "retry-after": `${seconds}` });
  return withLimitHeaders(errorResponse(error), decision);
}
