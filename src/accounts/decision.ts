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

/** The decision on a request of an account, of whose leased places `left` are left. */
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
