import type { MonotonicTime } from "../base/mod.ts";
import {
  free,
  type FullWindow,
  giveBack,
  isSame,
  type Limits,
  type Refusal,
  refuse,
  type Returned,
  roll,
  take,
  type Usage,
} from "./usage.ts";
import { counted, merged, NO_REFUSALS, type Refusals, strikesToBan, withRefusal } from "./strikes.ts";

/*
 * The arithmetic of leases: pure functions. `allowance.ts` has the states of permits, `usage.ts` the arithmetic of the
 * row.
 */

/** Permits that a process holds in advance. */
export interface Lease {
  readonly epoch: number;
  readonly minute: number;
  /** The limits when it was taken. */
  readonly limits: Limits;
  /** Number of permits not handed out. */
  left: number;
  /** Number of permits used. */
  used: number;
  /** It is renewed when it has fewer permits left than this. */
  low: number;
  /** When it was taken or last renewed. */
  takenAt: MonotonicTime;
}

/** What a process has not written to the usage row yet. */
export interface Debt {
  readonly returned: readonly Returned[];
  readonly refusals: Refusals;
}

/** No debt. */
export const NO_DEBT: Debt = { returned: [], refusals: NO_REFUSALS };

/** Adds permits to a debt. */
export function owing(debt: Debt, more: Returned): Debt {
  if (more.size === 0 && more.unused === 0) return debt;
  const isAlike = ({ epoch, minute }: Returned) => epoch === more.epoch && minute === more.minute;
  const alike = debt.returned.find(isAlike) ?? { size: 0, unused: 0 };
  const sum = { ...more, size: alike.size + more.size, unused: alike.unused + more.unused };
  return { ...debt, returned: [...debt.returned.filter((one) => !isAlike(one)), sum] };
}

/** Joins two debts. */
export function joined(one: Debt, other: Debt): Debt {
  if (one === NO_DEBT) return other;
  const { returned } = other.returned.reduce(owing, one);
  return { returned, refusals: merged(one.refusals, other.refusals) };
}

/** A debt without the refusals. */
export function withoutRefusals(debt: Debt): Debt {
  return { ...debt, refusals: NO_REFUSALS };
}

/** The permits that go back when a lease ends. */
export function detach({ epoch, minute, left, used }: Lease): Returned {
  return { epoch, minute, size: left + used, unused: left };
}

/** The permits that a lease has used. They are no longer leased. */
export function spent({ epoch, minute, used }: Lease): Returned {
  return { epoch, minute, size: used, unused: 0 };
}

/**
 * How many permits a process should hold: twice as many as it has served since its last transaction, and at least a
 * hundredth of those that are free. `take()` grants it at most a quarter.
 */
export function nextSize(served: number, free: number): number {
  return Math.max(2 * served, Math.floor(free / 100));
}

/** A request for a permit. */
export interface Asking {
  /** When it arrived. */
  readonly at: MonotonicTime;
  /** Whether it is served even if it is refused, so that its refusal does not count. */
  readonly isSpared?: boolean | undefined;
}

/** What a process needs from a usage row. */
export interface Demand<Request extends Asking> {
  readonly debt: Debt;
  readonly requests: readonly Request[];
  /** Number of requests served since the last transaction. */
  readonly served: number;
  /** Number of permits held; undefined if none are to be leased, because the process only gives some back. */
  readonly left: number | undefined;
  /** Whether requests wait while a window is full, because permits might be given back. */
  readonly mayWait: (usage: Usage, window: FullWindow) => boolean;
}

/** A request that is refused. */
export interface RefusedRequest<Request> {
  readonly request: Request;
  readonly refusal: Refusal;
}

/** What a run's transaction does about a holder's usage and waiting requests. */
export interface RunOutcome<Request> {
  /** The usage once the debt is paid. */
  readonly paid: Usage;
  /** The usage afterwards. */
  readonly usage: Usage;
  /** Whether the usage must be written. */
  readonly isChange: boolean;
  /** Number of permits leased. */
  readonly ahead: number;
  /** Whether the process needs more permits, but none can be leased. */
  readonly isDenied: boolean;
  readonly granted: readonly Request[];
  readonly refused: readonly RefusedRequest<Request>[];
  /** The refusals that the usage counts afterwards. */
  readonly refusals: Refusals;
  /** Requests that wait for permits to be given back. */
  readonly waiting: readonly Request[];
}

/** Decides a run: pays the debt, takes permits, and then refuses the remaining requests or lets them wait. */
export function decideRun<Request extends Asking>(
  before: Usage,
  limits: Limits,
  { debt, requests, served, left, mayWait }: Demand<Request>,
  now: number,
): RunOutcome<Request> {
  const paid = pay(before, limits, debt, now);
  const size = left === undefined ? 0 : nextSize(served, free(roll(paid, now), limits)) - left;
  const taken = take(paid, limits, { waiting: requests.length, ahead: Math.max(0, size) }, now);
  const rest = requests.slice(taken.granted);
  const waits = taken.refusal !== undefined && taken.refusal !== "ban" && mayWait(taken.usage, taken.refusal);
  const { refused, refusals, usage } = waits || taken.refusal === undefined
    ? { refused: [], refusals: debt.refusals, usage: taken.usage }
    : refuseAll(rest, taken.usage, limits, taken.refusal, debt.refusals, now);
  return {
    paid,
    usage,
    // A window that has only moved to `now` is not written, because any reader can move it.
    isChange: !isSame(usage, roll(before, now)) || !isSame(paid, before),
    ahead: taken.ahead,
    isDenied: size > 0 && taken.ahead === 0,
    granted: requests.slice(0, taken.granted),
    refused,
    refusals,
    waiting: waits ? rest : [],
  };
}

/** Gives permits back and counts refusals. Those of a minute that is over never lead to a ban. */
function pay(before: Usage, limits: Limits, { returned, refusals }: Debt, now: number): Usage {
  const usage = returned.reduce(giveBack, before);
  if (refusals.minute !== usage.minute || refusals.count === 0) return usage;
  return refuse(usage, limits, roll(usage, now) === usage ? refusals : { ...refusals, strikes: 0 }, now);
}

/** Refuses requests in order. After too many strikes, the rest are refused because of a ban. */
function refuseAll<Request extends Asking>(
  requests: readonly Request[],
  usage: Usage,
  limits: Limits,
  refusal: Refusal,
  before: Refusals,
  now: number,
): Pick<RunOutcome<Request>, "refused" | "refusals" | "usage"> {
  const refused: RefusedRequest<Request>[] = [];
  let refusals = counted(before);
  let isBanned = refusal === "ban";
  for (const request of requests) {
    if (!isBanned && !request.isSpared) {
      const { strikes } = refusals;
      refusals = withRefusal(refusals, usage.minute, request.at);
      isBanned = refusals.strikes > strikes && usage.strikes + refusals.strikes >= strikesToBan(limits);
    }
    refused.push({ request, refusal: isBanned ? "ban" : refusal });
  }
  return { refused, refusals, usage: refusals.count === 0 ? usage : refuse(usage, limits, refusals, now) };
}
