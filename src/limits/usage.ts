import { DAY, dayOf, MINUTE } from "../base/mod.ts";
import { CorruptRow, decodeJson, encodeJson, type Entry } from "../engine/mod.ts";
import { type Refusals, strikesToBan } from "./strikes.ts";

/** Requests allowed in each window. */
export interface Limits {
  readonly minute: number;
  readonly day: number;
}

/** Whether two limits are the same. */
export function isSameLimits(one: Limits, other: Limits): boolean {
  return one.minute === other.minute && one.day === other.day;
}

/** Length of the first ban, in ms. Each further ban is twice as long. */
export const FIRST_BAN: number = 5 * MINUTE;
/** Maximum length of a ban, in ms. */
export const LONGEST_BAN: number = DAY;
/** A time that is further in the future than this, in ms, was written by a clock that was ahead. */
export const AHEAD: number = 5 * MINUTE;

/** A holder's usage, as stored in its row. Times are in ms since the epoch. */
export interface Usage {
  /** Increased by a reset, or when windows move back. Leases from an earlier epoch are void. */
  readonly epoch: number;
  /** Start of the current minute, which also determines the current day. */
  readonly minute: number;
  /** Permits taken in the minute, used or not. */
  readonly used: number;
  /** Permits taken in the day, used or not. */
  readonly usedToday: number;
  /** Permits for the minute that are in leases and can be given back. */
  readonly leased: number;
  /** Permits for the day that are in leases and can be given back. */
  readonly leasedToday: number;
  /** No permits are leased before this time, because a window is full. Returned permits go to waiting requests. */
  readonly noLeasesUntil: number;
  /** Refusals in the minute that count toward a ban. */
  readonly strikes: number;
  /** Requests refused in the day. May be too low. */
  readonly refusedToday: number;
  /** End of the last ban; 0 if there was none. */
  readonly bannedUntil: number;
  /** Number of successive bans, each begun within a day of the end of the previous one. */
  readonly bans: number;
  /** No longer used. Earlier releases stored a number here. */
  readonly obsolete: number;
  /** Requests refused in the minute. May be too low, or too high while processes of earlier releases are running. */
  readonly refused: number;
  /** Additional numbers that a later release has stored. They are kept unchanged. */
  readonly surplus?: readonly unknown[];
}

/** Usage of a holder that has sent no requests. Rows store the numbers in this order, so add new ones at the end. */
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
  obsolete: 0,
  refused: 0,
};

/** Why a request was refused: a full window or a ban. */
export type Refusal = FullWindow | "ban";
/** A window whose limit is used up. */
export type FullWindow = "minute" | "day";

/** Leased permits that a process gives back. */
export interface Returned {
  readonly epoch: number;
  readonly minute: number;
  /** Number of permits that no longer count as leased. */
  readonly size: number;
  /** Number of these permits that were not used. */
  readonly unused: number;
}

/** The permits that a process asks for. */
export interface Wanted {
  /** Number of requests that are waiting for a permit. */
  readonly waiting: number;
  /** Number of additional permits to lease. */
  readonly ahead: number;
}

/** The permits that a process gets, and the usage afterwards. */
export interface Taken {
  readonly usage: Usage;
  /** Number of waiting requests that get a permit. */
  readonly granted: number;
  /** Number of additional permits leased. */
  readonly ahead: number;
  /** Why the next request would be refused; undefined if it would not. */
  readonly refusal: Refusal | undefined;
}

