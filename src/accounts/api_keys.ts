import { BoundedMap, monotonicNow, whenReady } from "../base/mod.ts";
import {
  batched,
  decodeJson,
  raiseVersion,
  type Store,
  type VersionRow,
  versionstampOf,
} from "../engine/mod.ts";
import { type Allowance, type Decision, decodeState, type Permits, stateKeys } from "../limits/mod.ts";
import { type Account, ACCOUNTS, apiKeyKey, keyWith, type ValidKey } from "./account.ts";
import type { Environment } from "../service/mod.ts";
import { hashApiKey, type KeyForm } from "./api_key.ts";

/** Options of {@linkcode ApiKeys}. */
export interface ApiKeysOptions {
  readonly store: Store;
  /** The row whose version changes when an account does. */
  readonly accounts: VersionRow;
  readonly environment: Environment;
  readonly keys: KeyForm;
  readonly permits: Permits<Account>;
}

/** A key that is valid for an account, which may be suspended. */
export interface Opened {
  readonly allowance: Allowance<Account>;
  readonly valid: ValidKey;
}

/** A key, and the account that it belongs to. This never changes. */
export interface OwnedKey {
  readonly key: string;
  readonly accountId: string;
  readonly hash: string;
}

const MAX_ACCOUNTS = 20_000;
/** More than accounts, because an account can have several keys. */
const MAX_KEYS = 4 * MAX_ACCOUNTS;
/** Accounts in one snapshot, which has at most ten rows: two for each account, and the version row. */
const ACCOUNTS_READ = 4;

/** Finds the account of a request's API key, in memory if no account has changed. */
export class ApiKeys {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  readonly #environment: Environment;
  readonly #keys: KeyForm;
  readonly #permits: Permits<Account>;
  /** By API key. */
  readonly #owned: BoundedMap<string, OwnedKey> = new BoundedMap(MAX_KEYS);
  /** The accounts' version when an account was last read, by account ID. */
  readonly #readAt: BoundedMap<string, string> = new BoundedMap(MAX_ACCOUNTS);
  readonly #findAccountId: (hash: string) => Promise<string | null>;
  readonly #load: (accountId: string) => Promise<Allowance<Account> | null>;

  constructor({ store, accounts, environment, keys, permits }: ApiKeysOptions) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#keys = keys;
    this.#permits = permits;
    this.#findAccountId = batched(async (hashes) => {
      const entries = await store.getMany(hashes.map(apiKeyKey));
      return (index) => entries[index] ? decodeJson<string>(entries[index]) : null;
    });
    this.#load = batched((ids) => this.#loadAllowances(ids));
  }

  /** Whether a text has the form of a key. Detects typos without a read. */
  isWellFormed(key: string): boolean {
    return this.#keys.accepts(key, this.#environment);
  }

  /** The key with its account, if that is in memory. */
  known(key: string): OwnedKey | undefined {
    return this.#owned.get(key);
  }

  /**
   * Looks up which account a key belongs to. Resolves to whether there is one, which is then read at its next use.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  async identify(key: string): Promise<boolean> {
    const hash = hashApiKey(key);
    const accountId = await this.#findAccountId(hash);
    if (accountId === null) return false;
    this.#readAt.delete(accountId); // What is known of the account might be older than the key.
    this.#owned.set(key, { key, accountId, hash });
    return true;
  }

  /** The allowance of the key's account; undefined if it is not in memory, or an account has changed since it was read. */
  recall({ accountId }: OwnedKey): Allowance<Account> | undefined {
    const allowance = this.#permits.of(accountId);
    return allowance && this.#isCurrent(allowance) ? allowance : undefined;
  }

  /** The account as it is in memory, if the key is valid for it at `now`; otherwise null. */
  open(allowance: Allowance<Account>, { hash }: OwnedKey, now: number): Opened | null {
    const valid = keyWith(allowance.holder, hash, now);
    return valid === undefined ? null : { allowance, valid };
  }

  /** The limits of the account that the key opens at `now`; undefined if it is not in memory. */
  peek(key: string, now: number): Decision | undefined {
    const owned = this.known(key);
    const allowance = this.#permits.of(owned?.accountId ?? "");
    if (!owned || !allowance?.isKnown) return undefined;
    return ACCOUNTS.isOpenedBy(allowance.holder, owned.hash, now) ? allowance.peek() : undefined;
  }

  /**
   * The allowance for the account that a key opens at `now`, even if suspended; null if there is none. The allowance is
   * current as of the last version check, or as of this call if it had to be read.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  find(owned: OwnedKey, now: number): Opened | null | Promise<Opened | null> {
    return whenReady(this.recall(owned) ?? this.#load(owned.accountId), (allowance) => {
      if (allowance === null) this.#owned.delete(owned.key);
      return allowance && this.open(allowance, owned, now);
    });
  }

  #isCurrent({ holder, isKnown }: Allowance<Account>): boolean {
    return isKnown && this.#readAt.get(holder.id) === this.#accounts.version;
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
    const at = monotonicNow();
    const keys = [this.#accounts.key, ...ids.flatMap((id) => stateKeys(ACCOUNTS, id))];
    const [versionRow = null, ...rows] = await this.#store.getMany(keys);
    const version = versionstampOf(versionRow);
    raiseVersion(this.#accounts, version);
    return ids.map((id, index) => () => {
      const state = decodeState(ACCOUNTS, id, rows.slice(2 * index, 2 * index + 2));
      if (state === undefined) return null;
      this.#readAt.set(id, version ?? "");
      return this.#permits.learn(state, at);
    });
  }
}
