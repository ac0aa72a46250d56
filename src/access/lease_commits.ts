import { AGAIN, retried } from "../kv/deadline.ts";
import { RoundTrip } from "../kv/round_trip.ts";
import type { Store } from "../kv/store.ts";
import type { Watched } from "../kv/watched.ts";
import { ROUND_SIZE } from "../metrics/metrics.ts";
import { lowerDayTotal } from "./day_totals.ts";
import { type LeaseTimes, leaseTimes } from "./lease.ts";
import type { Quota } from "./quota.ts";
import { type Outcome, type PlannedUsage, UsageStore } from "./usage_store.ts";

/** What leases stand on. */
export interface LeasesOptions {
  readonly store: Store;
  /** The row whose version changes with every account. */
  readonly access: Watched;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

const NOTHING_TO_DO: Outcome = { ok: true, versionstamp: "" };

/** Carries out what quotas plan: takes places for them, gives others back, and answers those who wait. */
export class LeaseCommits {
  /** How long a commit takes. */
  readonly roundTrip: RoundTrip;
  /** Whether nothing is leased for now: everything is being given back, as before a stop. */
  isSettling = false;
  readonly #store: Store;
  readonly #usages: UsageStore;
  readonly #access: Watched;
  readonly #clock: () => number;

  constructor({ store, access, clock }: LeasesOptions) {
    this.#store = store;
    this.roundTrip = new RoundTrip(store);
    this.#usages = new UsageStore(store, access);
    this.#access = access;
    this.#clock = clock;
  }

  /** How leases of a quota are sized and kept. */
  timesOf(quota: Quota): LeaseTimes {
    return leaseTimes(this.roundTrip.ms, quota.others.areActive);
  }

  /**
   * Carries out what these quotas plan, in one commit; never rejects, but fails those who wait. Quotas whose rows
   * other processes have changed meanwhile are told to `leaveAside`, unless they are alone: they do not hold up the
   * others.
   */
  async commit(quotas: readonly Quota[], leaveAside: (quota: Quota) => void): Promise<void> {
    let together = quotas;
    try {
      await retried(async () => {
        const outcome = await this.#attempt(together);
        if (outcome.ok) return;
        const { conflicting } = outcome;
        if (together.length === 1) return AGAIN;
        together = together.filter((quota) => !conflicting.includes(quota));
        conflicting.forEach(leaveAside);
        return AGAIN;
      });
    } catch (error) {
      for (const quota of together) quota.fail(error);
    }
  }

  async #attempt(quotas: readonly Quota[]): Promise<Outcome> {
    await this.#usages.read(quotas.filter((quota) => quota.isToBeRead(this.timesOf(quota))));
    const now = this.#clock();
    const { version } = this.#access;
    const plans = quotas.filter(({ isKnown }) => isKnown).map((quota): PlannedUsage => {
      const times = this.timesOf(quota);
      const plan = quota.plan(version, now, this.isSettling ? { ...times, span: 0 } : times);
      return { quota, basis: quota.versionstamp, plan };
    });
    const changes = plans.filter(({ plan }) => plan.isChange);
    if (changes.length > 0) ROUND_SIZE.observe(changes.length, "leases");
    const started = performance.now();
    const outcome = changes.length > 0 ? await this.#usages.change(changes, version) : NOTHING_TO_DO;
    if (changes.length > 0) this.roundTrip.measure(started);
    if (!outcome.ok) return outcome;
    for (const { quota, plan } of plans) {
      quota.apply(plan, plan.isChange ? outcome.versionstamp : undefined, now, this.timesOf(quota));
    }
    for (const { quota, plan: { overcount } } of plans) {
      if (overcount) await lowerDayTotal(this.#store, quota.account.id, overcount);
    }
    return outcome;
  }
}
