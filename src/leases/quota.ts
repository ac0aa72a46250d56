import type { Account } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_state.ts";
import { decide, type Decision } from "../accounts/decision.ts";
import type { Limits } from "../accounts/plans.ts";
import { type Refusal, roll, UNUSED, type Usage } from "../accounts/usage.ts";
import { type HeldLease, HeldLeases, type LeaseTimes } from "./held_leases.ts";
import { OtherProcesses } from "./other_processes.ts";
import { Pace } from "./pace.ts";
import { fullWindow } from "./places.ts";
import { type Proposal, propose } from "./proposal.ts";
import { Strikes } from "./strikes.ts";
import { WaitingRequests } from "./waiting_requests.ts";

/** What this process knows of an account and what it has used, and the places of it that it holds. */
export class Quota {
  account: Account;
  /** Version of the account's row. */
  accountVersionstamp: string;
  /** Version of the accounts that the account was read under; undefined where it has to be read again. */
  accountsVersion: string | undefined;
  usage: Usage = UNUSED;
  /** Version of the row of usage; "" when that is not known. */
  usageVersionstamp = "";
  readonly held: HeldLeases = new HeldLeases();
  readonly waiting: WaitingRequests = new WaitingRequests();
  /** What is known of other processes that call for the account. */
  readonly others: OtherProcesses = new OtherProcesses();
  readonly #strikes: Strikes = new Strikes();
  /** From one proposal that was carried out to the next. */
  readonly #pace: Pace = new Pace();
  /** With fewer places left than this, more are leased. */
  #low = 0;

  constructor(state: AccountState) {
    this.account = state.account;
    this.accountVersionstamp = state.accountVersionstamp;
    this.see(state);
  }

  /** Whether the last version of the row of usage is known. */
  get isKnown(): boolean {
    return this.usageVersionstamp !== "";
  }

  /** Whether there is something that is not in the row yet. */
  get isActive(): boolean {
    return this.waiting.count > 0 || !this.held.isEmpty || this.#strikes.count > 0;
  }

  /** Whether more should be leased, because the places may run out before that can be done. */
  get isLow(): boolean {
    return this.held.left < this.#low;
  }

