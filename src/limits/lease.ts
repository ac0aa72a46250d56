import {
  free,
  type FullWindow,
  giveBack,
  isSame,
  type Limits,
  type Refusal,
  refuse,
  type Refused,
  type Returned,
  roll,
  take,
  type Usage,
} from "./usage.ts";

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
  /** When it was taken or last renewed, on the `performance.now()` clock. */
  takenAt: number;
}

/** Refusals in one state of a holder's rows. */
export interface RefusedIn extends Refused {
  /** The name of the state, as `nameOfState()` returns it. The refusals count only while the state is the same. */
  readonly of: string;
  /** Time of the first refusal, on the `performance.now()` clock. */
  readonly since: number;
}

/** What a process has not written to the usage row yet. */
export interface Debt {
  readonly returned: readonly Returned[];
  readonly refused: RefusedIn | undefined;
}

/** No debt. */
export const NO_DEBT: Debt = { returned: [], refused: undefined };

/** Adds permits to a debt. */
export function owing(debt: Debt, more: Returned): Debt {
  if (more.size === 0 && more.unused === 0) return debt;
  const isAlike = ({ epoch, minute }: Returned) => epoch === more.epoch && minute === more.minute;
  const alike = debt.returned.find(isAlike) ?? { size: 0, unused: 0 };
  const sum = { ...more, size: alike.size + more.size, unused: alike.unused + more.unused };
  return { ...debt, returned: [...debt.returned.filter((one) => !isAlike(one)), sum] };
}

/** Adds refusals to a debt. They replace refusals in another state of the rows. */
export function withRefused(debt: Debt, more: RefusedIn): Debt {
  const { refused } = debt;
  if (refused?.of !== more.of) return { ...debt, refused: more };
  const sum = { ...refused, count: refused.count + more.count, strikes: refused.strikes + more.strikes };
  return { ...debt, refused: sum };
}

/** Joins two debts. The refusals of the second one are the later ones. */
export function joined(one: Debt, other: Debt): Debt {
  if (one === NO_DEBT) return other;
  const debt = other.returned.reduce(owing, one);
  return other.refused ? withRefused(debt, other.refused) : debt;
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

/** What a process needs from a usage row. */
export interface Demand<Request> {
  readonly debt: Debt;
  /** The name of the rows' current state. */
  readonly of: string;
  readonly requests: readonly Request[];
  /** Number of requests served since the last transaction. */
  readonly served: number;
  /** Number of permits held; undefined if none are to be leased, because the process only gives some back. */
  readonly left: number | undefined;
  /** Whether requests wait while a window is full, because permits might be given back. */
  readonly mayWait: (usage: Usage, window: FullWindow) => boolean;
  /** Whether the refusal of a request is a strike. */
  readonly isStrike: (request: Request, usage: Usage) => boolean;
}

/** A request that is refused. */
export interface RefusedRequest<Request> {
  readonly request: Request;
  readonly refusal: Refusal;
}

/** What a run's transaction does about a holder's usage and waiting requests. */
export interface RunPlan<Request> {
  /** The usage once the debt is settled. */
  readonly settled: Usage;
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
  /** Requests that wait for permits to be given back. */
  readonly waiting: readonly Request[];
}

/** Plans a transaction: settles the debt, takes permits, and then refuses the remaining requests or lets them wait. */
export function plan<Request>(
  before: Usage,
  limits: Limits,
  { debt, of, requests, served, left, mayWait, isStrike }: Demand<Request>,
  now: number,
): RunPlan<Request> {
  const returned = debt.returned.reduce(giveBack, before);
  const settled = debt.refused?.of === of ? refuse(returned, limits, debt.refused, now) : returned;
  const size = left === undefined ? 0 : nextSize(served, free(roll(settled, now), limits)) - left;
  const taken = take(settled, limits, { waiting: requests.length, ahead: Math.max(0, size) }, now);
  const rest = requests.slice(taken.granted);
  const waits = taken.refusal !== undefined && taken.refusal !== "ban" && mayWait(taken.usage, taken.refusal);
  const { refused, usage } = waits
    ? { refused: [], usage: taken.usage }
    : refuseAll(rest, taken.usage, limits, taken.refusal, isStrike, now);
  return {
    settled,
    usage,
    // A window that has only moved to `now` is not written, because any reader can move it.
    isChange: !isSame(usage, roll(before, now)) || !isSame(settled, before),
    ahead: taken.ahead,
    isDenied: size > 0 && taken.ahead === 0,
    granted: requests.slice(0, taken.granted),
    refused,
    waiting: waits ? rest : [],
  };
}

/** Refuses requests in order. After too many strikes, the rest are refused because of a ban. */
function refuseAll<Request>(
  requests: readonly Request[],
  usage: Usage,
  limits: Limits,
  refusal: Refusal | undefined,
  isStrike: (request: Request, usage: Usage) => boolean,
  now: number,
): { readonly refused: readonly RefusedRequest<Request>[]; readonly usage: Usage } {
  if (refusal === undefined) return { refused: [], usage };
  const refused: RefusedRequest<Request>[] = [];
  let [count, strikes, isBanned] = [0, 0, refusal === "ban"];
  for (const request of requests) {
    if (!isBanned) {
      count++;
      if (isStrike(request, usage)) isBanned = usage.strikes + ++strikes > limits.minute;
    }
    refused.push({ request, refusal: isBanned ? "ban" : refusal });
  }
  return { refused, usage: count === 0 ? usage : refuse(usage, limits, { count, strikes }, now) };
}
