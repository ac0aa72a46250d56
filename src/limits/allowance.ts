import { MINUTE, SECOND } from "../base/time.ts";
import { type Holder, type HolderRows, type HolderState, stateKeys } from "./holder.ts";
import {
  decide,
  type Decision,
  decodeUsage,
  encodeUsage,
  type FullWindow,
  fullWindow,
  isSame,
  type Limits,
  minuteEnd,
  type Refusal,
  refuse,
  type Refused,
  type Returned,
  roll,
  settle,
  take,
  type Taken,
  type Usage,
  windowEnd,
} from "./usage.ts";
import { dayTotalKey, pastDay } from "./usage_days.ts";
import { AGAIN } from "../engine/deadline.ts";
import { encodeJson, type Entry } from "../engine/row.ts";
import type { KnownRow, Rows, Write } from "../engine/transaction.ts";

/*
 * An allowance is one account's state in one process: the account's rows as last seen, and the permits that the process
 * holds. The account's usage row counts permits, and a permit is counted before it is used. So a crash never lets more
 * requests in than the limit allows. To avoid a commit per request, a transaction takes more permits than the waiting
 * requests need. The extra ones form a lease, which the process hands out from memory.
 *
 *     take()      hands out a permit from the lease without a commit; later, call `confirm()` or `withdraw()`, once
 *     request()   waits for the next transaction, because the lease has no permit
 *     decide()    is the transaction: it gives permits back, takes permits for waiting requests and for the lease, and
 *                 counts refusals. It changes no field, because it might run again.
 *     apply()     adopts the result once the transaction has been committed, and resolves waiting requests
 *     fail()      handles a transaction that was not committed
 *     lose()      handles a transaction whose result is unknown: the process uses neither the permits that it gave back
 *                 nor those that it took
 *
 * The path of a permit:
 *
 *     row  →  lease.left  →  unconfirmed  →  lease.used  →  no longer leased
 *              ↓     ↑            ↓
 *     row  ←  lease ended  ←  withdrawn
 *
 * An ended lease hands out no permits. If a window is full but this process or another might still give some permits
 * back, requests are not refused from memory. They wait for those permits, for at most PATIENCE.
 */

/** Times that determine the size and life of leases, in ms. */
export interface LeaseTimes {
  /** How long a lease should last at the recent rate. */
  readonly span: number;
  /** How long a renewal takes. */
  readonly renewal: number;
  /** How long a shared row is assumed to stay unchanged after a read. */
  readonly unchanged: number;
  /** Maximum age of a lease. */
  readonly life: number;
}

/** Maximum lease life in any process, in ms. */
export const MAX_LEASE_AGE = 2_000;
/** After this time, in ms, other processes have given their permits back or never will. */
export const PATIENCE = MAX_LEASE_AGE + 1_000;
/** How long a row counts as shared after another process has written it, in ms. */
const SHARED_FOR = 10_000;
/** For this long after the first refusal of a minute, in ms, a client might not know about it. */
export const UNAWARE: number = SECOND;
/** Maximum permits leased per request served. Otherwise two simultaneous requests would look like a high rate. */
const MAX_PER_SERVED = 16;

/** Permits that a process holds in advance. */
export interface Lease {
  readonly epoch: number;
  readonly minute: number;
  /** The limits when it was taken. */
  readonly limits: Limits;
  /** Number of permits not yet handed out. */
  left: number;
  /** Number of permits that were used. The row counts them as leased until the next transaction. */
  used: number;
  /** When it was taken or last renewed, on the `performance.now()` clock. */
  takenAt: number;
}

/** Refusals that are not in the row yet. */
interface Unwritten {
  count: number;
  strikes: number;
  /** Time of the first refusal, on the `performance.now()` clock. */
  since: number;
}

/** When this process first told a client about a refusal, on the `performance.now()` clock. */
interface Told {
  /** End of the minute that the refusal was in, in ms since the epoch. */
  readonly minuteEnd: number;
  readonly at: number;
}

/** Permits that a transaction gives back, with their lease. */
interface ReturnedOf extends Returned {
  readonly lease: Lease;
}

/** A request that is waiting for a permit. */
interface Waiting extends Omit<PromiseWithResolvers<Decision | typeof AGAIN>, "promise">, KeyUse {}

