import type { Limits } from "../accounts/plans.ts";
import { roll, type Usage } from "../accounts/usage.ts";
import { type Lease, settle } from "./places.ts";

/** How leases are sized and kept, in ms. */
export interface LeaseTimes {
  /** How long a lease should last at the recent rate. */
  readonly span: number;
  /** How long it takes to take one. */
  readonly renewal: number;
  /** For how long nobody is likely to have written a shared row since it was seen. */
  readonly unchanged: number;
  /** How old one becomes. */
  readonly life: number;
}

/** No process keeps a lease for longer, in ms, wherever its KV is. */
export const LONGEST_LIFE = 2_000;

/**
 * How leases are sized and kept where KV takes `roundTrip` ms to answer. Where other processes write the same
 * row, each commit may come to nothing because of one of theirs: leases last longer, and there are fewer.
 */
export function leaseTimes(roundTrip: number, isShared: boolean): LeaseTimes {
  const unchanged = roundTrip / 2;
  if (isShared) {
    const life = Math.min(Math.max(1_000, 20 * roundTrip), LONGEST_LIFE);
    return { span: life, renewal: 3 * roundTrip, unchanged, life };
  }
  const life = Math.min(Math.max(250, 8 * roundTrip), LONGEST_LIFE);
  return { span: Math.max(200, 2 * roundTrip), renewal: 2 * roundTrip, unchanged, life };
}

/** A lease in the hands of the process that took it. */
export interface HeldLease extends Lease {
  size: number;
  /** How many places were handed out to requests that may still give them back; they count as leased until then. */
  provisional: number;
  /** Limits that it was taken under. */
  readonly limits: Limits;
  /** When that was, by `performance.now()`. */
  readonly takenAt: number;
}

/** The leases of one account that a process holds. */
export class HeldLeases {
  #current: HeldLease[] = [];
  /** Leases that hand out nothing any more, until a commit has settled them. */
  #ending: HeldLease[] = [];
  /** By `performance.now()`. */
  #postponedUntil = 0;

  /** Whether every lease is settled. */
  get isEmpty(): boolean {
    return this.#current.length === 0 && this.#ending.length === 0;
  }

  /** Those that a commit has to settle. */
  get ending(): readonly Lease[] {
    return this.#ending;
  }

  /** How many places can be handed out. */
  get left(): number {
    return this.#current.reduce((sum, { left }) => sum + left, 0);
  }

  /** One that can hand out a place at `now` (ms since the epoch). */
  withPlace(usage: Usage, limits: Limits, now: number): HeldLease | undefined {
    return this.#current.find((lease) => lease.left > 0 && isValid(lease, usage, limits, now));
  }

  /** Whether some ought to be settled: for they are used up, older than `life` (ms), or over. */
  isDue(usage: Usage, limits: Limits, now: number, life: number): boolean {
    return this.#ending.length > 0 || this.#current.some((lease) => isOver(lease, usage, limits, now, life));
  }

  /** Stops handing out places of those that ought to be settled. */
  endDue(usage: Usage, limits: Limits, now: number, life: number): void {
    this.#end((lease) => isOver(lease, usage, limits, now, life));
  }

  /** Stops handing out places. */
  endAll(): void {
    this.#end(() => true);
  }

  /** Lets a while pass before the next commit: the last one failed. */
  postpone(): void {
    this.#postponedUntil = performance.now() + LONGEST_LIFE;
  }

  /** Whether that has not passed yet. */
  get isPostponed(): boolean {
    return performance.now() < this.#postponedUntil;
  }

  /** Forgets what is settled, and holds what was taken. */
  replace(settled: readonly Lease[], taken: HeldLease | undefined): void {
    this.#ending = this.#ending.filter((lease) => !settled.includes(lease));
    if (taken) this.#current.push(taken);
  }

  /** Gives back a place that was handed out provisionally. */
  giveBack(lease: HeldLease): void {
    if (this.#current.includes(lease)) lease.left++;
    else {
      lease.size--;
      this.#ending = [...this.#ending, { ...lease, size: 1, left: 1 }];
    }
    this.keep(lease);
  }

  /** Keeps a place for good that was handed out provisionally, or has just been given back. */
  keep(lease: HeldLease): void {
    lease.provisional--;
    if (lease.provisional > 0 || lease.size === 0 || this.#current.includes(lease)) return;
    this.#ending = [...this.#ending, lease];
  }

  /** The usage as it will be when the leases are given back that hand out nothing any more. */
  usageOnceSettled(usage: Usage): Usage {
    return this.#ending.reduce(settle, usage);
  }

  /** The usage as it would be if every lease were given back. */
  usageWithoutLeases(usage: Usage): Usage {
    return [...this.#current, ...this.#ending].reduce(settle, usage);
  }

  /** Ends leases, but for the places that requests may still give back: those end when the last of these is certain. */
  #end(isToEnd: (lease: HeldLease) => boolean): void {
    const ended = this.#current.filter(isToEnd);
    this.#current = this.#current.filter((lease) => !ended.includes(lease));
    this.#ending = [
      ...this.#ending,
      ...ended.map((lease) => ({ ...lease, size: lease.size - lease.provisional })),
    ];
    for (const lease of ended) {
      lease.size = lease.provisional;
      lease.left = 0;
    }
  }
}

/** Whether places may be handed out: nothing has changed since the lease was taken. */
function isValid({ epoch, minute, limits }: HeldLease, usage: Usage, current: Limits, now: number): boolean {
  return epoch === usage.epoch && minute === usage.minute && roll(usage, now) === usage &&
    limits.minute === current.minute && limits.day === current.day;
}

function isOver(lease: HeldLease, usage: Usage, limits: Limits, now: number, life: number): boolean {
  return lease.left === 0 || performance.now() - lease.takenAt > life || !isValid(lease, usage, limits, now);
}
