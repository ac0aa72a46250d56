import { encodeJson, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { raise, type Watched } from "../kv/watched.ts";
import { dayTotalKey } from "./day_totals.ts";
import type { UsagePlan } from "./usage_plan.ts";
import type { Quota } from "./quota.ts";
import { decodeUsage, encodeUsage, usageKey } from "./usage_row.ts";

/** A plan for what an account has used, and the version of the row that it was made for. */
export interface PlannedUsage {
  readonly quota: Quota;
  readonly basis: string;
  readonly plan: UsagePlan;
}

/** What became of changes: they were made, or they were not, for the rows of some quotas had changed before. */
export type Outcome =
  | { readonly ok: true; readonly versionstamp: string }
  | { readonly ok: false; readonly conflicting: readonly Quota[] };

/** The rows that tell what accounts have used. Every method throws StoreUnavailable when KV fails. */
export class UsageStore {
  readonly #store: Store;
  readonly #access: Watched;

  /** Changes are made on condition that the row of access still has the version they were planned under. */
  constructor(store: Store, access: Watched) {
    this.#store = store;
    this.#access = access;
  }

  /** Shows quotas their rows. */
  async read(quotas: readonly Quota[]): Promise<void> {
    if (quotas.length > 0) this.#see(quotas, await this.#store.getMany(this.#keysOf(quotas)));
  }

  /** Makes all of the changes, planned under this version of access, or none, and then shows quotas their rows. */
  async change(changes: readonly PlannedUsage[], accessVersion: string): Promise<Outcome> {
    const quotas = changes.map(({ quota }) => quota);
    const result = await this.#store.commit((operation) => {
      operation.check({ key: this.#access.key, versionstamp: accessVersion || null });
      for (const { quota, basis, plan: { usage, pastDay } } of changes) {
        operation.check({ key: keyOf(quota), versionstamp: basis }).set(keyOf(quota), encodeUsage(usage));
        if (pastDay) operation.set(dayTotalKey(pastDay.day, quota.account.id), encodeJson(pastDay.total));
      }
    }, this.#keysOf(quotas));
    return result.ok ? result : { ok: false, conflicting: this.#see(quotas, result.rows) };
  }

  #keysOf(quotas: readonly Quota[]): Deno.KvKey[] {
    return [this.#access.key, ...quotas.map(keyOf)];
  }

  /**
   * Shows quotas their rows, which come after that of access: an account may be gone that was there under its version
   * before. Returns the quotas whose row was not as they knew it.
   */
  #see(quotas: readonly Quota[], [access, ...rows]: readonly (Entry | null)[]): readonly Quota[] {
    if (access) raise(this.#access, access.versionstamp);
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
