import { CorruptRow, decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import type { Limits } from "./account.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
/** Length of a ban, in ms; each further one is twice as long. */
export const FIRST_BAN: number = 5 * MINUTE;
/** Length of a ban at most, in ms. */
export const LONGEST_BAN: number = DAY;
/** What is this far in the future, in ms, is a mistake: a clock was ahead. */
const AHEAD = 5 * MINUTE;

/** What an account has used, as its row tells. Times are ms since the epoch. */
export interface Usage {
  /** Rises with every reset, and where windows are moved back: what was leased before is void. */
  readonly epoch: number;
  /** Start of the minute that is counted, in the day that is counted. */
  readonly minute: number;
  /** Requests taken in the minute, used or not. */
  readonly used: number;
  /** Requests taken in the day, used or not. */
  readonly usedToday: number;
  /** Of those of the minute, how many are in leases and may come back. */
  readonly leased: number;
  /** Of those of the day, how many are in leases and may come back. */
  readonly leasedToday: number;
  /** Until when nothing is leased, because a window is full: what comes back is for the requests that wait. */
  readonly noLeasesUntil: number;
  /** Requests refused in the minute. */
  readonly strikes: number;
  /** Requests refused in the day, at least. */
  readonly refusedToday: number;
  /** End of the last ban; 0 when there was none. */
  readonly bannedUntil: number;
  /** Bans so far, each within a day of the end of the one before. */
  readonly bans: number;
  /** The minute that the window was moved back from, when its clock proved wrong; 0 when it never was. */
  readonly movedFrom: number;
  /** What a later version stores beyond these, unchanged; left out if there is nothing. */
  readonly surplus?: readonly unknown[];
}

/** Usage of an account that has not called yet. The numbers stand in this order in a row: a new one is added at the end. */
export const UNUSED: Usage = {
  epoch: 0,
  minute: 0,
  used: 0,
  usedToday: 0,
  leased: 0,
  leasedToday: 0,
  noLeasesUntil: 0,
  strikes: 0,
  refusedToday: 0,
  bannedUntil: 0,
  bans: 0,
  movedFrom: 0,
};

/** What a request was refused for: a window that is full, or a ban. */
export type Refusal = FullWindow | "ban";
/** A window that has room for no request. */
export type FullWindow = "minute" | "day";

/** Permits that were leased, as they are given back. */
export interface Returned {
  readonly epoch: number;
  readonly minute: number;
  /** How many no longer count as leased. */
  readonly size: number;
  /** How many of them were not used. */
  readonly left: number;
}

/** What a process asks for. */
export interface Demand {
  /** Requests that wait for a permit. */
  readonly waiting: number;
  /** Permits to lease on top. */
  readonly ahead: number;
}

/** What it gets, and the usage after that. */
export interface Taken {
  readonly usage: Usage;
  /** How many of those that wait have a permit. */
  readonly granted: number;
  /** How many permits are leased on top. */
  readonly ahead: number;
  /** Why the others, or the next one, have none. */
  readonly refusal: Refusal | undefined;
}

/**
 * Takes permits of both windows or of neither. Windows are minutes and days of the UTC clock; they only move
 * forward, so a clock that lags behind another process's cannot reopen a window. The last request that a window
 * has room for ends leasing until the window does: what others give back is then for those that wait.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
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
export function settle(usage: Usage, { epoch, minute, size, left }: Returned): Usage {
  if (epoch !== usage.epoch || dayOf(minute) !== dayOf(usage.minute)) return usage;
  const { usedToday, leasedToday, used, leased } = usage;
  const day = { ...usage, usedToday: usedToday - left, leasedToday: leasedToday - size };
  return minute === usage.minute ? { ...day, used: used - left, leased: leased - size } : day;
}

/**
 * Notes that `count` requests were refused because no permit was left. A caller who is refused more often within a
 * minute than the minute allows is banned for a while, and twice as long for each further ban within a day
 * of the last one's end. A ban in force is not prolonged: another process may have brought it about meanwhile.
 */
export function strike(usage: Usage, limits: Limits, count: number, now: number): Usage {
  const strikes = usage.strikes + count;
  const after = { ...usage, strikes, refusedToday: usage.refusedToday + count };
  if (strikes <= limits.minute || usage.bannedUntil > now) return after;
  const bans = now - usage.bannedUntil < DAY ? usage.bans + 1 : 1;
  return { ...after, bans, bannedUntil: now + Math.min(FIRST_BAN * 2 ** (bans - 1), LONGEST_BAN) };
}

/**
 * The usage with both windows moved to `now`. Those that a clock had put far into the future are moved back with
 * their counts, and bans that it had put there end; should that minute or day come after all, they are counted on,
 * and what was leased of them stays used.
 */
export function roll(usage: Usage, now: number): Usage {
  const minute = now - now % MINUTE;
  const isBack = usage.minute - minute > AHEAD;
  if (minute <= usage.minute && !isBack) return usage;
  const keepsDay = isBack || [usage.minute, usage.movedFrom].map(dayOf).includes(dayOf(minute));
  const keepsMinute = isBack || minute === usage.movedFrom;
  return {
    ...usage,
    ...(keepsMinute ? {} : { used: 0, leased: 0, strikes: 0 }),
    ...(keepsDay ? {} : { usedToday: 0, leasedToday: 0, refusedToday: 0 }),
    ...(isBack ? { epoch: usage.epoch + 1, leased: 0, leasedToday: 0 } : {}),
    minute,
    movedFrom: isBack ? Math.max(usage.movedFrom, usage.minute) : usage.movedFrom,
    noLeasesUntil: Math.min(usage.noLeasesUntil, dayEnd({ minute })),
    bannedUntil: usage.bannedUntil > now + LONGEST_BAN + AHEAD ? 0 : usage.bannedUntil,
  };
}

/** The usage with nothing used, in windows of `now`, and whatever was leased void. */
export function reset(usage: Usage, now: number): Usage {
  const { minute, bannedUntil, bans } = hasCalled(usage) ? roll(usage, now) : usage;
  return { ...usage, ...UNUSED, minute, epoch: usage.epoch + 1, bannedUntil, bans };
}

/** Whether the account has ever called. */
export function hasCalled({ minute }: Usage): boolean {
  return minute > 0;
}

/** The usage without strikes, and with no ban in force or remembered. */
export function pardon(usage: Usage): Usage {
  return { ...usage, strikes: 0, bannedUntil: 0, bans: 0 };
}

/** Whether two usages are the same. */
export function isSame(one: Usage, other: Usage): boolean {
  return one === other || Object.values(one).join() === Object.values(other).join();
}

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

/** The decision on a request of an account, of whose leased permits `left` are left. */
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

/** When the minute that is counted ends, ms since the epoch. */
export function minuteEnd({ minute }: Pick<Usage, "minute">): number {
  return minute + MINUTE;
}

/** When the day that is counted ends, ms since the epoch. */
export function dayEnd({ minute }: Pick<Usage, "minute">): number {
  return (dayOf(minute) + 1) * DAY;
}

/** When a window ends, ms since the epoch. */
export function windowEnd(usage: Usage, window: FullWindow): number {
  return window === "day" ? dayEnd(usage) : minuteEnd(usage);
}

/** The number of the UTC day that a time (ms) is in, from the epoch on. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY);
}

/** Key of the row that tells what an account has used. */
export function usageKey(accountId: string): Deno.KvKey {
  return ["usage", accountId];
}

const NAMES = Object.keys(UNUSED);

/** The row's value: the numbers alone, in the order of UNUSED, for a commit carries many. */
export function encodeUsage(usage: Usage): Uint8Array<ArrayBuffer> {
  const { surplus = [], ...numbers } = { ...UNUSED, ...usage };
  return encodeJson([...Object.values(numbers), ...surplus]);
}

/**
 * The usage that a row tells. What an earlier version did not store is 0; what a later one adds is kept as surplus.
 *
 * @throws {CorruptRow}
 */
export function decodeUsage(entry: Entry): Usage {
  const row: unknown = decodeJson(entry);
  if (!Array.isArray(row) || !row.slice(0, NAMES.length).every(isCount)) {
    throw new CorruptRow("A row of usage holds no usage");
  }
  const numbers = NAMES.map((name, position) => [name, row[position] ?? 0]);
  const surplus = row.slice(NAMES.length);
  return { ...UNUSED, ...Object.fromEntries(numbers), ...(surplus.length > 0 && { surplus }) };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