/**
 * Takes permits from both windows or neither. Windows are minutes and days of the UTC clock. They only move forward,
 * so a process whose clock is behind cannot reopen one. Once a window's last permit is taken, no more are leased
 * until the window ends: permits that other processes give back go to waiting requests.
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
export function take(usage: Usage, limits: Limits, { waiting, ahead }: Wanted, now: number): Taken {
  const current = roll(usage, now);
  if (current.bannedUntil > now) return { usage: current, granted: 0, ahead: 0, refusal: "ban" };
  const most = free(current, limits);
  const granted = Math.min(waiting, most);
  const spare = current.noLeasesUntil > now ? 0 : Math.min(ahead, Math.floor((most - granted) / 4));
  const taken = granted + spare;
  const after = {
    ...current,
    used: current.used + taken,
    usedToday: current.usedToday + taken,
    leased: current.leased + spare,
    leasedToday: current.leasedToday + spare,
  };
  const refusal = fullWindow(after, limits);
  // The day may have been full before, although only the minute is full now.
  const noLeasesUntil = Math.max(after.noLeasesUntil, refusal ? windowEnd(after, refusal) : 0);
  return { usage: { ...after, noLeasesUntil }, granted, ahead: spare, refusal };
}

/** Number of permits that are free in both windows. */
export function free({ used, usedToday }: Usage, limits: Limits): number {
  return Math.max(0, Math.min(limits.minute - used, limits.day - usedToday));
}

/** The window that is full, the day if both are; undefined if neither is. */
export function fullWindow({ used, usedToday }: Usage, limits: Limits): FullWindow | undefined {
  if (usedToday >= limits.day) return "day";
  return used >= limits.minute ? "minute" : undefined;
}

/**
 * Gives a lease's unused permits back, except to a minute or day that is over. Ignores a lease from an earlier epoch, and
 * one that is larger than what is leased: it was taken before the row was deleted.
 */
export function giveBack(usage: Usage, { epoch, minute, size, unused }: Returned): Usage {
  if (epoch !== usage.epoch || dayOf(minute) !== dayOf(usage.minute)) return usage;
  const { usedToday, leasedToday, used, leased } = usage;
  const isOfMinute = minute === usage.minute;
  if (size > leasedToday || unused > usedToday) return usage;
  if (isOfMinute && (size > leased || unused > used)) return usage;
  const day = { ...usage, usedToday: usedToday - unused, leasedToday: leasedToday - size };
  return isOfMinute ? { ...day, used: used - unused, leased: leased - size } : day;
}

/**
 * Counts refused requests. The strike that is the last of those allowed in a minute begins a ban. Each further ban within
 * a day of the end of the last one is twice as long. A current ban is not extended, because another process might have
 * just started it.
 */
export function refuse(
  usage: Usage,
  limits: Limits,
  { count, strikes: added }: Pick<Refusals, "count" | "strikes">,
  now: number,
): Usage {
  const strikes = usage.strikes + added;
  const after = {
    ...usage,
    strikes,
    refused: usage.refused + count,
    refusedToday: usage.refusedToday + count,
  };
  // Without a new strike, there is no new ban, even if those of an earlier one still count.
  if (added === 0 || strikes < strikesToBan(limits) || usage.bannedUntil > now) return after;
  const bans = now - usage.bannedUntil < DAY ? usage.bans + 1 : 1;
  return { ...after, bans, bannedUntil: now + Math.min(FIRST_BAN * 2 ** (bans - 1), LONGEST_BAN) };
}

/**
 * Moves both windows forward to `now`. If a clock that was ahead has moved them far into the future, they move back and
 * keep their counts, and their leases become void. A ban that ends later than any that could begin now is cleared.
 */
export function roll(usage: Usage, now: number): Usage {
  const minute = now - now % MINUTE;
  const isBack = usage.minute - minute > AHEAD;
  if (minute <= usage.minute && !isBack) return usage;
  const isSameDay = dayOf(usage.minute) === dayOf(minute);
  return {
    ...usage,
    ...(isBack
      ? { epoch: usage.epoch + 1, leased: 0, leasedToday: 0 }
      : { used: 0, leased: 0, strikes: 0, refused: 0 }),
    ...(isBack || isSameDay ? {} : { usedToday: 0, leasedToday: 0, refusedToday: 0 }),
    minute,
    noLeasesUntil: Math.min(usage.noLeasesUntil, dayEnd({ minute })),
    bannedUntil: usage.bannedUntil > now + LONGEST_BAN + AHEAD ? 0 : usage.bannedUntil,
  };
}

