import { dayEnd, minuteEnd, roll, type Verdict } from "./usage.ts";

/** One limit as a response describes it. */
export interface Window {
  readonly limit: number;
  readonly remaining: number;
  /** Ms since the epoch. */
  readonly reset: number;
  /** Whole seconds until the reset, rounded up, at least 1. */
  readonly seconds: number;
}

/** A ban closes the minute window until the ban ends. */
export function minuteWindow({ refusal, usage, limits, now }: Verdict): Window {
  if (refusal === "ban") return window(limits.minute, limits.minute, usage.bannedUntil, now);
  return window(limits.minute, usage.minuteUsed, minuteEnd(usage), now);
}

/** The day window. */
export function dayWindow({ usage: decided, limits, now }: Verdict): Window {
  // A ban leaves the usage as it was, perhaps on an earlier day.
  const usage = roll(decided, now);
  return window(limits.day, usage.dayUsed, dayEnd(usage), now);
}

/** The window that refused; for an admitted request, the one with fewer requests left. */
export function decisiveWindow({ refusal }: Verdict, minute: Window, day: Window): Window {
  if (refusal === undefined) return day.remaining <= minute.remaining ? day : minute;
  return refusal === "day" ? day : minute;
}

function window(limit: number, used: number, reset: number, now: number): Window {
  return {
    limit,
    remaining: Math.max(0, limit - used),
    reset,
    seconds: Math.max(1, Math.ceil((reset - now) / 1000)),
  };
}
