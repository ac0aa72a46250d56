import { apiKeyKey, isOpenedBy } from "../accounts/account.ts";
import { type AccountState, decodeState, stateKeys } from "../accounts/account_state.ts";
import { type Environment, hashApiKey, isApiKey } from "../accounts/api_key.ts";
import { batched, tell, type Waiting } from "../store/batch.ts";
import { BoundedMap } from "../store/cache.ts";
import type { VersionRow } from "../store/versions.ts";
import { bearerToken } from "../http/bearer.ts";
import { decodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { Quota } from "../leases/quota.ts";

/** What a directory stands on. */
export interface DirectoryOptions {
  readonly store: Store;
  /** The row whose version changes with every account. */
  readonly accounts: VersionRow;
  readonly environment: Environment;
}

/** Whose a key is; it belongs to its account for ever. */
interface Claim {
  readonly accountId: string;
  readonly hash: string;
}

const PREFIX_LENGTH = "Bearer ".length;
const MAX_CLAIMS = 10_000;
const MAX_QUOTAS = 10_000;

/** Tells which account an API key opens, from memory as long as no account has changed. */
export class Directory {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  readonly #environment: Environment;
  /** By Authorization value. */
  readonly #claims: BoundedMap<string, Claim> = new BoundedMap(MAX_CLAIMS);
  /** By account id. */
  readonly #quotas: BoundedMap<string, Quota> = new BoundedMap(MAX_QUOTAS);
  readonly #findAccountId: (hash: string) => Promise<string | null>;
  readonly #load: (accountId: string) => Promise<Quota | null>;

  constructor({ store, accounts, environment }: DirectoryOptions) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#findAccountId = batched((round) => this.#findAccountIds(round));
    this.#load = batched((round) => this.#loadQuotas(round));
  }

  /** The quota of the account that the key opened when it was looked up last, unless it was suspended then. */
  recall(authorization: string, now: number): Quota | undefined {
    const claim = this.#claims.get(authorization);
    const quota = claim && this.#quotas.get(claim.accountId);
    if (!quota || quota.account.suspendedAt !== null) return undefined;
    return isOpenedBy(quota.account, claim.hash, now) ? quota : undefined;
  }

  /**
   * The quota of the account, suspended or not, that the key opens at `now` (ms since the epoch), or null. True as of the last
   * look (`Versions.check()`), which has to come first.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  find(authorization: string, now: number): Quota | null | Promise<Quota | null> {
    const claim = this.#claims.get(authorization);
    const quota = claim && this.#quotas.get(claim.accountId);
    if (claim === undefined || quota?.accountsVersion !== this.#accounts.version) {
      return this.#lookUp(authorization, now);
    }
    return isOpenedBy(quota.account, claim.hash, now) ? quota : null;
  }

  /** Whether it is in memory whose the key is. */
  knows(authorization: string): boolean {
    return this.#claims.get(authorization) !== undefined;
  }

  /** Whether an Authorization value may open an account at all: a typo is known without a read. */
  mayOpen(authorization: string): boolean {
    return this.#keyIn(authorization) !== undefined;
  }

  #keyIn(authorization: string): string | undefined {
    const key = bearerToken(authorization);
    return key !== undefined && isApiKey(key, this.#environment) ? key : undefined;
  }

  /** What is known of an account, if anything is. */
  quotaOf(accountId: string): Quota | undefined {
    return this.#quotas.get(accountId);
  }

  async #lookUp(authorization: string, now: number): Promise<Quota | null> {
    const claim = this.#claims.get(authorization) ?? await this.#identify(authorization);
    const quota = claim && await this.#load(claim.accountId);
    if (!quota) return null;
    // Not before the account was read: what was known of it may be older than the key. With extra spaces around it,
    // one key could fill the cache with long strings.
    if (authorization.lastIndexOf(" ") < PREFIX_LENGTH) this.#claims.set(authorization, claim);
    return isOpenedBy(quota.account, claim.hash, now) ? quota : null;
  }

  async #identify(authorization: string): Promise<Claim | null> {
    const key = this.#keyIn(authorization);
    if (key === undefined) return null;
    const hash = hashApiKey(key);
    const accountId = await this.#findAccountId(hash);
    return accountId === null ? null : { accountId, hash };
  }

  async #findAccountIds(round: readonly Waiting<string, string | null>[]): Promise<void> {
    const byHash = [...Map.groupBy(round, ({ item }) => item)];
    const entries = await this.#store.getMany(byHash.map(([hash]) => apiKeyKey(hash)));
    byHash.forEach(([, waiting], index) => {
      const entry = entries[index] ?? null;
      tell(waiting, () => entry && decodeJson<string>(entry));
    });
  }

  async #loadQuotas(round: readonly Waiting<string, Quota | null>[]): Promise<void> {
    const accountsVersion = this.#accounts.version;
    const byId = [...Map.groupBy(round, ({ item }) => item)];
    const entries = await this.#store.getMany(byId.flatMap(([id]) => stateKeys(id)));
    byId.forEach(([, waiting], index) =>
      tell(waiting, () => {
        const state = decodeState(entries[2 * index], entries[2 * index + 1]);
        return state && this.#keep(state, accountsVersion);
      })
    );
  }

  #keep(state: AccountState, accountsVersion: string): Quota {
    const { id } = state.account;
    const quota = this.#quotas.get(id) ?? new Quota(state);
    quota.see(state);
    quota.accountsVersion = accountsVersion;
    this.#quotas.set(id, quota);
    return quota;
  }
}
