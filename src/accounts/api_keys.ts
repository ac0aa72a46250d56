import { BoundedMap } from "../base/mod.ts";
import {
  batched,
  decodeJson,
  noteVersion,
  type Store,
  type VersionRow,
  versionstampOf,
} from "../engine/mod.ts";
import { bearerToken } from "../web/mod.ts";
import { type Allowance, type Decision, decodeState, type Permits, stateKeys } from "../limits/mod.ts";
import { type Account, ACCOUNTS, apiKeyKey, hasKey } from "./account.ts";
import { type Environment, hashApiKey, isApiKey } from "./api_key.ts";

/** Options of {@linkcode ApiKeys}. */
export interface ApiKeysOptions {
  readonly store: Store;
  /** The row whose version changes when an account does. */
  readonly accounts: VersionRow;
  readonly environment: Environment;
  readonly permits: Permits<Account>;
}

/** The account that a key belongs to. This never changes. */
interface KeyOwner {
  readonly accountId: string;
  readonly hash: string;
}

const PREFIX_LENGTH = "Bearer ".length;
const MAX_KEYS = 10_000;
const MAX_ACCOUNTS = 10_000;
/** Accounts in one snapshot, which has at most ten rows: two for each account, and the version row. */
const ACCOUNTS_READ = 4;

/** Finds the account of a request's API key, in memory if no account has changed. */
export class ApiKeys {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  readonly #environment: Environment;
  readonly #permits: Permits<Account>;
  /** Owners of keys, by Authorization header. */
  readonly #owners: BoundedMap<string, KeyOwner> = new BoundedMap(MAX_KEYS);
  /** The accounts' version when an account was last read, by account ID. */
  readonly #readAt: BoundedMap<string, string> = new BoundedMap(MAX_ACCOUNTS);
  readonly #findAccountId: (hash: string) => Promise<string | null>;
  readonly #load: (accountId: string) => Promise<Allowance<Account> | null>;

  constructor({ store, accounts, environment, permits }: ApiKeysOptions) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#permits = permits;
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
    return this.#owners.get(authorization) !== undefined;
  }

  /** The allowance of the key's account; undefined if it is not in memory, or an account has changed since it was read. */
  recall(authorization: string): Allowance<Account> | undefined {
    const owner = this.#owners.get(authorization);
    const allowance = owner && this.#permits.of(owner.accountId);
    return allowance && this.#isCurrent(allowance) ? allowance : undefined;
  }

  /** Whether the key opens an account at `now` (ms since the epoch), and the account is not suspended. */
  opens({ holder }: Allowance<Account>, authorization: string, now: number): boolean {
    return ACCOUNTS.isOpenedBy(holder, this.hashOf(authorization), now);
  }

  /** The limits of the account that the key opens at `now` (ms since the epoch); undefined if it is not in memory. */
  peek(authorization: string, now: number): Decision | undefined {
    const owner = this.#owners.get(authorization);
    const allowance = owner && this.#permits.of(owner.accountId);
    return allowance?.isKnown && this.opens(allowance, authorization, now) ? allowance.peek() : undefined;
  }

  /**
   * The allowance for the account that the key opens at `now` (ms since the epoch), even if suspended; null if there is
   * none. The allowance is current as of the last version check, or as of this call if it had to be read.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  find(authorization: string, now: number): Allowance<Account> | null | Promise<Allowance<Account> | null> {
    const allowance = this.recall(authorization);
    if (allowance === undefined) return this.#lookUp(authorization, now);
    return hasKey(allowance.holder, this.hashOf(authorization), now) ? allowance : null;
  }

  /** The hash of the key in an Authorization header. */
  hashOf(authorization: string): string {
    return this.#owners.get(authorization)?.hash ?? hashApiKey(this.#keyIn(authorization) ?? "");
  }

  #isCurrent({ holder, isKnown }: Allowance<Account>): boolean {
    return isKnown && this.#readAt.get(holder.id) === this.#accounts.version;
  }

  #keyIn(authorization: string): string | undefined {
    const key = bearerToken(authorization);
    return key !== undefined && isApiKey(key, this.#environment) ? key : undefined;
  }

  async #lookUp(authorization: string, now: number): Promise<Allowance<Account> | null> {
    const owner = this.#owners.get(authorization) ?? await this.#identify(authorization);
    const allowance = owner && await this.#load(owner.accountId);
    if (!allowance) {
      this.#owners.delete(authorization);
      return null;
    }
    // Cached only after the account was read, because a known account might be older than the key. Headers with extra
    // spaces are not cached, because otherwise one key could fill the cache.
    if (authorization.lastIndexOf(" ") < PREFIX_LENGTH) this.#owners.set(authorization, owner);
    return hasKey(allowance.holder, owner.hash, now) ? allowance : null;
  }

  async #identify(authorization: string): Promise<KeyOwner | null> {
    const key = this.#keyIn(authorization);
    if (key === undefined) return null;
    const hash = hashApiKey(key);
    const accountId = await this.#findAccountId(hash);
    return accountId === null ? null : { accountId, hash };
  }

  async #loadAllowances(ids: readonly string[]): Promise<(index: number) => Allowance<Account> | null> {
    const snapshots: Promise<(() => Allowance<Account> | null)[]>[] = [];
    for (let start = 0; start < ids.length; start += ACCOUNTS_READ) {
      snapshots.push(this.#loadTogether(ids.slice(start, start + ACCOUNTS_READ)));
    }
    const found = (await Promise.all(snapshots)).flat();
    return (index) => found[index]?.() ?? null;
  }

  /** Reads accounts and their version in one snapshot. */
  async #loadTogether(ids: readonly string[]): Promise<(() => Allowance<Account> | null)[]> {
    const asOf = performance.now();
    const keys = [this.#accounts.key, ...ids.flatMap((id) => stateKeys(ACCOUNTS, id))];
    const [versionRow = null, ...rows] = await this.#store.getMany(keys);
    const version = versionstampOf(versionRow);
    noteVersion(this.#accounts, version);
    return ids.map((id, index) => () => {
      const state = decodeState(ACCOUNTS, id, rows.slice(2 * index, 2 * index + 2));
      if (state === undefined) return null;
      this.#readAt.set(id, version ?? "");
      return this.#permits.learn(state, asOf);
    });
  }
}
