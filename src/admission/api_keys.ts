import { apiKeyKey, isOpenedBy } from "../accounts/account.ts";
import { decodeState, stateKeys } from "../accounts/account_store.ts";
import { type Environment, hashApiKey, isApiKey } from "../accounts/api_key.ts";
import { bearerToken } from "../http/request.ts";
import { decodeJson, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { batched, tell, type Waiting } from "../store/batch.ts";
import { BoundedMap } from "../store/cache.ts";
import { noteVersion, type VersionRow } from "../store/versions.ts";
import { Allowance } from "./allowance.ts";

/** What recognizes API keys. */
export interface ApiKeysOptions {
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
const MAX_ALLOWANCES = 10_000;
/** Accounts of one snapshot: two rows each, and the version row. */
const ACCOUNTS_READ = 4;

/** Tells which account an API key opens, from memory as long as no account has changed. */
export class ApiKeys {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  readonly #environment: Environment;
  readonly #activeOf: (accountId: string) => Allowance | undefined;
  /** By Authorization value. */
  readonly #claims: BoundedMap<string, Claim> = new BoundedMap(MAX_CLAIMS);
  /** By account id. */
  readonly #allowances: BoundedMap<string, Allowance> = new BoundedMap(MAX_ALLOWANCES);
  readonly #findAccountId: (hash: string) => Promise<string | null>;
  readonly #load: (accountId: string) => Promise<Allowance | null>;

  /** `activeOf` tells the allowance of an account that must not be forgotten, if there is one. */
  constructor(
    { store, accounts, environment }: ApiKeysOptions,
    activeOf: (accountId: string) => Allowance | undefined,
  ) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#activeOf = activeOf;
    this.#findAccountId = batched((round) => this.#findAccountIds(round));
    this.#load = batched((round) => this.#loadAllowances(round));
  }

  /** Whether an Authorization value may open an account at all: a typo is known without a read. */
  mayOpen(authorization: string): boolean {
    return this.#keyIn(authorization) !== undefined;
  }

  /** Whether it is in memory whose the key is. */
  knows(authorization: string): boolean {
    return this.#claims.get(authorization) !== undefined;
  }

  /** The allowance of the account that the key opened when it was looked up last, unless it was suspended then. */
  recall(authorization: string, now: number): Allowance | undefined {
    const claim = this.#claims.get(authorization);
    const allowance = claim && this.#allowances.get(claim.accountId);
    if (!allowance || allowance.account.suspendedAt !== null) return undefined;
    return isOpenedBy(allowance.account, claim.hash, now) ? allowance : undefined;
  }

  /** Whether no account has changed since an allowance was read, as far as is known. */
  isCurrent({ accountsVersion }: Allowance): boolean {
    return accountsVersion === this.#accounts.version;
  }

  /**
   * The allowance of the account, suspended or not, that the key opens at `now` (ms since the epoch), or null. True as of
   * this call if it takes a read, and else as of the last check of the versions.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  find(authorization: string, now: number): Allowance | null | Promise<Allowance | null> {
    const claim = this.#claims.get(authorization);
    const allowance = claim && this.#allowances.get(claim.accountId);
    if (!claim || !allowance || !this.isCurrent(allowance)) return this.#lookUp(authorization, now);
    return isOpenedBy(allowance.account, claim.hash, now) ? allowance : null;
  }

  /** The hash of the key in an Authorization value. */
  hashOf(authorization: string): string {
    return this.#claims.get(authorization)?.hash ?? hashApiKey(this.#keyIn(authorization) ?? "");
  }

  /** What is known of an account, if anything is. */
  allowanceOf(accountId: string): Allowance | undefined {
    return this.#allowances.get(accountId);
  }

  #keyIn(authorization: string): string | undefined {
    const key = bearerToken(authorization);
    return key !== undefined && isApiKey(key, this.#environment) ? key : undefined;
  }

  async #lookUp(authorization: string, now: number): Promise<Allowance | null> {
    const claim = this.#claims.get(authorization) ?? await this.#identify(authorization);
    const allowance = claim && await this.#load(claim.accountId);
    if (!allowance) {
      this.#claims.delete(authorization);
      return null;
    }
    // Not before the account was read: what was known of it may be older than the key. With extra spaces around it,
    // one key could fill the cache with long strings.
    if (authorization.lastIndexOf(" ") < PREFIX_LENGTH) this.#claims.set(authorization, claim);
    return isOpenedBy(allowance.account, claim.hash, now) ? allowance : null;
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

  async #loadAllowances(round: readonly Waiting<string, Allowance | null>[]): Promise<void> {
    const byId = [...Map.groupBy(round, ({ item }) => item)];
    const snapshots: Promise<void>[] = [];
    for (let start = 0; start < byId.length; start += ACCOUNTS_READ) {
      snapshots.push(this.#loadTogether(byId.slice(start, start + ACCOUNTS_READ)));
    }
    await Promise.all(snapshots);
  }

  /** Reads accounts and their version in one snapshot. */
  async #loadTogether(
    byId: readonly (readonly [id: string, waiting: readonly Waiting<string, Allowance | null>[]])[],
  ): Promise<void> {
    const keys = [this.#accounts.key, ...byId.flatMap(([id]) => stateKeys(id))];
    const [versionRow = null, ...rows] = await this.#store.getMany(keys);
    const version = versionstampOf(versionRow) ?? "";
    noteVersion(this.#accounts, version);
    byId.forEach(([id, waiting], index) =>
      tell(waiting, () => {
        const state = decodeState(rows[2 * index], rows[2 * index + 1]);
        if (state === null) return null;
        const allowance = this.#allowances.get(id) ?? this.#activeOf(id) ?? new Allowance(state);
        allowance.see(state);
        allowance.accountsVersion = version;
        this.#allowances.set(id, allowance);
        return allowance;
      })
    );
  }
}
