import type { Limits } from "../accounts/plans.ts";
import { dayOf, type FullWindow, type Refusal, roll, type Usage, windowEnd } from "../accounts/usage.ts";

/** Places of both windows that a process took ahead of need, and hands out from memory. */
export interface Lease {
  readonly epoch: number;
  readonly minute: number;
  /** How many count as leased. */
  readonly size: number;
  /** How many are left. */
  left: number;
}

/** What a process asks for. */
export interface Demand {
  /** Requests that wait for a place. */
  readonly waiting: number;
  /** Places to lease on top. */
  readonly ahead: number;
}

/** What it gets, and the usage after that. */
export interface Taken {
  readonly usage: Usage;
  /** How many of those that wait have a place. */
  readonly granted: number;
  /** How many places are leased on top. */
  readonly ahead: number;
  /** Why the others, or the next one, have none. */
  readonly refusal: Refusal | undefined;
}

/**
 * Takes places in both windows or in neither. Windows are minutes and days of the UTC clock; they only move
 * forward, so a clock that lags behind another process's cannot reopen a window. The last request that a window
 * has room for ends leasing until the window does: what others give back is then for those who wait.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { UNUSED } from "../accounts/usage.ts";
 *
 * const limits = { minute: 2, day: 10 };
 * const { granted, usage } = take(UNUSED, limits, { waiting: 3, ahead: 0 }, 59_999);
 * assertEquals(granted, 2);
 * assertEquals(take(usage, limits, { waiting: 1, ahead: 0 }, 59_999).refusal, "minute");
 * assertEquals(take(usage, limits, { waiting: 1, ahead: 0 }, 60_000).refusal, undefined);
 * ```
 */
export function take(usage: Usage, limits: Limits, { waiting, ahead }: Demand, now: number): Taken {
  const current = roll(usage, now);
  if (current.bannedUntil > now) return { usage: current, granted: 0, ahead: 0, refusal: "ban" };
  const free = Math.max(0, Math.min(limits.minute - current.used, limits.day - current.usedToday));
  const granted = Math.min(waiting, free);
  const spare = current.noLeasesUntil > now ? 0 : Math.min(ahead, Math.floor((free - granted) / 4));
  const taken = granted + spare;
  const after = {
    ...current,
    used: current.used + taken,
    usedToday: current.usedToday + taken,
    leased: current.leased + spare,
    leasedToday: current.leasedToday + spare,
  };
  const refusal = fullWindow(after, limits);
  const noLeasesUntil = refusal ? windowEnd(after, refusal) : after.noLeasesUntil;
  return { usage: { ...after, noLeasesUntil }, granted, ahead: spare, refusal };
}

/** The window that has room for no request; the day, where both are full. */
export function fullWindow({ used, usedToday }: Usage, limits: Limits): FullWindow | undefined {
  if (usedToday >= limits.day) return "day";
  return used >= limits.minute ? "minute" : undefined;
}

/**
 * Gives back what is left of a lease. Of a minute or a day that is over nothing is given back, and of a lease
 * from before a reset nothing at all.
 */
export function settle(usage: Usage, { epoch, minute, size, left }: Readonly<Lease>): Usage {
  if (epoch !== usage.epoch || dayOf(minute) !== dayOf(usage.minute)) return usage;
  const { usedToday, leasedToday, used, leased } = usage;
  const day = { ...usage, usedToday: usedToday - left, leasedToday: leasedToday - size };
  return minute === usage.minute ? { ...day, used: used - left, leased: leased - size } : day;
}
