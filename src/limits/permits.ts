import type { Metrics } from "../base/metrics.ts";
import { type AGAIN, KV_DEADLINE, StoreUnavailable } from "../engine/deadline.ts";
import type { Store } from "../engine/store.ts";
import { Unresolved } from "../engine/transaction.ts";
import type { Transactions } from "../engine/transactions.ts";
import type { VersionCheck } from "../engine/versions.ts";
import type { Holder } from "./holder.ts";
import type { Decision } from "./usage.ts";
import {
  type Allowance,
  type KeyUse,
  type Lease,
  type LeaseTimes,
  MAX_LEASE_AGE,
  type Run,
} from "./allowance.ts";

/** How often to check for allowances that are due, in ms. */
const TICK = 50;

/** Options of {@linkcode Permits}. */
export interface PermitsOptions {
  readonly store: Store;
  readonly transactions: Transactions;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly metrics: Metrics;
}

/** A permit that was handed out from memory. It must be either confirmed or withdrawn, once. */
export interface Permit {
  /** The permit is valid only if this check holds. The request's first commit includes the check. */
  readonly check: VersionCheck;
  confirm(): void;
  withdraw(): void;
}

/** The active allowances, and the transactions that take their permits and give them back. */
export class Permits<Of extends Holder> {
  readonly #store: Store;
  readonly #transactions: Transactions;
  readonly #clock: () => number;
  readonly #metrics: Metrics;
  /** By account ID. */
  readonly #active: Map<string, Allowance<Of>> = new Map();
  /** Allowances with a transaction under way. The promise resolves when no other transaction is due. */
  readonly #running: Map<Allowance<Of>, Promise<void>> = new Map();
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Whether all leases are being given back. */
  #isSettling = false;

  constructor({ store, transactions, clock, metrics }: PermitsOptions) {
    this.#metrics = metrics;
    this.#store = store;
    this.#transactions = transactions;
    this.#clock = clock;
  }

  /**
   * Decides on a request from memory; undefined if a transaction must decide. `arrived` is on the `performance.now()`
   * clock.
   */
  decide(allowance: Allowance<Of>, arrived: number): Decision | undefined {
    const now = this.#clock();
    const lease = allowance.leaseAt(now);
    const decision = lease ? allowance.take(lease, now, true) : allowance.refuse(now, arrived);
    if (decision) this.#renew(allowance);
    return decision;
  }

