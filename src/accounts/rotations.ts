import { ApiError } from "../http/error.ts";

/** How often a client has rotated the key of its account in an hour of the UTC clock. */
export interface Rotations {
  /** The number of the hour, from the epoch on. */
  readonly hour: number;
  readonly count: number;
}

/** Most rotations in an hour: after each, every process reads the accounts in use anew. */
export const MAX_ROTATIONS = 10;

const HOUR = 3_600_000;

/**
 * The count with one rotation more at `now`, ms since the epoch. An hour that began by a clock slightly ahead goes on.
 *
 * @throws {ApiError} `rotation_limit`.
 */
export function countRotation(before: Rotations | undefined, now: number): Rotations {
  const hour = Math.floor(now / HOUR);
  const goesOn = before?.hour === hour || before?.hour === hour + 1;
  const current = before && goesOn ? before : { hour, count: 0 };
  if (current.count >= MAX_ROTATIONS) throw rotationLimit((current.hour + 1) * HOUR - now);
  return { ...current, count: current.count + 1 };
}

function rotationLimit(ms: number): ApiError {
  const seconds = Math.ceil(ms / 1_000);
  const message =
    `No more than ${MAX_ROTATIONS} rotations of an account's key an hour. Try again in ${seconds} s.`;
  return new ApiError("rotation_limit", message, { "retry-after": `${seconds}` });
}
