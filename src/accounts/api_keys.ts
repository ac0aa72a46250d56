import { bearerToken } from "../web/request.ts";
import { decodeJson, versionstampOf } from "../engine/row.ts";
import type { Store } from "../engine/store.ts";
import { batched } from "../engine/batch.ts";
import { BoundedMap } from "../base/bounded_map.ts";
import { noteVersion, type VersionRow } from "../engine/versions.ts";
import { Allowance } from "../limits/allowance.ts";
import { decodeState, stateKeys } from "../limits/holder.ts";
import { type Account, ACCOUNT_ROWS, apiKeyKey, isOpenedBy } from "./account.ts";
import { type Environment, hashApiKey, isApiKey } from "./api_key.ts";

/** The allowance of an account. */
export type AccountAllowance = Allowance<Account>;

/** Options of {@linkcode ApiKeys}. */
export interface ApiKeysOptions {
  readonly store: Store;
  /** The row whose version changes when an account does. */
  readonly accounts: VersionRow;
  readonly environment: Environment;
}

/** Which account a key belongs to. This never changes. */
interface Claim {
  readonly accountId: string;
  readonly hash: string;
}

const PREFIX_LENGTH = "Bearer ".length;
const MAX_CLAIMS = 10_000;
const MAX_ALLOWANCES = 10_000;
/** Accounts per snapshot of at most ten rows: two rows each, and the version row. */
const ACCOUNTS_READ = 4;

/** Finds an API key's account: in memory, if no account has changed. */
export class ApiKeys {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  readonly #environment: Environment;
  readonly #activeOf: (accountId: string) => AccountAllowance | undefined;
  /** By Authorization header. */
  readonly #claims: BoundedMap<string, Claim> = new BoundedMap(MAX_CLAIMS);
  /** By account ID. */
  readonly #allowances: BoundedMap<string, AccountAllowance> = new BoundedMap(MAX_ALLOWANCES);
  readonly #findAccountId: (hash: string) => Promise<string | null>;
  readonly #load: (accountId: string) => Promise<AccountAllowance | null>;

  /** `activeOf` returns an account's allowance if it is active, so that no second one is created. */
  constructor(
    { store, accounts, environment }: ApiKeysOptions,
    activeOf: (accountId: string) => AccountAllowance | undefined,
  ) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#activeOf = activeOf;
    this.#findAccountId = batched(async (hashes) => {
      const entries = await store.getMany(hashes.map(apiKeyKey));
      return (index) => entries[index] ? decodeJson<string>(entries[index]) : null;
    });
    this.#load = batched((ids) => this.#loadAllowances(ids));
  }

  /** Whether an Authorization header has a well-formed key. Detects typos without a read. */
  mayOpen(authorization: string): boolean {
    return this.#keyIn(authorization) !== undefined;
  }

  /** Whether the key's account ID is in memory. */
  knows(authorization: string): boolean {
    return this.#claims.get(authorization) !== undefined;
  }

  /**
   * The allowance for the key, as last read; undefined if the account is unknown or suspended, or the key is invalid.
   */
  recall(authorization: string, now: number): AccountAllowance | undefined {
    const claim = this.#claims.get(authorization);
    const allowance = claim && this.#allowances.get(claim.accountId);
    if (!allowance || allowance.holder.suspendedAt !== null) return undefined;
    return isOpenedBy(allowance.holder, claim.hash, now) ? allowance : undefined;
  }

  /** Whether the allowance was read at the accounts' last known version. */
  isCurrent({ accountsVersion }: AccountAllowance): boolean {
    return accountsVersion === this.#accounts.version;
  }

  /**
   * The allowance for the account that the key opens at `now` (ms since the epoch), even if suspended; null if there is
   * none. The allowance is current as of the last version check, or as of this call if it had to be read.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  find(authorization: string, now: number): AccountAllowance | null | Promise<AccountAllowance | null> {
    const claim = this.#claims.get(authorization);
    const allowance = claim && this.#allowances.get(claim.accountId);
    if (!claim || !allowance || !this.isCurrent(allowance)) return this.#lookUp(authorization, now);
    return isOpenedBy(allowance.holder, claim.hash, now) ? allowance : null;
  }

  /** Makes sure that the next use of a key reads its account again. */
  expire(authorization: string): void {
    const claim = this.#claims.get(authorization);
    const allowance = claim && this.#allowances.get(claim.accountId);
    if (allowance) allowance.accountsVersion = undefined;
  }

  /** The hash of the key in an Authorization header. */
  hashOf(authorization: string): string {
    return this.#claims.get(authorization)?.hash ?? hashApiKey(this.#keyIn(authorization) ?? "");
  }

  /** An account's allowance, if it is in memory. */
  allowanceOf(accountId: string): AccountAllowance | undefined {
    return this.#allowances.get(accountId);
  }

  #keyIn(authorization: string): string | undefined {
    const key = bearerToken(authorization);
    return key !== undefined && isApiKey(key, this.#environment) ? key : undefined;
  }

  async #lookUp(authorization: string, now: number): Promise<AccountAllowance | null> {
    const claim = this.#claims.get(authorization) ?? await this.#identify(authorization);
    const allowance = claim && await this.#load(claim.accountId);
    if (!allowance) {
      this.#claims.delete(authorization);
      return null;
    }
    // Cached only after the account was read, because a known account might be older than the key. Headers with extra
    // spaces are not cached, because otherwise one key could fill the cache.
    if (authorization.lastIndexOf(" ") < PREFIX_LENGTH) this.#claims.set(authorization, claim);
    return isOpenedBy(allowance.holder, claim.hash, now) ? allowance : null;
  }

  async #identify(authorization: string): Promise<Claim | null> {
    const key = this.#keyIn(authorization);
    if (key === undefined) return null;
    const hash = hashApiKey(key);
    const accountId = await this.#findAccountId(hash);
    return accountId === null ? null : { accountId, hash };
  }

  async #loadAllowances(ids: readonly string[]): Promise<(index: number) => AccountAllowance | null> {
    const snapshots: Promise<(() => AccountAllowance | null)[]>[] = [];
    for (let start = 0; start < ids.length; start += ACCOUNTS_READ) {
      snapshots.push(this.#loadTogether(ids.slice(start, start + ACCOUNTS_READ)));
    }
    const found = (await Promise.all(snapshots)).flat();
    return (index) => found[index]?.() ?? null;
  }

  /** Reads accounts and their version in one snapshot. */
  async #loadTogether(ids: readonly string[]): Promise<(() => AccountAllowance | null)[]> {
    const keys = [this.#accounts.key, ...ids.flatMap((id) => stateKeys(ACCOUNT_ROWS, id))];
    const [versionRow = null, ...rows] = await this.#store.getMany(keys);
    const version = versionstampOf(versionRow);
    noteVersion(this.#accounts, version);
    return ids.map((id, index) => () => {
      const state = decodeState(ACCOUNT_ROWS, rows[2 * index], rows[2 * index + 1]);
      if (state === undefined) return null;
      const allowance = this.#allowances.get(id) ?? this.#activeOf(id) ?? new Allowance(ACCOUNT_ROWS, state);
      allowance.noteRows(state);
      allowance.accountsVersion = version ?? "";
      this.#allowances.set(id, allowance);
      return allowance;
    });
  }
}