  /** Whether only a transaction can decide. */
  needsTransaction(allowance: Allowance<Of>): boolean {
    return allowance.needsTransaction(this.#clock());
  }

  /** Hands out a leased permit, provided that `check` holds; undefined if the lease has none left. */
  lend(allowance: Allowance<Of>, check: VersionCheck): { decision: Decision; permit: Permit } | undefined {
    const now = this.#clock();
    const lease = allowance.leaseAt(now);
    if (lease === undefined) return undefined;
    const decision = allowance.take(lease, now, false);
    this.#renew(allowance);
    return { decision, permit: this.#permit(allowance, lease, check) };
  }

  /**
   * Resolves to the next transaction's decision, or to AGAIN if the key must be looked up again.
   *
   * @throws {StoreUnavailable}
   */
  request(allowance: Allowance<Of>, key: KeyUse): Promise<Decision | typeof AGAIN> {
    const decided = allowance.request(key);
    this.#keepActive(allowance);
    if (!allowance.isAwaiting) this.#start(allowance);
    return decided;
  }

  /** Gives back the permit of a request that was admitted with this decision, but not served. */
  giveBack(allowance: Allowance<Of>, decision: Decision): void {
    allowance.giveBack(decision);
    this.#keepActive(allowance);
  }

  /** An account's allowance, if it is active. */
  activeOf(accountId: string): Allowance<Of> | undefined {
    return this.#active.get(accountId);
  }

  /** Whether a transaction for the allowance is under way. */
  isRunning(allowance: Allowance<Of>): boolean {
    return this.#running.has(allowance);
  }

  /** How many leases this process has, and how many permits are left in them. */
  count(): { leases: number; permits: number } {
    const leased = [...this.#active.values()].filter(({ isLeased }) => isLeased);
    return { leases: leased.length, permits: leased.reduce((sum, { left }) => sum + left, 0) };
  }

  /** Gives every lease back, and writes refusals that are not in their rows yet. */
  async settle(): Promise<void> {
    this.#isSettling = true;
    for (const allowance of this.#active.values()) this.#start(allowance);
    await Promise.all(this.#running.values());
    this.#isSettling = false;
    this.#active.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #permit(allowance: Allowance<Of>, lease: Lease, check: VersionCheck): Permit {
    return {
      check,
      confirm: () => {
        allowance.confirm(lease);
        this.#keepActive(allowance);
      },
      withdraw: () => {
        allowance.withdraw(lease);
        this.#keepActive(allowance);
      },
    };
  }

  /** Renews the lease if it is low, and keeps the allowance active. */
  #renew(allowance: Allowance<Of>): void {
    this.#keepActive(allowance);
    if (allowance.isLow) this.#start(allowance);
  }

  /** Keeps the allowance active until everything is in its row. */
  #keepActive(allowance: Allowance<Of>): void {
    this.#active.set(allowance.holder.id, allowance);
    this.#timer ??= setInterval(() => this.#startDue(), TICK);
  }

  #startDue(): void {
    for (const [id, allowance] of this.#active) {
      if (!allowance.isActive) this.#active.delete(id);
      else if (this.#isDue(allowance)) this.#start(allowance);
    }
    if (this.#active.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #start(allowance: Allowance<Of>): void {
    this.#transactions.noteRequest();
    if (this.#running.has(allowance)) return;
    this.#running.set(allowance, this.#runWhileDue(allowance).finally(() => this.#running.delete(allowance)));
  }

  /** Runs an allowance's transactions, one after another, until none is due. */
  async #runWhileDue(allowance: Allowance<Of>): Promise<void> {
    do {
      await this.#run(allowance);
    } while (this.#isSettling ? allowance.isUnsettled : !allowance.isAwaiting && this.#isDue(allowance));
  }

  /** Runs one transaction. Never rejects, because the waiting requests get any error. */
  async #run(allowance: Allowance<Of>): Promise<void> {
    let run: Run<Of> | undefined;
    const end = performance.now() + KV_DEADLINE;
    const mayBegin = () => {
      if (performance.now() > end) throw new StoreUnavailable("Requests do not wait any longer");
    };
    allowance.begin(this.#clock(), this.#timesOf(allowance));
    try {
      const { rows } = await this.#transactions.run({
        queue: "leases",
        reads: allowance.reads(this.#timesOf(allowance)),
        decide: (rows, write, now) => run = allowance.decide(rows, write, now, this.#timesOf(allowance)),
      }, { mayBegin });
      if (run === undefined) return allowance.drop();
      if (run.usage.bannedUntil > run.state.usage.bannedUntil) this.#metrics.bans.add(1);
      allowance.apply(run, rows, this.#timesOf(allowance));
    } catch (error) {
      if (error instanceof Unresolved && run) allowance.lose(run, error);
      else allowance.fail(error);
      if (this.#isSettling) allowance.drop();
    }
  }

  #isDue(allowance: Allowance<Of>): boolean {
    return allowance.isDue(this.#clock(), this.#timesOf(allowance));
  }

  /** If other processes are writing the same row, leases last longer, so that fewer commits conflict. */
  #timesOf({ isShared }: Allowance<Of>): LeaseTimes {
    const { ms } = this.#store.commits;
    const unchanged = ms / 2;
    if (this.#isSettling) return { span: 0, renewal: 0, unchanged, life: -1 };
    const life = Math.min(isShared ? Math.max(1_000, 20 * ms) : Math.max(250, 8 * ms), MAX_LEASE_AGE);
    return isShared
      ? { span: life, renewal: 3 * ms, unchanged, life }
      : { span: Math.max(200, 2 * ms), renewal: 2 * ms, unchanged, life };
  }
}