  /** Decides on a request from memory; undefined when that takes a commit. */
  admit(now: number): Decision | undefined {
    const lease = this.leaseAt(now);
    if (lease) return this.take(lease, now);
    const refusal = this.#certainRefusal(now);
    if (refusal === undefined || (refusal !== "ban" && !this.#strike())) return undefined;
    return this.#decision(this.usage, this.account.limits, 0, refusal, now);
  }

  /** Admits a request from a lease that has a place. */
  take(lease: HeldLease, now: number): Decision {
    this.#pace.count();
    lease.left--;
    return this.#decision(this.usage, this.account.limits, this.held.left, undefined, now);
  }

  /** A lease that has a place for a request. */
  leaseAt(now: number): HeldLease | undefined {
    return this.held.withPlace(this.usage, this.account.limits, now);
  }

  /** Whether memory cannot decide on a request. */
  needsCommit(now: number): boolean {
    return this.leaseAt(now) === undefined && this.#certainRefusal(now) === undefined;
  }

  /** Whether it is time for a commit. */
  isDue(now: number, { life }: LeaseTimes): boolean {
    const { usage, account: { limits } } = this;
    if (this.waiting.count > 0) return true;
    if (this.held.isPostponed) return false;
    return this.isLow || this.#strikes.areDue(limits.minute - usage.strikes, life) ||
      this.held.isDue(usage, limits, now, life);
  }

  /** Whether the row has to be read before anything is proposed. */
  isToBeRead({ unchanged }: LeaseTimes): boolean {
    return !this.isKnown || this.others.mayHaveWritten(unchanged);
  }

  /**
   * Gets ready for a commit, and proposes it: turns those away who were recognized before the account changed, and ends
   * leases that are due.
   */
  propose(now: number, { span, life }: LeaseTimes): Proposal {
    const { held, usage, account: { limits } } = this;
    this.waiting.turnAway(this.accountVersionstamp);
    const waiting = this.waiting.count;
    this.#pace.measure();
    // Those who wait came when nothing was left to hand out, and get of what has come since, too.
    if (waiting > 0) held.endAll();
    else held.endDue(usage, limits, now, life);
    return propose(usage, limits, {
      settled: held.ending,
      strikes: this.#strikes.propose(),
      waiting,
      ahead: Math.max(0, Math.floor(this.#pace.within(span)) - held.left),
      others: this.others,
    }, now);
  }

  /** Takes over the proposal, and the version of the row of usage if that was changed; answers those who waited. */
  apply(proposal: Proposal, versionstamp: string | undefined, now: number, { renewal }: LeaseTimes): void {
    const { settled, usage, limits, granted, refusals, ahead } = proposal;
    // A later version may have been seen while this one was on its way.
    if (versionstamp !== undefined && versionstamp > this.usageVersionstamp) {
      this.usage = usage;
      this.usageVersionstamp = versionstamp;
      this.others.seeRow(false);
    }
    const { epoch, minute } = usage;
    const takenAt = performance.now();
    const lease = ahead > 0
      ? { epoch, minute, limits, size: ahead, left: ahead, provisional: 0, takenAt }
      : undefined;
    this.held.replace(settled, lease);
    const until = this.#pace.within(renewal);
    this.#low = lease ? until + 1.5 * Math.sqrt(until) : 0;
    this.#strikes.seeWritten();
    this.#pace.restart(granted);
    this.waiting.answer(
      granted,
      this.held.left,
      refusals,
      // They are charged as proposed, even if the row has moved on since.
      (refusal, left) => this.#decision(usage, limits, left, refusal, now),
    );
    // Those who came since the proposal may find a place now.
    if (this.leaseAt(now)) this.waiting.turnAway();
    if (this.waiting.count === 0) this.others.stopAwaiting();
  }

  /** Takes note of both rows as they were read; strikes from before the account changed do not count. */
  see({ account, accountVersionstamp, usage, usageVersionstamp }: AccountState): void {
    if (accountVersionstamp > this.accountVersionstamp) {
      this.account = account;
      this.accountVersionstamp = accountVersionstamp;
      this.#strikes.forget();
    }
    if (usageVersionstamp <= this.usageVersionstamp) return;
    this.others.seeRow(this.isKnown);
    if (usage.minute !== this.usage.minute || usage.epoch !== this.usage.epoch) this.#strikes.forget();
    this.usage = usage;
    this.usageVersionstamp = usageVersionstamp;
  }

  /**
   * Fails those who wait. What was to be settled is settled later if it `isLeft`; else it may be settled, and is not
   * again.
   */
  fail(error: unknown, isLeft = false): void {
    this.waiting.fail(error);
    this.#strikes.forget();
    if (isLeft) this.held.postpone();
    else this.held.replace(this.held.ending, undefined);
    this.others.stopAwaiting();
    this.usageVersionstamp = "";
  }

  /** Holds nothing any more: the account is gone. */
  forget(): void {
    this.waiting.turnAway();
    this.held.endAll();
    this.fail(undefined);
    this.accountsVersion = undefined;
  }

  /** Why a request is refused, where only time or an operator can change that. */
  #certainRefusal(now: number): Refusal | undefined {
    const { usage, held, account: { limits } } = this;
    const current = roll(usage, now);
    if (current.bannedUntil > now) return "ban";
    if (current !== usage || !held.isEmpty) return undefined;
    const window = fullWindow(usage, limits);
    return window && this.others.mayGiveBack(usage, window, now) ? undefined : window;
  }

  /** Gathers a strike; false when it is one for which the caller has to be banned. */
  #strike(): boolean {
    if (this.usage.strikes + this.#strikes.count >= this.account.limits.minute) return false;
    this.#strikes.add();
    return true;
  }

  #decision(usage: Usage, limits: Limits, left: number, refusal: Refusal | undefined, now: number): Decision {
    // What is on its way back is not used; but a refused request did not get any of it.
    return decide(refusal ? usage : this.held.usageOnceSettled(usage), limits, left, refusal, now);
  }
}
