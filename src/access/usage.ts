import type { Limits } from "./plans.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const FIRST_BAN = 5 * MINUTE;
const LONGEST_BAN = DAY;

/** What one caller has used. Times are ms since the epoch. */
export interface Usage {
  /** Start of the minute that `minuteUsed` and `refused` count, in the day that `dayUsed` counts. */
  readonly minute: number;
  readonly minuteUsed: number;
  readonly refused: number;
  readonly dayUsed: number;
  /** End of the last ban; 0 when there was none. */
  readonly bannedUntil: number;
  /** Bans so far, each within a day of the end of the one before. */
  readonly bans: number;
}

/** What a request was refused for. */
export type Refusal = "minute" | "day" | "ban";

/** The decision on one request, and the usage after it. */
export interface Verdict {
  /** Undefined when the request was admitted. */
  readonly refusal: Refusal | undefined;
  readonly usage: Usage;
  readonly limits: Limits;
  /** When it was decided, ms since the epoch. */
  readonly now: number;
}

/** Usage of a caller never seen before. */
export const UNUSED: Usage = {
  minute: 0,
  minuteUsed: 0,
  refused: 0,
  dayUsed: 0,
  bannedUntil: 0,
  bans: 0,
};

/**
 * Takes one place in both windows or in neither. Windows are minutes and days of the UTC clock; they
 * only move forward, so a clock that lags behind another process's cannot reopen a window.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const limits = { minute: 1, day: 10 };
 * const first = take(UNUSED, limits, 59_999);
 * assertEquals(first.refusal, undefined);
 * assertEquals(take(first.usage, limits, 59_999).refusal, "minute");
 * assertEquals(take(first.usage, limits, 60_000).refusal, undefined);
 * ```
 */
export function take(usage: Usage, limits: Limits, now: number): Verdict {
  const current = roll(usage, now);
  const { minuteUsed, dayUsed } = current;
  if (dayUsed >= limits.day) return { refusal: "day", usage: current, limits, now };
  if (minuteUsed >= limits.minute) return { refusal: "minute", usage: current, limits, now };
  const taken = { ...current, minuteUsed: minuteUsed + 1, dayUsed: dayUsed + 1 };
  return { refusal: undefined, usage: taken, limits, now };
}

/**
 * Like `take`, with strikes: a caller who is refused more often within a minute than the minute allows
 * is banned for five minutes, and twice as long for each further ban within a day of the last one's end.
 * A request during a ban changes nothing.
 */
export function takeOrStrike(usage: Usage, limits: Limits, now: number): Verdict {
  if (usage.bannedUntil > now) return { refusal: "ban", usage, limits, now };
  const verdict = take(usage, limits, now);
  if (verdict.refusal === undefined) return verdict;
  const refused = verdict.usage.refused + 1;
  if (refused <= limits.minute) return { ...verdict, usage: { ...verdict.usage, refused } };
  return { ...verdict, refusal: "ban", usage: ban({ ...verdict.usage, refused }, now) };
}

/** The usage with both windows moved forward to `now`. */
export function roll(usage: Usage, now: number): Usage {
  const minute = now - now % MINUTE;
  if (minute <= usage.minute) return usage;
  const dayUsed = minute < dayEnd(usage) ? usage.dayUsed : 0;
  return { ...usage, minute, minuteUsed: 0, refused: 0, dayUsed };
}

/** The usage without strikes, and with no ban in force or remembered. */
export function pardon(usage: Usage): Usage {
  return { ...usage, refused: 0, bannedUntil: 0, bans: 0 };
}

/** When the minute that is counted ends, ms since the epoch. */
export function minuteEnd(usage: Usage): number {
  return usage.minute + MINUTE;
}

/** When the day that is counted ends, ms since the epoch. */
export function dayEnd(usage: Usage): number {
  return usage.minute - usage.minute % DAY + DAY;
}

function ban(usage: Usage, now: number): Usage {
  const bans = now - usage.bannedUntil < DAY ? usage.bans + 1 : 1;
  return { ...usage, bans, bannedUntil: now + Math.min(FIRST_BAN * 2 ** (bans - 1), LONGEST_BAN) };
}
