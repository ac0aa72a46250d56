import { dayTotalKey } from "../accounts/day_totals.ts";
import { decodeUsage, encodeUsage, usageKey } from "../accounts/usage.ts";
import { seeVersion, type Watched } from "../caching/watched.ts";
import { CommitInDoubt, type CommitResult } from "../kv/commit.ts";
import { StoreUnavailable } from "../kv/deadline.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { encodeJson, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { ROUND_SIZE } from "../metrics/metrics.ts";
import { type LeaseTimes, leaseTimes } from "./held_leases.ts";
import type { Quota } from "./quota.ts";
import type { UsagePlan } from "./usage_plan.ts";

/** What leases stand on. */
export interface LeasesOptions {
  readonly store: Store;
  /** The row whose version changes with every account. */
  readonly accounts: Watched;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

/** What a quota plans, and the version of its row that it was planned for. */
interface Planned {
  readonly quota: Quota;
  readonly basis: string;
  readonly plan: UsagePlan;
}

/** Carries out what quotas plan: takes places for them, gives others back, and answers those who wait. */
export class LeaseCommits {
  /** Whether nothing is leased for now: everything is being given back, as before a stop. */
  isSettling = false;
  readonly #store: Store;
  readonly #accounts: Watched;
  readonly #clock: () => number;

  constructor({ store, accounts, clock }: LeasesOptions) {
    this.#store = store;
    this.#accounts = accounts;
    this.#clock = clock;
  }

  /** How leases of a quota are sized and kept. */
  timesOf(quota: Quota): LeaseTimes {
    return leaseTimes(this.#store.commits.ms, quota.others.areActive);
  }

  /**
   * Carries out what these quotas plan, in one commit; never rejects, but fails those who wait. Resolves to those that
   * are to go on alone, for other processes have changed their rows meanwhile; then nothing was done. A quota that
   * is alone is tried again.
   */
  async commit(quotas: readonly Quota[]): Promise<readonly Quota[]> {
    // There are two of an account that the directory forgot while it was active: one would overwrite the other.
    const byId = new Map(quotas.map((quota) => [quota.account.id, quota]));
    if (byId.size < quotas.length) return quotas.filter((quota) => byId.get(quota.account.id) !== quota);
    try {
      return await retried(async () => {
        const conflicting = await this.#attempt(quotas);
        if (conflicting === undefined) return [];
        return quotas.length > 1 && conflicting.length > 0 ? conflicting : AGAIN;
      });
    } catch (error) {
      // What was certainly not done is done later; unless the process is about to stop.
      const isLeft = error instanceof StoreUnavailable && !(error instanceof CommitInDoubt) &&
        !this.isSettling;
      for (const quota of quotas) quota.fail(error, isLeft);
      return [];
    }
  }

  /** Undefined where that was done; where it was not, the quotas whose row was not as they knew it. */
  async #attempt(quotas: readonly Quota[]): Promise<readonly Quota[] | undefined> {
    const unread = quotas.filter((quota) => quota.isToBeRead(this.timesOf(quota)));
    if (unread.length > 0) this.#see(unread, await this.#store.getMany(this.#keysOf(unread)));
    const now = this.#clock();
    const { version } = this.#accounts;
    const plans = quotas.filter(({ isKnown }) => isKnown).map((quota): Planned => {
      const times = this.timesOf(quota);
      const plan = quota.plan(version, now, this.isSettling ? { ...times, span: 0 } : times);
      return { quota, basis: quota.versionstamp, plan };
    });
    const changes = plans.filter(({ plan }) => plan.isChange);
    const result = changes.length > 0 ? await this.#change(changes, version) : undefined;
    if (result?.ok === false) return this.#see(changes.map(({ quota }) => quota), result.rows);
    for (const { quota, plan } of plans) {
      quota.apply(plan, plan.isChange ? result?.versionstamp : undefined, now, this.timesOf(quota));
    }
    return undefined;
  }

  /** Makes all of the changes; none where a row, or the version of the accounts, is not as it was planned for. */
  #change(changes: readonly Planned[], accountsVersion: string): Promise<CommitResult> {
    ROUND_SIZE.observe(changes.length, "leases");
    return this.#store.commit((operation) => {
      operation.check({ key: this.#accounts.key, versionstamp: accountsVersion || null });
      for (const { quota, basis, plan: { usage, pastDay } } of changes) {
        operation.check({ key: keyOf(quota), versionstamp: basis }).set(keyOf(quota), encodeUsage(usage));
        if (pastDay) operation.set(dayTotalKey(pastDay.day, quota.account.id), encodeJson(pastDay.total));
      }
    }, this.#keysOf(changes.map(({ quota }) => quota)));
  }

  #keysOf(quotas: readonly Quota[]): Deno.KvKey[] {
    return [this.#accounts.key, ...quotas.map(keyOf)];
  }

  /**
   * Shows quotas their rows, behind that of the accounts: one may be gone that was there under the version known so
   * far. Returns the quotas whose row was not as they knew it.
   */
  #see(quotas: readonly Quota[], [accounts, ...rows]: readonly (Entry | null)[]): readonly Quota[] {
    if (accounts) seeVersion(this.#accounts, accounts.versionstamp);
    return quotas.filter((quota, index) => {
      const row = rows[index];
      if (row?.versionstamp === quota.versionstamp) return false;
      try {
        if (row) quota.see(decodeUsage(row), row.versionstamp);
        else quota.forget();
      } catch (error) {
        quota.fail(error);
      }
      return true;
    });
  }
}

function keyOf({ account }: Quota): Deno.KvKey {
  return usageKey(account.id);
}