/** Sets the usage in both windows to zero. All leases become void. */
export function reset(usage: Usage, now: number): Usage {
  const { minute, bannedUntil, bans } = hasCalled(usage) ? roll(usage, now) : usage;
  return { ...usage, ...UNUSED, minute, epoch: usage.epoch + 1, bannedUntil, bans };
}

/** Whether the holder has ever sent a request. */
export function hasCalled({ minute }: Usage): boolean {
  return minute > 0;
}

/** Clears the minute's refusals and all bans, so that the next ban is a first one. */
export function pardon(usage: Usage): Usage {
  return { ...usage, strikes: 0, refused: 0, bannedUntil: 0, bans: 0 };
}

/**
 * Lets processes lease permits again, unless a window is full under the new limits. A transaction that changes a holder's
 * limits writes this. Otherwise, each request costs a commit until the window that was full before ends.
 */
export function changeLimits(usage: Usage, limits: Limits): Usage {
  const full = fullWindow(usage, limits);
  return { ...usage, noLeasesUntil: full ? windowEnd(usage, full) : 0 };
}

/** Whether two usages are the same. */
export function isSame(one: Usage, other: Usage): boolean {
  return one === other || Object.values(one).join() === Object.values(other).join();
}

/** A limit as response headers describe it. */
export interface Window {
  readonly limit: number;
  readonly remaining: number;
  /** When it resets. */
  readonly reset: number;
}

/** The decision on a request, and the limits after it. */
export interface Decision {
  /** Undefined if the request was admitted. */
  readonly refusal: Refusal | undefined;
  readonly minute: Window;
  /** Undefined for anonymous requests, which have no daily limit. */
  readonly day: Window | undefined;
  /** Epoch of the holder's usage; 0 for anonymous requests. */
  readonly epoch: number;
  /** Time of the decision. */
  readonly now: number;
}

/** The decision on a holder's request. `left` is the number of leased permits that have not been handed out. */
export function decisionOn(
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
    epoch: current.epoch,
    now,
  };
}

/** The limits after the request of a decision is no longer charged. */
export function uncharged(decision: Decision): Decision {
  const { minute, day } = decision;
  const oneMore = (window: Window) => ({ ...window, remaining: window.remaining + 1 });
  return { ...decision, minute: oneMore(minute), day: day && oneMore(day) };
}

/** End of the current minute. */
export function minuteEnd({ minute }: Pick<Usage, "minute">): number {
  return minute + MINUTE;
}

/** Start of the minute that a window of a decision describes. */
export function minuteOf({ reset }: Window): number {
  return reset - MINUTE;
}

/** End of the current day. */
export function dayEnd({ minute }: Pick<Usage, "minute">): number {
  return (dayOf(minute) + 1) * DAY;
}

/** End of a window. */
export function windowEnd(usage: Usage, window: FullWindow): number {
  return window === "day" ? dayEnd(usage) : minuteEnd(usage);
}

/** Key of the row with a holder's usage. */
export function usageKey(id: string): Deno.KvKey {
  return ["usage", id];
}

const NAMES = Object.keys(UNUSED);

/** Encodes a usage as an array of numbers in the order of UNUSED. It is short, because a commit can contain many. */
export function encodeUsage(usage: Usage): Uint8Array<ArrayBuffer> {
  const { surplus = [], ...numbers } = { ...UNUSED, ...usage };
  return encodeJson([...Object.values(numbers), ...surplus]);
}

/**
 * Decodes the usage in a row. Numbers that an earlier release did not store are 0. Numbers that a later release has
 * added are kept as surplus.
 *
 * @throws {CorruptRow}
 */
export function decodeUsage(entry: Entry): Usage {
  const row: unknown = decodeJson(entry);
  if (!Array.isArray(row) || !row.slice(0, NAMES.length).every(isCount)) {
    throw new CorruptRow("A usage row is malformed");
  }
  const numbers = NAMES.map((name, position) => [name, row[position] ?? 0]);
  const surplus = row.slice(NAMES.length);
  return { ...UNUSED, ...Object.fromEntries(numbers), ...(surplus.length > 0 && { surplus }) };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