/** The API key of a request. */
export interface KeyUse {
  readonly hash: string;
  /** When the request arrived, in ms since the epoch. */
  readonly now: number;
  /** When the request arrived, on the `performance.now()` clock. */
  readonly arrived: number;
}

/** A full window that requests are waiting on, and its end, in ms since the epoch. */
interface Awaited {
  readonly window: FullWindow;
  readonly end: number;
}

/** For each window, the time (ms since the epoch) until which other processes' permits count as used. */
type WrittenOff = Readonly<Record<FullWindow, number>>;

const NOTHING_WRITTEN_OFF: WrittenOff = { minute: 0, day: 0 };

/** A waiting request that a transaction refuses. */
interface RefusedRequest {
  readonly request: Waiting;
  readonly refusal: Refusal;
  readonly isStrike: boolean;
}

/** A transaction's decisions on an account's usage and waiting requests. */
export interface Run<Of extends Holder> {
  /** Time of the decision, in ms since the epoch. */
  readonly now: number;
  readonly state: HolderState<Of>;
  /** The usage after the transaction. */
  readonly usage: Usage;
  readonly returned: readonly ReturnedOf[];
  /** Refusals that the transaction writes: the first `written` of `unwritten`. */
  readonly unwritten: Unwritten;
  readonly written: Refused;
  /** Requests that get a permit. */
  readonly granted: readonly Waiting[];
  readonly refused: readonly RefusedRequest[];
  /** Requests whose key is no longer valid for the account. */
  readonly unauthorized: readonly Waiting[];
  /** Number of permits added to the lease. */
  readonly ahead: number;
  /** Requests per ms. */
  readonly rate: number;
  /** The full window that the remaining requests are waiting on. */
  readonly awaited: FullWindow | undefined;
}

/** One account's state in one process. */
export class Allowance<Of extends Holder> {
  readonly #rows: HolderRows<Of>;
  /** The account and its usage, as last seen. */
  #state: HolderState<Of>;
  /** The accounts' version when the account was read; undefined if the account must be read again. */
  accountsVersion: string | undefined;
  /** False after a failure, when the rows must be read again. */
  #isKnown = true;
  #lease: Lease | undefined;
  /** Number of permits handed out that can still be withdrawn. */
  #unconfirmed = 0;
  /** Leases that no longer hand out permits, but have some to give back. */
  readonly #ended: Set<Lease> = new Set();
  #waiting: Waiting[] = [];
  /** The length of #waiting when the current transaction began. */
  #begun = 0;
  /** Replaced by a new object when the account or the minute changes. */
  #unwritten: Unwritten = { count: 0, strikes: 0, since: 0 };
  #told: Told = { minuteEnd: 0, at: 0 };
  /** Requests served since the last transaction, and when that was, on the `performance.now()` clock. */
  #served = 0;
  #servedSince = -Infinity;
  /** The lease is renewed when it has fewer permits than this. */
  #low = 0;
  /** When the usage row was last seen, and until when it counts as shared, on the `performance.now()` clock. */
  #seenAt = performance.now();
  #sharedUntil = 0;
  /** Requests wait for others' permits until this time, on the `performance.now()` clock; 0 if none is waiting. */
  #awaitsUntil = 0;
  #awaited: Awaited = { window: "minute", end: 0 };
  #writtenOff = NOTHING_WRITTEN_OFF;
  /** Until this time, on the `performance.now()` clock, no transaction begins unless a request is waiting. */
  #postponedUntil = 0;

  constructor(rows: HolderRows<Of>, state: HolderState<Of>) {
    this.#rows = rows;
    this.#state = state;
  }

  /** The account, as last seen. */
  get holder(): Of {
    return this.#state.holder;
  }

  /** Whether there is something to write or to wait for. */
  get isActive(): boolean {
    return this.isUnsettled || this.#unconfirmed > 0 || this.#waiting.length > 0;
  }

  /** Whether this process holds leased permits. */
  get isLeased(): boolean {
    return this.#lease !== undefined || this.#ended.size > 0;
  }

  /** Number of permits that can be handed out. */
  get left(): number {
    return this.#lease?.left ?? 0;
  }

  /** Whether the lease might run out before it can be renewed. */
  get isLow(): boolean {
    return this.#lease !== undefined && this.left < this.#low;
  }

  /** Whether there are permits or refusals to write, apart from waiting requests. */
  get isUnsettled(): boolean {
    return this.isLeased || this.#unwritten.count > 0;
  }

