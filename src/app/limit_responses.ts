import { BoundedMap } from "../base/mod.ts";
import { ApiError, type ErrorKind, errorResponse, ownOf, shared } from "../web/mod.ts";
import { ACCESS_ERRORS } from "../service/mod.ts";
import {
  type Decision,
  decisiveWindow,
  hasSamePolicy,
  isSameRefusal,
  type Refusal,
  retryAfter,
  setPolicy,
  setRemaining,
} from "../limits/mod.ts";

/** A response with the headers of a decision. */
interface Kept {
  readonly decision: Decision;
  readonly response: Response;
}

/** Maximum number of policies for which clones of a response are kept. A service has few plans. */
const MAX_POLICIES = 4;
/**
 * For each shared response, clones that have the headers of the policies of this minute. Most requests get a clone of
 * these, because to set a header takes longer than most steps of a request.
 */
const KEPT: WeakMap<Response, readonly Kept[]> = new WeakMap();

/** The response for a decision, if a clone with the headers of its policy is kept. */
export function keptResponse(response: Response, decision: Decision): Response | undefined {
  const known = KEPT.get(response)?.find((kept) => hasSamePolicy(kept.decision, decision));
  const own = known?.response.clone();
  if (own) setRemaining(own.headers, decision);
  return own;
}

/** Adds the rate limit headers to the response, or to a clone if it is shared. */
export function withLimitHeaders(response: Response, decision: Decision): Response {
  const own = ownOf(response);
  setPolicy(own.headers, decision);
  const kept = KEPT.get(response)?.filter(({ decision: { minute } }) => minute.reset > decision.now) ?? [];
  if (own !== response && kept.length < MAX_POLICIES) {
    KEPT.set(response, [...kept, { decision, response: own.clone() }]);
  }
  setRemaining(own.headers, decision);
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
    `More than ${limit} requests in a minute without a valid API key or token.`,
  ];
}

/**
 * Returns a function that gives a refused request its 429, with `Retry-After` in seconds and the limit headers. It is a
 * shared response, kept because a refused client often sends more requests within the same second.
 */
export function createRefusals(): (decision: Decision, refusal: Refusal) => Response {
  const latest = new BoundedMap<number, Kept>(1_000);
  return function refusedResponse(decision: Decision, refusal: Refusal): Response {
    const key = cacheKeyOf(decision);
    const known = latest.get(key);
    if (known && isSameRefusal(known.decision, decision)) return known.response;
    const response = shared(createRefused(decision, refusal));
    latest.set(key, { decision, response });
    return response;
  };
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
