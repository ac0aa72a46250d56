import { earlier, FUTURE, monotonicNow, type MonotonicTime, plus } from "../base/mod.ts";

/*
 * Refusals, and which of them count toward a ban. No response takes longer than five seconds, so the client of a
 * request that arrives later than that after a refusal knows about the refusal. If the request is refused, too, that is
 * a strike. A burst, or a fleet of workers that each learn from a 429 of their own, gets few strikes.
 */

/** For this long after a process's first refusal of a minute, in ms, clients might not know about it. */
export const UNAWARE = 5_000;
/** A ban begins with this many strikes in a minute for each request that the limit per minute allows. */
const STRIKES_PER_REQUEST = 5;

/** Refusals of a process in one minute that the usage row does not count yet. */
export interface Refusals {
  /** Start of the minute. */
  readonly minute: number;
  /** When the process first refused a request in the minute. */
  readonly first: MonotonicTime;
  readonly count: number;
  /** Number of them that are strikes. */
  readonly strikes: number;
}

/** No refusals. */
export const NO_REFUSALS: Refusals = { minute: 0, first: FUTURE, count: 0, strikes: 0 };

/** Adds the refusal of a request that arrived at `at`. */
export function withRefusal(refusals: Refusals, minute: number, at: MonotonicTime): Refusals {
  const isSame = refusals.minute === minute;
  const { first, count, strikes } = isSame ? refusals : { ...NO_REFUSALS, first: monotonicNow() };
  return { minute, first, count: count + 1, strikes: strikes + (at > plus(first, UNAWARE) ? 1 : 0) };
}

/** The same minute without the refusals themselves, once they are counted elsewhere. */
export function counted({ minute, first }: Refusals): Refusals {
  return { minute, first, count: 0, strikes: 0 };
}

/** Joins refusals. If they are of two minutes, those of the later one stay. */
export function merged(one: Refusals, other: Refusals): Refusals {
  if (one.minute !== other.minute) return one.minute > other.minute ? one : other;
  const { minute, count, strikes } = one;
  const first = earlier(one.first, other.first);
  return { minute, first, count: count + other.count, strikes: strikes + other.strikes };
}

/** Number of strikes in a minute with which a ban begins, by the limit per minute. */
export function strikesToBan({ minute }: { readonly minute: number }): number {
  return STRIKES_PER_REQUEST * minute;
}
