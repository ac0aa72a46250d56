import type { Account } from "../accounts/account.ts";
import { decide, type Decision } from "../accounts/decision.ts";
import type { Limits } from "../accounts/plans.ts";
import { type Refusal, roll, UNUSED, type Usage } from "../accounts/usage.ts";
import { BANS } from "../metrics/metrics.ts";
import { type HeldLease, HeldLeases, type LeaseTimes } from "./held_leases.ts";
import { OtherProcesses } from "./other_processes.ts";
import { Pace } from "./pace.ts";
import { fullWindow } from "./places.ts";
import { Strikes } from "./strikes.ts";
import { planFor, type UsagePlan } from "./usage_plan.ts";
import { WaitingRequests } from "./waiting_requests.ts";

/** What this process knows of an account and what it has used, and the places of it that it holds. */
export class Quota {
  account: Account;
  /** Version of the accounts that the account was read under. */
  accountsVersion: string;
  usage: Usage = UNUSED;
  /** Version of the row of usage; "" when that is not known. */
  versionstamp = "";
  readonly held: HeldLeases = new HeldLeases();
  readonly waiting: WaitingRequests = new WaitingRequests();
  /** What is known of other processes that call for the account. */
  readonly others: OtherProcesses = new OtherProcesses();
  readonly #strikes: Strikes = new Strikes();
  /** From one plan that was carried out to the next. */
  readonly #pace: Pace = new Pace();
  /** With fewer places left than this, more are leased. */
  #low = 0;

  constructor(account: Account, accountsVersion: string) {
    this.account = account;
    this.accountsVersion = accountsVersion;
  }

  /** Whether the row's last version is known. */
  get isKnown(): boolean {
    return this.versionstamp !== "";
  }

  /** Whether there is something that is not in the row yet. */
  get isActive(): boolean {
    return this.waiting.count > 0 || !this.held.isEmpty || this.#strikes.count > 0;
  }

  /** Whether more should be leased, lest the places run out before that can be done. */
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

  /** Whether the row has to be read before anything is planned. */
  isToBeRead({ unchanged }: LeaseTimes): boolean {
    return !this.isKnown || this.others.mayHaveWritten(unchanged);
  }

  /**
   * Gets ready for a commit under this version of the accounts, and plans it: ends leases that are due. Where the
   * account was read under another version, it may have changed: who was recognized under that is turned away,
   * nothing is leased, and strikes from before do not count.
   */
  plan(version: string, now: number, { span, life }: LeaseTimes): UsagePlan {
    const { held, usage, account: { limits } } = this;
    const isStale = this.accountsVersion !== version;
    this.waiting.turnAway(version);
    if (isStale) this.#strikes.forget();
    const waiting = this.waiting.count;
    this.#pace.measure();
    // Those who wait came when nothing was left to hand out, and get of what has come since, too.
    if (waiting > 0) held.endAll();
    else held.endDue(usage, limits, now, life);
    return planFor(usage, limits, {
      settled: held.ending,
      strikes: this.#strikes.plan(),
      waiting,
      ahead: isStale ? 0 : Math.max(0, Math.floor(this.#pace.within(span)) - held.left),
      others: this.others,
    }, now);
  }

  /** Takes over the plan, and the version of the row if that was changed; answers those who waited. */
  apply(plan: UsagePlan, versionstamp: string | undefined, now: number, { renewal }: LeaseTimes): void {
    const { settled, usage, limits, granted, refusals, ahead } = plan;
    // A later version may have been seen while this one was on its way.
    if (versionstamp !== undefined && versionstamp > this.versionstamp) {
      if (usage.bannedUntil > this.usage.bannedUntil) BANS.add(1);
      this.usage = usage;
      this.versionstamp = versionstamp;
      this.others.seeRow(false);
    }
    const { epoch, minute } = usage;
    const takenAt = performance.now();
    const lease = ahead > 0 ? { epoch, minute, limits, size: ahead, left: ahead, takenAt } : undefined;
    this.held.replace(settled, lease);
    const until = this.#pace.within(renewal);
    this.#low = lease ? until + 1.5 * Math.sqrt(until) : 0;
    this.#strikes.seeWritten();
    this.#pace.restart(granted);
    this.waiting.answer(
      granted,
      this.held.left,
      refusals,
      // They are charged as planned, even if the row has moved on since.
      (refusal, left) => this.#decision(usage, limits, left, refusal, now),
    );
    // Those who came since the plan may find a place now.
    if (this.leaseAt(now)) this.waiting.turnAway();
    if (this.waiting.count === 0) this.others.stopAwaiting();
  }

  /** Takes note of the row, which another process has written if its version is a later one. */
  see(usage: Usage, versionstamp: string): void {
    if (versionstamp <= this.versionstamp) return;
    this.others.seeRow(this.isKnown);
    if (usage.minute !== this.usage.minute || usage.epoch !== this.usage.epoch) this.#strikes.forget();
    this.usage = usage;
    this.versionstamp = versionstamp;
  }

  /** Takes note of the account's rows as they were read; strikes from before it changed do not count. */
  update(account: Account, accountsVersion: string, usage: Usage, versionstamp: string): void {
    this.see(usage, versionstamp);
    if (accountsVersion !== this.accountsVersion) this.#strikes.forget();
    this.account = account;
    this.accountsVersion = accountsVersion;
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
    this.versionstamp = "";
  }

  /** Holds nothing any more: the account is gone. */
  forget(): void {
    this.waiting.turnAway();
    this.held.endAll();
    this.fail(undefined);
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
    // What is on its way back is not used; but whoever is refused did not get any of it.
    return decide(refusal ? usage : this.held.usageOnceSettled(usage), limits, left, refusal, now);
  }
}
