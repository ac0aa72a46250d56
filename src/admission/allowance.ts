import { type Account, decodeAccount, isOpenedBy, type Limits } from "../accounts/account.ts";
import { type AccountState, stateKeys } from "../accounts/account_store.ts";
import {
  decide,
  type Decision,
  decodeUsage,
  encodeUsage,
  type FullWindow,
  fullWindow,
  isSame,
  type Refusal,
  type Returned,
  roll,
  settle,
  strike,
  take,
  type Taken,
  type Usage,
  windowEnd,
} from "../accounts/usage.ts";
import { dayTotalKey, pastDay } from "../accounts/usage_days.ts";
import { AGAIN } from "../kv/deadline.ts";
import { encodeJson, type Entry } from "../kv/row.ts";
import type { KnownRow, Rows, Write } from "../store/transaction.ts";

/*
 * An allowance is what one process knows and holds of one account. Its usage row counts permits, and a permit is counted
 * before it is used: none is ever used that is not in the row, whatever crashes. So that not every request costs a commit,
 * a transaction takes more permits than requests wait for it: a lease, which the process hands out from memory.
 *
 *     take()      a permit of the lease, without a commit. `confirm()` or `withdraw()` it once.
 *     request()   a request waits for the next transaction, for no permit is at hand
 *     decide()    what that transaction makes of the two rows: it gives permits back, takes those for the requests that wait
 *                 and for the lease, and notes refusals. It changes nothing here, for it may run again.
 *     apply()     the transaction was carried out: what it gave back is gone, what it took is there, requests are answered
 *     fail()      it was not
 *     lose()      nobody knows: what it gave back is gone, and it gives nothing
 *
 * What leaves and comes, one permit at a time:
 *
 *     row  →  lease.left  →  unconfirmed  →  lease.used  →  no longer leased
 *              ↓     ↑            ↓
 *     row  ←  lease ended  ←  withdrawn
 *
 * A lease that has ended hands out nothing. As long as some may come back here or in another process, memory
 * refuses nobody because of a full window: requests wait for them, for PATIENCE at most.
 */

/** How leases are sized and kept, in ms. */
export interface LeaseTimes {
  /** How long a lease should last at the recent rate. */
  readonly span: number;
  /** How long it takes to renew one. */
  readonly renewal: number;
  /** For how long nobody is likely to have written a shared row since it was seen. */
  readonly unchanged: number;
  /** How old one becomes. */
  readonly life: number;
}

/** No process keeps a lease for longer, in ms, wherever its KV is. */
export const LONGEST_LIFE = 2_000;
/** After so long, in ms, others have given back what they held, or never will. */
export const PATIENCE = LONGEST_LIFE + 1_000;
/** How long a row counts as shared after another process has written it, in ms. */
const SHARED_FOR = 10_000;
/** Upper bound on what a lease has for each request served, so that two simultaneous ones are not taken for a high rate. */
const MOST_PER_SERVED = 16;

/** Permits that were taken ahead of need. */
export interface Lease {
  readonly epoch: number;
  readonly minute: number;
  /** Limits that it was taken under. */
  readonly limits: Limits;
  /** Permits to hand out. */
  left: number;
  /** Permits that were used, and count as leased until the next transaction. */
  used: number;
  /** When it was taken or renewed last, by `performance.now()`. */
  takenAt: number;
}

/** Refusals that are not in the row yet. */
interface Strikes {
  count: number;
  /** When the first of them was, by `performance.now()`. */
  since: number;
}

/** What a transaction gives back of a lease. */
interface ReturnedOf extends Returned {
  readonly lease: Lease;
}

/** A request that waits for a permit. */
interface Waiting extends Omit<PromiseWithResolvers<Decision | typeof AGAIN>, "promise">, KeyUse {}

/** A key as a request brought it. */
export interface KeyUse {
  /** Its hash. */
  readonly hash: string;
  /** When the request arrived, ms since the epoch. */
  readonly now: number;
}

/** A full window that requests wait for, and when it ends, ms since the epoch. */
interface Awaited {
  readonly window: FullWindow;
  readonly end: number;
}