  /** Whether requests are waiting for permits that other processes hold. */
  get isAwaiting(): boolean {
    return this.#awaitsUntil > 0;
  }

  /** Whether other processes have written the usage row recently. */
  get isShared(): boolean {
    return performance.now() < this.#sharedUntil;
  }

  /** The lease if it has a permit for a request at `now` (ms since the epoch). */
  leaseAt(now: number): Lease | undefined {
    const lease = this.#lease;
    return lease && lease.left > 0 && this.#isValid(lease, now) ? lease : undefined;
  }

  /** Hands out a leased permit. Unless `isFinal`, the permit must be confirmed or withdrawn later. */
  take(lease: Lease, now: number, isFinal: boolean): Decision {
    lease.left--;
    if (isFinal) lease.used++;
    else this.#unconfirmed++;
    this.#served++;
    return this.#decision(this.#state.usage, this.holder.limits, this.left, undefined, now);
  }

  /** Marks a permit from `take()` as used, because its request has been served. */
  confirm(lease: Lease): void {
    this.#unconfirmed--;
    lease.used++;
    if (lease !== this.#lease) this.#ended.add(lease);
  }

  /** Returns an unused permit from `take()` to the lease. */
  withdraw(lease: Lease): void {
    this.#unconfirmed--;
    lease.left++;
    if (lease !== this.#lease) this.#ended.add(lease);
  }

  /** Gives back a permit that counts as used, in the epoch and minute of the decision that handed it out. */
  giveBack({ epoch, minute: { reset } }: Decision): void {
    const { limits } = this.holder;
    // In its row, the permit is no longer leased: this lease returns one permit, but has a size of zero.
    this.#ended.add({ epoch, minute: reset - MINUTE, limits, left: 1, used: -1, takenAt: 0 });
  }

  /** Refuses a request from memory. Undefined if a refusal is not certain: a transaction must then decide. */
  refuse(now: number, arrived: number): Decision | undefined {
    const refusal = this.#certainRefusal(now);
    if (refusal === undefined) return undefined;
    const { usage, holder: { limits } } = this.#state;
    if (refusal !== "ban") {
      const unwritten = this.#unwritten;
      const isStrike = this.#isStrike(arrived, usage);
      if (isStrike && usage.strikes + unwritten.strikes >= limits.minute) return undefined; // It starts a ban.
      if (unwritten.count++ === 0) unwritten.since = performance.now();
      if (isStrike) unwritten.strikes++;
      this.#noteTold(usage);
    }
    return this.#decision(usage, limits, 0, refusal, now);
  }

  /** Whether only a transaction can decide. */
  needsTransaction(now: number): boolean {
    return this.leaseAt(now) === undefined && this.#certainRefusal(now) === undefined;
  }

  /** Resolves to the next transaction's decision, or to AGAIN if the key must be looked up again. */
  request(key: KeyUse): Promise<Decision | typeof AGAIN> {
    return new Promise((resolve, reject) => this.#waiting.push({ ...key, resolve, reject }));
  }

  /** Whether a transaction should begin. */
  isDue(now: number, { life }: LeaseTimes): boolean {
    if (this.#waiting.length > 0) return true;
    if (performance.now() < this.#postponedUntil) return false;
    return this.isLow || this.#strikesAreDue(life) || this.#ended.size > 0 ||
      (this.#lease !== undefined && this.#isOver(this.#lease, now, life));
  }

  /**
   * Prepares a transaction. Ends the lease if it is over, or if requests are waiting because it ran out of permits. The
   * transaction then gives the lease's permits back.
   */
  begin(now: number, { life }: LeaseTimes): void {
    const lease = this.#lease;
    if (lease && (this.#waiting.length > 0 || this.#isOver(lease, now, life))) this.#endLease(lease);
    this.#begun = this.#waiting.length;
  }

  /** The rows that a transaction reads, or their known values. */
  reads({ unchanged }: LeaseTimes): readonly (Deno.KvKey | KnownRow)[] {
    const { holder: { id }, holderRow, usageRow } = this.#state;
    const isOld = (this.isAwaiting || this.isShared) && performance.now() - this.#seenAt > unchanged;
    if (!this.#isKnown || isOld) return stateKeys(this.#rows, id);
    return [holderRow, usageRow].map((entry) => ({ key: entry.key, entry }));
  }

  /** Decides what a transaction writes; undefined if the account no longer exists. */
  decide(rows: Rows, write: Write, now: number, { span }: LeaseTimes): Run<Of> | undefined {
    const { id } = this.holder;
    const [holderKey, usageKey] = stateKeys(this.#rows, id);
    const state = this.#stateIn(rows.get(holderKey), rows.get(usageKey));
    if (state === undefined) return undefined;
    const { holder, usage } = state;
    const { limits } = holder;
    const isOpen = (key: KeyUse) => this.#rows.isOpenedBy(holder, key.hash, key.now);
    const waiting = this.#waiting.filter(isOpen);
    const isSameMinute = isOfSameMinute(this.#state, state);
    const written = isSameMinute ? { ...this.#unwritten } : { count: 0, strikes: 0 };
    const returned = this.#toReturn();
    const rate = this.#served / Math.max(1, performance.now() - this.#servedSince);

    // First, give permits back and write earlier refusals. Then take permits, and refuse the remaining requests.
    const settled = returned.reduce(settle, usage);
    const before = written.count > 0 ? refuse(settled, limits, written, now) : settled;
    const wanted = Math.floor(this.#within(span, rate)) - this.left;
    const taken = take(before, limits, { waiting: waiting.length, ahead: Math.max(0, wanted) }, now);
    const rest = waiting.slice(taken.granted);
    const writtenOff = isSameRow(state.holderRow, this.#state.holderRow)
      ? this.#writtenOff
      : NOTHING_WRITTEN_OFF;
    const awaited = rest.length > 0 ? this.#windowToAwait(taken, writtenOff, now) : undefined;
    const refused = awaited ? [] : this.#refusals(rest, taken, limits);
    const counted = countOf(refused, taken);
    const after = counted.count > 0 ? refuse(taken.usage, limits, counted, now) : taken.usage;

    // A window that has only moved to `now` is not written, because any reader can move it.
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
      unwritten: this.#unwritten,
      written: { count: this.#unwritten.count, strikes: this.#unwritten.strikes },
      granted: waiting.slice(0, taken.granted),
      // Without a commit, the rows might be older than the latest requests.
      refused: isChange ? refused : refused.filter(({ request }) => this.#hasBegunWith(request)),
      unauthorized: this.#waiting.filter((request) => !isOpen(request)),
      ahead: taken.ahead,
      rate,
      awaited,
    };
  }

  /** Adopts the result of a committed run, and the rows as the commit left them. */
  apply(run: Run<Of>, rows: readonly KnownRow[], { renewal }: LeaseTimes): void {
    const { now, state, usage, granted, refused, unauthorized, ahead, rate } = run;
    const { limits } = state.holder;
    this.#removeWritten(run);
    this.noteRows(state);
    const [holderRow, usageRow] = rows;
    const own = this.#stateIn(holderRow?.entry, usageRow?.entry);
    if (own) this.#keepNewer(own);
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
      if (refusal !== "ban") this.#noteTold(usage);
      request.resolve(this.#decision(usage, limits, 0, refusal, now));
    }
    for (const { resolve } of unauthorized) resolve(AGAIN);
    const answered = new Set([...granted, ...refused.map(({ request }) => request), ...unauthorized]);
    this.#waiting = this.#waiting.filter((request) => !answered.has(request));
    // Requests that arrived in the meantime can get a permit from the lease.
    if (this.leaseAt(now)) this.#requeue();
    this.#updateWait(run.awaited && { window: run.awaited, end: windowEnd(usage, run.awaited) });
  }

  /** Handles a run that might have been committed. Its permits are lost, and its requests get the error. */
  lose(run: Run<Of>, error: unknown): void {
    this.#removeWritten(run);
    this.fail(error);
  }

  /** Handles a transaction that was not committed. */
  fail(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#awaitsUntil = 0;
    this.#isKnown = false;
    this.#postponedUntil = performance.now() + MAX_LEASE_AGE;
  }

  /** Drops everything. Call this if the account no longer exists, or if permits can no longer be given back. */
  drop(): void {
    this.#requeue();
    this.#lease = undefined;
    this.#ended.clear();
    this.#unwritten = { count: 0, strikes: 0, since: 0 };
    this.#awaitsUntil = 0;
    this.#isKnown = false;
    this.accountsVersion = undefined;
  }

  /** Adopts rows that were read. If the usage row is newer than the known one, another process has written it. */
  noteRows(state: HolderState<Of>): void {
    const isNews = state.usageRow.versionstamp > this.#state.usageRow.versionstamp;
    if (isNews && this.#isKnown) this.#sharedUntil = performance.now() + SHARED_FOR;
    this.#keepNewer(state);
  }

  /** The usage in these rows or newer known ones, without permits that this process holds. */
  usageWithoutLease(usage: Usage, usageRow: Entry, isChanging: boolean): Usage {
    // While a transaction is under way, the row might already count the permits that it takes.
    const isNews = usageRow.versionstamp > this.#state.usageRow.versionstamp && !isChanging;
    const held = [...this.#ended, ...this.#lease ? [this.#lease] : []].map((lease) => ({
      ...lease,
      size: lease.left,
    }));
    return held.reduce(settle, isNews ? usage : this.#state.usage);
  }

  /** Keeps the newer rows. If the account or the minute has changed, strikes are dropped. */
  #keepNewer(state: HolderState<Of>): void {
    const known = this.#state;
    const isNewer = state.holderRow.versionstamp > known.holderRow.versionstamp;
    const isUsageNewer = state.usageRow.versionstamp > known.usageRow.versionstamp;
    if (!isNewer && !isUsageNewer) return;
    const { holder, holderRow } = isNewer ? state : known;
    const { usage, usageRow } = isUsageNewer ? state : known;
    this.#state = { holder, holderRow, usage, usageRow };
    if (isNewer) this.#writtenOff = NOTHING_WRITTEN_OFF;
    if (isUsageNewer) this.#seenAt = performance.now();
    if (!isOfSameMinute(known, this.#state)) this.#unwritten = { count: 0, strikes: 0, since: 0 };
  }

  /** Decodes rows; undefined if the account no longer exists. */
  #stateIn(
    holderRow: Entry | null | undefined,
    usageRow: Entry | null | undefined,
  ): HolderState<Of> | undefined {
    if (!holderRow || !usageRow) return undefined;
    const known = this.#state;
    // Compared by identity, because a row changed by another transaction in the same commit keeps its old version.
    const holder = holderRow === known.holderRow ? known.holder : this.#rows.decode(holderRow);
    const usage = usageRow === known.usageRow ? known.usage : decodeUsage(usageRow);
    return { holder, holderRow, usage, usageRow };
  }

  /** Why a request is refused, if only time or an operator can change that. */
  #certainRefusal(now: number): Refusal | undefined {
    const { usage, holder: { limits } } = this.#state;
    const current = roll(usage, now);
    if (current.bannedUntil > now) return "ban";
    if (current !== usage || this.isLeased || this.#unconfirmed > 0) return undefined;
    const window = fullWindow(usage, limits);
    return window && mayComeBack(usage, window, now, this.#writtenOff) ? undefined : window;
  }

  /** The window to wait on; undefined if none of its permits can come back, or the wait has been too long. */
  #windowToAwait({ usage, refusal }: Taken, writtenOff: WrittenOff, now: number): FullWindow | undefined {
    if (!refusal || refusal === "ban" || !mayComeBack(usage, refusal, now, writtenOff)) return undefined;
    const isNew = !this.isAwaiting || windowEnd(usage, refusal) > this.#awaited.end;
    return isNew || performance.now() < this.#awaitsUntil ? refusal : undefined;
  }

  /** Starts, continues or ends the wait for a window's permits. */
  #updateWait(awaited: Awaited | undefined): void {
    const time = performance.now();
    if (awaited === undefined) {
      const { window, end } = this.#awaited;
      if (this.isAwaiting && time >= this.#awaitsUntil) {
        this.#writtenOff = { ...this.#writtenOff, [window]: end };
      }
      this.#awaitsUntil = 0;
    } else if (!this.isAwaiting || awaited.end > this.#awaited.end) {
      this.#awaitsUntil = time + PATIENCE;
      this.#awaited = awaited;
    }
  }

  /** Whether a request was already waiting when the transaction began. */
  #hasBegunWith(request: Waiting): boolean {
    return this.#waiting.indexOf(request) < this.#begun;
  }

  /**
   * Refuses requests. A refusal is a strike if the request arrived more than a second after this process first told a
   * refusal in the minute: its client could have known. After too many strikes, the others are refused because of a ban.
   */
  #refusals(requests: readonly Waiting[], { usage, refusal }: Taken, limits: Limits): RefusedRequest[] {
    if (refusal === undefined) return [];
    let left = limits.minute - usage.strikes;
    let isBanned = refusal === "ban";
    return requests.map((request) => {
      const isStrike = !isBanned && this.#isStrike(request.arrived, usage);
      if (isStrike && left-- <= 0) isBanned = true;
      return { request, refusal: isBanned ? "ban" : refusal, isStrike };
    });
  }

  /** Whether a refusal counts toward a ban, because its request arrived after others of the minute had been refused. */
  #isStrike(arrived: number, usage: Usage): boolean {
    const { minuteEnd: end, at } = this.#told;
    return end === minuteEnd(usage) && arrived > at + UNAWARE;
  }

  /** Notes that a client is told about a refusal. */
  #noteTold(usage: Usage): void {
    const end = minuteEnd(usage);
    if (this.#told.minuteEnd !== end) this.#told = { minuteEnd: end, at: performance.now() };
  }

  #strikesAreDue(life: number): boolean {
    const left = this.holder.limits.minute - this.#state.usage.strikes;
    const { count, strikes, since } = this.#unwritten;
    return count > 0 && (strikes * 4 > left || performance.now() - since > life);
  }

  /** Whether epoch, minute and limits are the same as when the lease was taken. */
  #isValid({ epoch, minute, limits }: Lease, now: number): boolean {
    const { usage, holder: { limits: current } } = this.#state;
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

  /** The permits that a transaction settles: the used ones in the lease, and all those in ended leases. */
  #toReturn(): ReturnedOf[] {
    const ended = [...this.#ended].map((lease) => ({ ...lease, lease, size: lease.used + lease.left }));
    const lease = this.#lease;
    return lease && lease.used > 0 ? [...ended, { ...lease, lease, size: lease.used, left: 0 }] : ended;
  }

  /** Removes the permits and strikes that a run has written. */
  #removeWritten({ returned, unwritten, written }: Run<Of>): void {
    for (const { lease, size, left } of returned) {
      lease.left -= left;
      lease.used -= size - left;
      if (lease.left + lease.used === 0) this.#ended.delete(lease);
    }
    unwritten.count -= written.count;
    unwritten.strikes -= written.strikes;
  }

  /** Sends the waiting requests back to look up their keys again. */
  #requeue(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve(AGAIN);
  }

  /** The number of requests to expect within `ms`. */
  #within(ms: number, rate: number): number {
    return Math.min(rate * ms, MAX_PER_SERVED * this.#served);
  }

  /** The usage after the ended leases have been given back. */
  #onceReturned(usage: Usage): Usage {
    if (this.#ended.size === 0) return usage;
    return [...this.#ended].reduce((before, lease) => settle(before, { ...lease, size: lease.left }), usage);
  }

  #decision(usage: Usage, limits: Limits, left: number, refusal: Refusal | undefined, now: number): Decision {
    // For an admitted request, permits about to be given back count as free. A refused request could not get them.
    return decide(refusal ? usage : this.#onceReturned(usage), limits, left, refusal, now);
  }
}

/** The refusals to count: those before a ban, and the one that starts it. */
function countOf(refused: readonly RefusedRequest[], { refusal }: Taken): Refused {
  if (refusal === "ban") return { count: 0, strikes: 0 };
  const strikes = refused.filter(({ isStrike }) => isStrike).length;
  return { count: refused.filter((one) => one.refusal !== "ban" || one.isStrike).length, strikes };
}

/** Whether a window's leased permits might still be given back. */
function mayComeBack(usage: Usage, window: FullWindow, now: number, writtenOff: WrittenOff): boolean {
  return now >= writtenOff[window] && (window === "day" ? usage.leasedToday : usage.leased) > 0;
}

function isSameLimits(one: Limits, other: Limits): boolean {
  return one.minute === other.minute && one.day === other.day;
}

function isSameRow(one: Entry, other: Entry): boolean {
  return one.versionstamp === other.versionstamp;
}

/** Whether strikes from one state also count in the other. */
function isOfSameMinute(one: HolderState<Holder>, other: HolderState<Holder>): boolean {
  return isSameRow(one.holderRow, other.holderRow) && one.usage.epoch === other.usage.epoch &&
    one.usage.minute === other.usage.minute;
}
