import { decodeState, stateKeys } from "../accounts/account_state.ts";
import { dayTotalKey } from "../accounts/day_totals.ts";
import { encodeUsage, usageKey } from "../accounts/usage.ts";
import { CommitInDoubt, type CommitResult } from "../kv/commit.ts";
import { StoreUnavailable } from "../kv/deadline.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { encodeJson, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { type LeaseTimes, leaseTimes } from "./held_leases.ts";
import type { Proposal } from "./proposal.ts";
import type { Quota } from "./quota.ts";

/** What leases stand on. */
export interface LeasesOptions {
  readonly store: Store;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

/** What a quota proposes, as long as its rows are as it knows them. */
interface Proposed {
  readonly quota: Quota;
  readonly proposal: Proposal;
  readonly checks: readonly Deno.AtomicCheck[];
}

/** Carries out what quotas propose: takes places for them, gives others back, and answers those who wait. */
export class LeaseCommits {
  /** Whether nothing is leased for now: everything is being given back, as before a stop. */
  isSettling = false;
  readonly #store: Store;
  readonly #clock: () => number;

  constructor({ store, clock }: LeasesOptions) {
    this.#store = store;
    this.#clock = clock;
  }

  /** How leases of a quota are sized and kept. */
  timesOf(quota: Quota): LeaseTimes {
    return leaseTimes(this.#store.commits.ms, quota.others.areActive);
  }

  /**
   * Carries out what these quotas propose, in one commit; never rejects, but fails those who wait. Resolves to those
   * that are to go on alone, for other processes have changed their rows meanwhile; then nothing was done. A quota
   * that is alone is tried again.
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

  /** Undefined where that was done; where it was not, the quotas whose rows were not as they knew them. */
  async #attempt(quotas: readonly Quota[]): Promise<readonly Quota[] | undefined> {
    const unread = quotas.filter((quota) => quota.isToBeRead(this.timesOf(quota)));
    if (unread.length > 0) this.#see(unread, await this.#store.getMany(keysOf(unread)));
    const now = this.#clock();
    const proposed = quotas.filter(({ isKnown }) => isKnown).map((quota): Proposed => {
      const times = this.timesOf(quota);
      const proposal = quota.propose(now, this.isSettling ? { ...times, span: 0 } : times);
      return { quota, proposal, checks: checksOf(quota) };
    });
    const changes = proposed.filter(({ proposal }) => proposal.isChange);
    const result = changes.length > 0 ? await this.#change(changes) : undefined;
    if (result?.ok === false) return this.#see(changes.map(({ quota }) => quota), result.rows);
    for (const { quota, proposal } of proposed) {
      const { bannedUntil } = quota.usage;
      quota.apply(proposal, proposal.isChange ? result?.versionstamp : undefined, now, this.timesOf(quota));
      if (quota.usage.bannedUntil > bannedUntil) this.#store.metrics.bans.add(1);
    }
    return undefined;
  }

  /** Makes all of the changes; none where a row is not what it is based on. */
  #change(changes: readonly Proposed[]): Promise<CommitResult> {
    this.#store.metrics.roundSize.observe(changes.length, "leases");
    return this.#store.commit((operation) => {
      for (const { quota: { account }, checks, proposal: { usage, pastDay } } of changes) {
        operation.check(...checks).set(usageKey(account.id), encodeUsage(usage));
        if (pastDay) operation.set(dayTotalKey(pastDay.day, account.id), encodeJson(pastDay.total));
      }
    }, keysOf(changes.map(({ quota }) => quota)));
  }

  /** Shows quotas their rows. Returns those whose rows were not as they knew them. */
  #see(quotas: readonly Quota[], rows: readonly (Entry | null)[]): readonly Quota[] {
    return quotas.filter((quota, index) => {
      const account = rows[2 * index];
      const usage = rows[2 * index + 1];
      const isKnown = account?.versionstamp === quota.accountVersionstamp &&
        usage?.versionstamp === quota.usageVersionstamp;
      if (isKnown) return false;
      try {
        const state = decodeState(account, usage);
        if (state) quota.see(state);
        else quota.forget();
      } catch (error) {
        quota.fail(error);
      }
      return true;
    });
  }
}

/** That both of its rows are as it knows them. */
function checksOf({ account, accountVersionstamp, usageVersionstamp }: Quota): Deno.AtomicCheck[] {
  const [accountKey, usageKey] = stateKeys(account.id);
  return [
    { key: accountKey, versionstamp: accountVersionstamp },
    { key: usageKey, versionstamp: usageVersionstamp },
  ];
}

function keysOf(quotas: readonly Quota[]): Deno.KvKey[] {
  return quotas.flatMap(({ account }) => stateKeys(account.id));
}