/** Until when (ms since the epoch) what others hold of a window counts as used. */
type Lost = Readonly<Record<FullWindow, number>>;

const NOTHING_LOST: Lost = { minute: 0, day: 0 };

/** What a transaction makes of an account's usage, and of the requests that wait. */
export interface Run {
  /** When it decided, ms since the epoch. */
  readonly now: number;
  readonly state: AccountState;
  /** The usage after it. */
  readonly usage: Usage;
  /** What it gives back. */
  readonly returned: readonly ReturnedOf[];
  /** Refusals that it writes, and how many of them. */
  readonly strikes: Strikes;
  readonly struck: number;
  /** Requests with a permit. */
  readonly granted: readonly Waiting[];
  /** Requests that are refused, and why. */
  readonly refused: readonly { readonly request: Waiting; readonly refusal: Refusal }[];
  /** Requests whose key no longer opens the account. */
  readonly turnedAway: readonly Waiting[];
  /** Permits leased on top. */
  readonly ahead: number;
  /** Requests a ms. */
  readonly rate: number;
  /** The full window that the others wait for permits of. */
  readonly awaited: FullWindow | undefined;
}

/** What one process knows and holds of one account. */
export class Allowance {
  /** The account and its usage, as they were seen last. */
  #state: AccountState;
  /** Version of the accounts that this was read under; undefined if it has to be read again. */
  accountsVersion: string | undefined;
  /** Whether the rows are known as they are, unless another process has changed them. */
  #isKnown = true;
  #lease: Lease | undefined;
  /** Permits that were handed out and may come back. */
  #unconfirmed = 0;
  /** Leases that hand out nothing any more, and have something to give back. */
  readonly #ended: Set<Lease> = new Set();
  #waiting: Waiting[] = [];
  /** How many of them waited when the transaction began that is on its way. */
  #begun = 0;
  /** Others replace these when the account or the minute changes. */
  #strikes: Strikes = { count: 0, since: 0 };
  /** Requests served since the last transaction, and when that was, by `performance.now()`. */
  #served = 0;
  #servedSince = -Infinity;
  /** With fewer permits left than this, the lease is renewed. */
  #low = 0;
  /** When the usage row was seen last, and until when it counts as shared, by `performance.now()`. */
  #seenAt = performance.now();
  #sharedUntil = 0;
  /** Until when requests wait for permits that others hold, by `performance.now()`; 0 if none does. */
  #awaitsUntil = 0;
  /** The window that they wait for. */
  #awaited: Awaited = { window: "minute", end: 0 };
  /** What others did not give back in time. */
  #lostUntil = NOTHING_LOST;
  /** By `performance.now()`. */
  #postponedUntil = 0;

  constructor(state: AccountState) {
    this.#state = state;
  }

  /** The account, as it was seen last. */
  get account(): Account {
    return this.#state.account;
  }

  /** Whether something is not in the rows yet, or may still come back. */
  get isActive(): boolean {
    return this.isUnsettled || this.#unconfirmed > 0 || this.#waiting.length > 0;
  }

  /** Whether permits are held that were not used. */
  get isLeased(): boolean {
    return this.#lease !== undefined || this.#ended.size > 0;
  }

  /** How many permits can be handed out. */
  get left(): number {
    return this.#lease?.left ?? 0;
  }

  /** Whether the lease should be renewed, because it may run out before that can be done. */
  get isLow(): boolean {
    return this.#lease !== undefined && this.left < this.#low;
  }

  /** Whether something is to be written, if nobody waited. */
  get isUnsettled(): boolean {
    return this.isLeased || this.#strikes.count > 0;
  }

  /** Whether requests wait for permits that others hold. */
  get isAwaiting(): boolean {
    return this.#awaitsUntil > 0;
  }

  /** Whether other processes have written the usage row recently. */
  get isShared(): boolean {
    return performance.now() < this.#sharedUntil;
  }

