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

/** Resolves after `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
