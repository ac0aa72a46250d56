import { type PastDay, pastDay } from "../accounts/day_totals.ts";
import type { Limits } from "../accounts/plans.ts";
import { isSame, type Refusal, roll, strike, type Usage, windowEnd } from "../accounts/usage.ts";
import type { OtherProcesses } from "./other_processes.ts";
import { type Demand, type Lease, settle, take } from "./places.ts";

/** What a process has to say and to ask when its next commit comes to an account. */
export interface Wish extends Demand {
  /** Leases that hand out nothing any more. */
  readonly settled: readonly Lease[];
  /** Refusals that are not written yet. */
  readonly strikes: number;
  /** Those without a place wait for what they hold of a full window. */
  readonly others: OtherProcesses;
}

/** What a commit is to make of an account's usage, and of those who wait. */
export interface Proposal {
  /** Leases that it settles. */
  readonly settled: readonly Lease[];
  readonly usage: Usage;
  /** Limits that it was made under. */
  readonly limits: Limits;
  /** Whether that differs from what the row says. */
  readonly isChange: boolean;
  /** How many of those who wait get a place. */
  readonly granted: number;
  /** Why those after them are refused, each; others go on waiting. */
  readonly refusals: readonly Refusal[];
  /** Places leased on top. */
  readonly ahead: number;
  /** What a day came to that ends with this commit. */
  readonly pastDay: PastDay | undefined;
}

/** Proposes what a commit at `now` (ms since the epoch) is to make of the usage. */
export function propose(usage: Usage, limits: Limits, wish: Wish, now: number): Proposal {
  const { settled, strikes, waiting, others } = wish;
  const given = settled.reduce(settle, usage);
  const before = strikes > 0 ? strike(given, limits, strikes, now) : given;
  const taken = take(before, limits, wish, now);
  const { refusal } = taken;
  const rest = waiting - taken.granted;
  const isAwaiting = rest > 0 && refusal !== undefined && refusal !== "ban" &&
    others.mayGiveBack(taken.usage, refusal, now) && others.awaitPlacesUntil(windowEnd(taken.usage, refusal));
  const strikesLeft = Math.max(0, limits.minute - taken.usage.strikes);
  const refusals = isAwaiting ? [] : refusalsOf(refusal, strikesLeft, rest);
  // During a ban requests are no strikes, but the one that brings it about is.
  const struck = refusal === "ban" ? 0 : Math.min(refusals.length, strikesLeft + 1);
  const after = struck > 0 ? strike(taken.usage, limits, struck, now) : taken.usage;
  return {
    settled,
    usage: after,
    limits,
    // That time has passed is no change: all who read the row know it, too.
    isChange: !isSame(after, roll(usage, now)) || !isSame(before, usage),
    granted: taken.granted,
    refusals,
    ahead: taken.ahead,
    pastDay: pastDay(before, after),
  };
}

/** Why each of those without a place is refused: for a ban, once no strikes are left. */
function refusalsOf(refusal: Refusal | undefined, strikesLeft: number, count: number): readonly Refusal[] {
  if (refusal === undefined) return [];
  return Array.from({ length: count }, (_, index) => index < strikesLeft ? refusal : "ban");
}
