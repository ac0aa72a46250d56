/** A second, in ms. */
export const SECOND = 1_000;
/** A minute, in ms. */
export const MINUTE: number = 60 * SECOND;
/** An hour, in ms. */
export const HOUR: number = 60 * MINUTE;
/** A day, in ms. */
export const DAY: number = 24 * HOUR;

/** The UTC day of a time (ms since the epoch), in days since the epoch. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY);
}

declare const MONOTONIC: unique symbol;

/**
 * A time on the clock of `performance.now()`, which no change of the date moves: a number, but none to calculate with.
 * Such times compare with `<`. Every other time is a number of ms since the epoch.
 */
export interface MonotonicTime {
  readonly [MONOTONIC]: true;
}

/** Before all other times. */
export const PAST: MonotonicTime = timeOf(-Infinity);
/** After all other times. */
export const FUTURE: MonotonicTime = timeOf(Infinity);

/** The time on the clock that no change of the date moves. */
export function monotonicNow(): MonotonicTime {
  return timeOf(performance.now());
}

/** The time `ms` after another. */
export function plus(time: MonotonicTime, ms: number): MonotonicTime {
  return timeOf(Number(time) + ms);
}

/** From one time to another, in ms. */
export function msBetween(start: MonotonicTime, end: MonotonicTime): number {
  return Number(end) - Number(start);
}

/** Since a time, in ms. */
export function msSince(start: MonotonicTime): number {
  return performance.now() - Number(start);
}

/** The later one of two times. */
export function later(one: MonotonicTime, other: MonotonicTime): MonotonicTime {
  return one < other ? other : one;
}

/** The earlier one of two times. */
export function earlier(one: MonotonicTime, other: MonotonicTime): MonotonicTime {
  return one < other ? one : other;
}

function timeOf(ms: number): MonotonicTime {
  return ms as unknown as MonotonicTime;
}

/** Resolves after `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