  /** The lease, if it has a permit for a request at `now` (ms since the epoch). */
  leaseAt(now: number): Lease | undefined {
    const lease = this.#lease;
    return lease && lease.left > 0 && this.#isValid(lease, now) ? lease : undefined;
  }

  /** Takes a permit of the lease: for good, or until it is confirmed or withdrawn. */
  take(lease: Lease, now: number, isForGood: boolean): Decision {
    lease.left--;
    if (isForGood) lease.used++;
    else this.#unconfirmed++;
    this.#served++;
    return this.#decision(this.#state.usage, this.account.limits, this.left, undefined, now);
  }

  /** A permit was used that `take()` gave. */
  confirm(lease: Lease): void {
    this.#unconfirmed--;
    lease.used++;
    if (lease !== this.#lease) this.#ended.add(lease);
  }

  /** A permit was not used that `take()` gave. */
  withdraw(lease: Lease): void {
    this.#unconfirmed--;
    lease.left++;
    if (lease !== this.#lease) this.#ended.add(lease);
  }

  /** Refuses a request from memory, where only time or an operator can change that; undefined if it takes a transaction. */
  refuse(now: number): Decision | undefined {
    const refusal = this.#certainRefusal(now);
    if (refusal === undefined) return undefined;
    const { usage, account: { limits } } = this.#state;
    if (refusal !== "ban") {
      if (usage.strikes + this.#strikes.count >= limits.minute) return undefined; // The next one bans.
      if (this.#strikes.count++ === 0) this.#strikes.since = performance.now();
    }
    return this.#decision(usage, limits, 0, refusal, now);
  }

  /** Whether memory cannot decide on a request. */
  needsTransaction(now: number): boolean {
    return this.leaseAt(now) === undefined && this.#certainRefusal(now) === undefined;
  }

  /** What the next transaction decides on a request with a key; AGAIN if it has to be recognized anew. */
  request({ hash, now }: KeyUse): Promise<Decision | typeof AGAIN> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject, hash, now }));
  }

