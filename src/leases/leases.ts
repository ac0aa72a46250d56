import type { Decision } from "../accounts/decision.ts";
import { batched } from "../store/batch.ts";
import type { AGAIN } from "../kv/retried.ts";
import type { Store } from "../kv/store.ts";
import { LeaseCommits, type LeasesOptions } from "./lease_commits.ts";
import type { Quota } from "./quota.ts";

/** How often quotas are looked for that are due, in ms. */
const TICK = 50;
/** Commits at a time to a KV that is far away. */
const LANES = 12;
/** Quotas that share a commit to a KV that is far away: a conflict over one of them costs all of them a round trip. */
const FAR_COMMIT = 2;
/** What a commit checks of each of its quotas: the rows of the account and of its usage. */
const CHECKS = 2;

/** Admits a request that may still be taken back: one of the functions is called, once. */
export interface ProvisionalDecision {
  readonly decision: Decision;
  readonly keep: () => void;
  readonly takeBack: () => void;
}

/**
 * Admits requests, exactly: places are counted in an account's row before they are used. A process takes some
 * more than wait for one, as the account's recent rate suggests, hands those out without a commit, and gives
 * back before long what is left. One commit takes places for several accounts, on condition that neither they nor
 * what they have used have changed.
 */
export class Leases {
  readonly #commits: LeaseCommits;
  readonly #clock: () => number;
  readonly #store: Store;
  readonly #commitSoon: (quota: Quota) => void;
  /** Quotas that wait for a commit, or are in one. */
  readonly #busy: Set<Quota> = new Set();
  /** How often a commit was asked for since the last. */
  #asked = 0;
  /** Quotas of which something is not in their row. */
  readonly #active: Set<Quota> = new Set();
  /** Resolves when nothing is left that is not in a row. */
  #idle: PromiseWithResolvers<void> = Promise.withResolvers();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: LeasesOptions) {
    this.#commits = new LeaseCommits(options);
    this.#clock = options.clock;
    this.#store = options.store;
    const { commits } = options.store;
    this.#commitSoon = batched((round) => this.#commit(round.map(({ item }) => item)), {
      gather: () => commits.gather(() => this.#asked),
      lanes: () => commits.isFar ? LANES : 1,
      size: () => this.#perCommit,
    });
  }

  /**
   * Decides on a request of an account; AGAIN if the account has changed and has to be looked up again.
   *
   * @throws {StoreUnavailable}
   */
  admit(quota: Quota): Decision | Promise<Decision | typeof AGAIN> {
    const decision = quota.admit(this.#clock());
    if (decision === undefined) return this.#decideInCommit(quota);
    this.#renew(quota);
    return decision;
  }

  /** The same, if that takes a commit; undefined if memory can decide. */
  admitInCommit(quota: Quota): Promise<Decision | typeof AGAIN> | undefined {
    return quota.needsCommit(this.#clock()) ? this.#decideInCommit(quota) : undefined;
  }

  /** Admits a request from a lease, if one has a place for it: provisionally, until it is kept or taken back. */
  admitAtOnce(quota: Quota): ProvisionalDecision | undefined {
    const now = this.#clock();
    const lease = quota.leaseAt(now);
    if (lease === undefined) return undefined;
    const decision = quota.take(lease, now);
    lease.provisional++;
    this.#renew(quota);
    const end = (isKept: boolean) => {
      if (isKept) quota.held.keep(lease);
      else quota.held.giveBack(lease);
      if (quota.isActive) this.#keepActive(quota);
    };
    return { decision, keep: () => end(true), takeBack: () => end(false) };
  }

  /** Whether a commit for a quota is on its way, or about to be. */
  isBusy(quota: Quota): boolean {
    return this.#busy.has(quota);
  }

  /** How many accounts this process holds leases of, and how many places are left in them. */
  count(): { count: number; places: number } {
    const held = [...this.#active].map(({ held }) => held);
    return {
      count: held.filter(({ isEmpty }) => !isEmpty).length,
      places: held.reduce((sum, { left }) => sum + left, 0),
    };
  }

  /** Gives back every lease, and writes whatever else is not in its row. */
  async settle(): Promise<void> {
    this.#commits.isSettling = true;
    for (const quota of this.#active) {
      quota.held.endAll();
      this.#enqueue(quota);
    }
    if (this.#active.size > 0) await this.#idle.promise;
    this.#commits.isSettling = false;
  }

  /** How many quotas share a commit. */
  get #perCommit(): number {
    return this.#store.commits.isFar ? FAR_COMMIT : Math.floor(this.#store.maxChecks / CHECKS);
  }

  #decideInCommit(quota: Quota): Promise<Decision | typeof AGAIN> {
    const decided = quota.waiting.wait(quota.accountVersionstamp);
    if (!quota.others.areAwaited) this.#enqueue(quota);
    return decided;
  }

  /** Leases more before nothing is left, and sees to it that what is left goes back. */
  #renew(quota: Quota): void {
    if (quota.isLow) this.#enqueue(quota);
    else if (quota.isActive) this.#keepActive(quota);
  }

  #enqueue(quota: Quota): void {
    this.#asked++;
    this.#active.add(quota);
    if (this.#busy.has(quota)) return;
    this.#busy.add(quota);
    this.#commitSoon(quota);
  }

  /** Commits quotas together; those that get into a conflict go on alone, and do not hold up the others. */
  async #commit(quotas: readonly Quota[]): Promise<void> {
    this.#asked = 0;
    const aside = await this.#commits.commit(quotas);
    for (const quota of aside) this.#commit([quota]);
    const others = quotas.filter((quota) => !aside.includes(quota));
    if (aside.length > 0 && others.length > 0) await this.#commit(others);
    else for (const quota of others) this.#release(quota);
  }

  /** Puts a quota back in the queue, or leaves it alone until it is due. */
  #release(quota: Quota): void {
    this.#busy.delete(quota);
    if (this.#commits.isSettling) quota.held.endAll();
    if (!quota.isActive) this.#active.delete(quota);
    else if (
      quota.isKnown && !quota.others.areAwaited && quota.isDue(this.#clock(), this.#commits.timesOf(quota))
    ) {
      this.#enqueue(quota);
    } else this.#keepActive(quota);
    if (this.#active.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#idle.resolve();
      this.#idle = Promise.withResolvers();
    }
  }

  /** Sees to it that what is not in its row is written before long. */
  #keepActive(quota: Quota): void {
    this.#active.add(quota);
    this.#timer ??= setInterval(() => this.#enqueueDue(), TICK);
  }

  #enqueueDue(): void {
    const now = this.#clock();
    for (const quota of this.#active) {
      if (quota.isDue(now, this.#commits.timesOf(quota))) this.#enqueue(quota);
    }
  }
}