  /** Whether it is time for a transaction. */
  isDue(now: number, { life }: LeaseTimes): boolean {
    if (this.#waiting.length > 0) return true;
    if (performance.now() < this.#postponedUntil) return false;
    return this.isLow || this.#strikesAreDue(life) || this.#ended.size > 0 ||
      (this.#lease !== undefined && this.#isOver(this.#lease, now, life));
  }

  /**
   * Gets ready for a transaction. A lease ends if it is over, or had no permit for requests that wait: it hands out nothing
   * any more, and is given back.
   */
  begin(now: number, { life }: LeaseTimes): void {
    const lease = this.#lease;
    if (lease && (this.#waiting.length > 0 || this.#isOver(lease, now, life))) this.#endLease(lease);
    this.#begun = this.#waiting.length;
  }

  /** The rows that a transaction decides on: as they are known, or to be read. */
  reads({ unchanged }: LeaseTimes): readonly (Deno.KvKey | KnownRow)[] {
    const { account: { id }, accountRow, usageRow } = this.#state;
    const isOld = (this.isAwaiting || this.isShared) && performance.now() - this.#seenAt > unchanged;
    if (!this.#isKnown || isOld) return stateKeys(id);
    return [accountRow, usageRow].map((entry) => ({ key: entry.key, entry }));
  }

  /** Decides what a transaction writes; undefined if there is no account any more. */
  decide(rows: Rows, write: Write, now: number, { span }: LeaseTimes): Run | undefined {
    const { id } = this.account;
    const [accountKey, usageKey] = stateKeys(id);
    const state = this.#stateIn(rows.get(accountKey), rows.get(usageKey));
    if (state === undefined) return undefined;
    const { account, usage } = state;
    const { limits } = account;
    const isOpen = (key: KeyUse) => account.suspendedAt === null && isOpenedBy(account, key.hash, key.now);
    const waiting = this.#waiting.filter(isOpen);
    const strikes = isOfSameMinute(this.#state, state) ? this.#strikes.count : 0;
    const returned = this.#toReturn();
    const rate = this.#served / Math.max(1, performance.now() - this.#servedSince);

    const settled = returned.reduce(settle, usage);
    const before = strikes > 0 ? strike(settled, limits, strikes, now) : settled;
    const wanted = Math.floor(this.#within(span, rate)) - this.left;
    const taken = take(before, limits, { waiting: waiting.length, ahead: Math.max(0, wanted) }, now);
    const rest = waiting.slice(taken.granted);
    const lost = isSameRow(state.accountRow, this.#state.accountRow) ? this.#lostUntil : NOTHING_LOST;
    const awaited = rest.length > 0 ? this.#awaitedIn(taken, lost, now) : undefined;
    const strikesLeft = Math.max(0, limits.minute - taken.usage.strikes);
    const refused = awaited ? [] : refusals(rest, taken.refusal, strikesLeft);
    // During a ban requests are no strikes, but the one that brings it about is.
    const count = taken.refusal === "ban" ? 0 : Math.min(refused.length, strikesLeft + 1);
    const after = count > 0 ? strike(taken.usage, limits, count, now) : taken.usage;

    // That time has passed is no change: all that read the row know it, too.
    const isChange = !isSame(after, roll(usage, now)) || !isSame(before, usage);
    if (isChange) {
      write.set(usageKey, encodeUsage(after));
      const past = pastDay(before, after);
      if (past) write.set(dayTotalKey(past.day, id), encodeJson(past.total));
    }
    return {
      now,
      state,
      usage: after,
      returned,
      strikes: this.#strikes,
      struck: this.#strikes.count,
      granted: waiting.slice(0, taken.granted),
      // Without a commit, the rows may be older than a request that came later.
      refused: isChange ? refused : refused.filter(({ request }) => this.#hasBegunWith(request)),
      turnedAway: this.#waiting.filter((request) => !isOpen(request)),
      ahead: taken.ahead,
      rate,
      awaited,
    };
  }

  /** A run was carried out, and left the rows like this. */
  apply(run: Run, rows: readonly KnownRow[], { renewal }: LeaseTimes): void {
    const { now, state, usage, granted, refused, turnedAway, ahead, rate } = run;
    const { limits } = state.account;
    this.#useUp(run);
    this.see(state);
    const [accountRow, usageRow] = rows;
    const own = this.#stateIn(accountRow?.entry, usageRow?.entry);
    if (own) this.#see(own);
    this.#isKnown = true;
    if (ahead > 0) this.#addToLease(usage, limits, ahead);
    const until = this.#within(renewal, rate);
    this.#low = until + 1.5 * Math.sqrt(until);
    this.#served = granted.length;
    this.#servedSince = performance.now();
    const { left } = this;
    granted.forEach(({ resolve }, index) =>
      resolve(this.#decision(usage, limits, left + granted.length - 1 - index, undefined, now))
    );
    for (const { request, refusal } of refused) {
      request.resolve(this.#decision(usage, limits, 0, refusal, now));
    }
    for (const { resolve } of turnedAway) resolve(AGAIN);
    const answered = new Set([...granted, ...refused.map(({ request }) => request), ...turnedAway]);
    this.#waiting = this.#waiting.filter((request) => !answered.has(request));
    // Those that came since may find a permit now.
    if (this.leaseAt(now)) this.#turnAway();
    this.#noteAwaited(run.awaited && { window: run.awaited, end: windowEnd(usage, run.awaited) });
  }

  /** A run may have been carried out: it has used up what it took from here, and grants nothing. */
  lose(run: Run, error: unknown): void {
    this.#useUp(run);
    this.fail(error);
  }

  /** A transaction was not carried out. */
  fail(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#awaitsUntil = 0;
    this.#isKnown = false;
    this.#postponedUntil = performance.now() + LONGEST_LIFE;
  }

  /** Holds nothing any more: the account is gone, or what is held can never be given back. */
  drop(): void {
    this.#turnAway();
    this.#lease = undefined;
    this.#ended.clear();
    this.#strikes = { count: 0, since: 0 };
    this.#awaitsUntil = 0;
    this.#isKnown = false;
    this.accountsVersion = undefined;
  }

  /** Takes note of both rows as they were read; a newer usage row is another process's. */
  see(state: AccountState): void {
    const isNews = state.usageRow.versionstamp > this.#state.usageRow.versionstamp;
    if (isNews && this.#isKnown) this.#sharedUntil = performance.now() + SHARED_FOR;
    this.#see(state);
  }

  /** The usage that these rows tell, or newer ones, as it would be if every permit were given back that can be. */
  usageWithoutLease({ usage, usageRow }: AccountState, isChanging: boolean): Usage {
    // While a transaction is on its way, the row may tell of a lease that is not held yet.
    const isNews = usageRow.versionstamp > this.#state.usageRow.versionstamp && !isChanging;
    const held = [...this.#ended, ...this.#lease ? [this.#lease] : []].map((lease) => ({
      ...lease,
      size: lease.left,
    }));
    return held.reduce(settle, isNews ? usage : this.#state.usage);
  }

  /** Keeps the newer of the rows; strikes from before the account or the minute changed do not count. */
  #see(state: AccountState): void {
    const known = this.#state;
    const isNewer = state.accountRow.versionstamp > known.accountRow.versionstamp;
    const isUsageNewer = state.usageRow.versionstamp > known.usageRow.versionstamp;
    if (!isNewer && !isUsageNewer) return;
    const { account, accountRow } = isNewer ? state : known;
    const { usage, usageRow } = isUsageNewer ? state : known;
    this.#state = { account, accountRow, usage, usageRow };
    if (isNewer) this.#lostUntil = NOTHING_LOST;
    if (isUsageNewer) this.#seenAt = performance.now();
    if (!isOfSameMinute(known, this.#state)) this.#strikes = { count: 0, since: 0 };
  }

  /** What rows tell; undefined if there is no account any more. */
  #stateIn(
    accountRow: Entry | null | undefined,
    usageRow: Entry | null | undefined,
  ): AccountState | undefined {
    if (!accountRow || !usageRow) return undefined;
    const known = this.#state;
    // Not by their versions: a row that a neighbour in the same commit has changed still has its version of before.
    const account = accountRow === known.accountRow ? known.account : decodeAccount(accountRow);
    const usage = usageRow === known.usageRow ? known.usage : decodeUsage(usageRow);
    return { account, accountRow, usage, usageRow };
  }

  /** Why a request is refused, where only time or an operator can change that. */
  #certainRefusal(now: number): Refusal | undefined {
    const { usage, account: { limits } } = this.#state;
    const current = roll(usage, now);
    if (current.bannedUntil > now) return "ban";
    if (current !== usage || this.isLeased || this.#unconfirmed > 0) return undefined;
    const window = fullWindow(usage, limits);
    return window && mayComeBack(usage, window, now, this.#lostUntil) ? undefined : window;
  }

  /** The window that requests wait for permits of; undefined if none may come back, or that took too long. */
  #awaitedIn({ usage, refusal }: Taken, lost: Lost, now: number): FullWindow | undefined {
    if (!refusal || refusal === "ban" || !mayComeBack(usage, refusal, now, lost)) return undefined;
    const isNew = !this.isAwaiting || windowEnd(usage, refusal) > this.#awaited.end;
    return isNew || performance.now() < this.#awaitsUntil ? refusal : undefined;
  }

  /** Waits, or goes on, for permits of a window; or no longer. */
  #noteAwaited(awaited: Awaited | undefined): void {
    const time = performance.now();
    if (awaited === undefined) {
      const { window, end } = this.#awaited;
      if (this.isAwaiting && time >= this.#awaitsUntil) {
        this.#lostUntil = { ...this.#lostUntil, [window]: end };
      }
      this.#awaitsUntil = 0;
    } else if (!this.isAwaiting || awaited.end > this.#awaited.end) {
      this.#awaitsUntil = time + PATIENCE;
      this.#awaited = awaited;
    }
  }

  /** Whether a request waited when the transaction began. */
  #hasBegunWith(request: Waiting): boolean {
    return this.#waiting.indexOf(request) < this.#begun;
  }

  #strikesAreDue(life: number): boolean {
    const left = this.account.limits.minute - this.#state.usage.strikes;
    const { count, since } = this.#strikes;
    return count > 0 && (count * 4 > left || performance.now() - since > life);
  }

  /** Whether a lease hands out permits: nothing has changed since it was taken. */
  #isValid({ epoch, minute, limits }: Lease, now: number): boolean {
    const { usage, account: { limits: current } } = this.#state;
    return epoch === usage.epoch && minute === usage.minute && roll(usage, now) === usage &&
      isSameLimits(limits, current);
  }

  #isOver(lease: Lease, now: number, life: number): boolean {
    return lease.left === 0 || performance.now() - lease.takenAt > life || !this.#isValid(lease, now);
  }

  #addToLease({ epoch, minute }: Usage, limits: Limits, ahead: number): void {
    const takenAt = performance.now();
    const lease = this.#lease;
    if (lease?.epoch === epoch && lease.minute === minute && isSameLimits(lease.limits, limits)) {
      lease.left += ahead;
      lease.takenAt = takenAt;
    } else {
      if (lease) this.#endLease(lease);
      this.#lease = { epoch, minute, limits, left: ahead, used: 0, takenAt };
    }
  }

  #endLease(lease: Lease): void {
    this.#lease = undefined;
    if (lease.left + lease.used > 0) this.#ended.add(lease);
  }

  /** What a transaction gives back: of the lease, that permits were used; of ended ones, all. */
  #toReturn(): ReturnedOf[] {
    const ended = [...this.#ended].map((lease) => ({ ...lease, lease, size: lease.used + lease.left }));
    const lease = this.#lease;
    return lease && lease.used > 0 ? [...ended, { ...lease, lease, size: lease.used, left: 0 }] : ended;
  }

  /** What a run took from here is no longer here. */
  #useUp({ returned, strikes, struck }: Run): void {
    for (const { lease, size, left } of returned) {
      lease.left -= left;
      lease.used -= size - left;
      if (lease.left + lease.used === 0) this.#ended.delete(lease);
    }
    strikes.count -= struck;
  }

  /** Has the requests that wait recognized anew. */
  #turnAway(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve(AGAIN);
  }

  /** How many requests come within `ms`. */
  #within(ms: number, rate: number): number {
    return Math.min(rate * ms, MOST_PER_SERVED * this.#served);
  }

  /** The usage as it will be when ended leases are given back. */
  #onceReturned(usage: Usage): Usage {
    if (this.#ended.size === 0) return usage;
    return [...this.#ended].reduce((before, lease) => settle(before, { ...lease, size: lease.left }), usage);
  }

  #decision(usage: Usage, limits: Limits, left: number, refusal: Refusal | undefined, now: number): Decision {
    // What is on its way back is not used; but a refused request did not get any of it.
    return decide(refusal ? usage : this.#onceReturned(usage), limits, left, refusal, now);
  }
}

/** Why requests without a permit are refused: for a ban, once no strikes are `left`. */
function refusals(requests: readonly Waiting[], refusal: Refusal | undefined, left: number): Run["refused"] {
  if (refusal === undefined) return [];
  return requests.map((request, index) => ({ request, refusal: index < left ? refusal : "ban" }));
}

/** Whether permits of a window may come back that others, or requests of this process, hold. */
function mayComeBack(usage: Usage, window: FullWindow, now: number, lost: Lost): boolean {
  return now >= lost[window] && (window === "day" ? usage.leasedToday : usage.leased) > 0;
}

function isSameLimits(one: Limits, other: Limits): boolean {
  return one.minute === other.minute && one.day === other.day;
}

function isSameRow(one: Entry, other: Entry): boolean {
  return one.versionstamp === other.versionstamp;
}

/** Whether strikes that were gathered in one state count in the other. */
function isOfSameMinute(one: AccountState, other: AccountState): boolean {
  return isSameRow(one.accountRow, other.accountRow) && one.usage.epoch === other.usage.epoch &&
    one.usage.minute === other.usage.minute;
}
