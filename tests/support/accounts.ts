// Changes of accounts by another process.
import { assert } from "@std/assert";
import { type Account, ACCOUNTS_VERSION, type Issued } from "../../src/accounts/account.ts";
import {
  type AccountState,
  AccountStore,
  type Added,
  type NewAccount,
  type NewKey,
  type Rotated,
} from "../../src/accounts/account_store.ts";
import type { Environment } from "../../src/service/mod.ts";
import type { KeyForm } from "../../src/accounts/api_key.ts";
import type { Usage } from "../../src/limits/usage.ts";
import type { Store } from "../../src/engine/store.ts";
import type { Decided, Transaction } from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import { KEYS } from "./things.ts";

/** Changes accounts in another process, which shares no memory with the service. */
export class RemoteAccounts {
  readonly #accounts: AccountStore;
  readonly #transactions: Transactions;
  readonly #clock: () => number;

  constructor(
    store: Store,
    environment: Environment = "staging",
    clock: () => number = () => 0,
    keys: KeyForm = KEYS,
  ) {
    const version = new Versions(store).watch(ACCOUNTS_VERSION);
    this.#accounts = new AccountStore(store, version, { environment, keys });
    this.#transactions = new Transactions(store, clock);
    this.#clock = clock;
  }

  create(newAccount: NewAccount, now: number): Promise<Issued> {
    return this.#transact(this.#accounts.creating(newAccount, now));
  }

  /** Gives an account a new key. The previous one expires after `grace` ms. */
  rotate(id: string, grace: number = 0, now: number = this.#clock()): Promise<Rotated | null> {
    return this.#transact(this.#accounts.rotating(id, grace, now));
  }

  /** Adds a key to an open account, as an operator. */
  async addKey(id: string, newKey: NewKey, now: number = this.#clock()): Promise<Added> {
    const added = await this.#transact(this.#accounts.addingKey(id, newKey, now));
    assert(added);
    return added;
  }

  /** Revokes an added key of an open account, as an operator or with the key that has a hash. */
  revokeKey(id: string, keyId: string, by?: string): Promise<Account | null> {
    return this.#transact(this.#accounts.revokingKey(id, keyId, this.#clock(), by));
  }

  /** Adds a key with the key that has a hash. */
  addKeyBy(id: string, by: string): Promise<Added | null> {
    const newKey = { label: "by a key", scope: "read" };
    return this.#transact(this.#accounts.addingKey(id, newKey, this.#clock(), by));
  }

  /** Replaces the key that has a hash. */
  rotateBy(id: string, by: string, grace: number = 0): Promise<Rotated | null> {
    return this.#transact(this.#accounts.rotating(id, grace, this.#clock(), by));
  }

  async change(id: string, change: Partial<Account>): Promise<Account | null> {
    return (await this.#transact(this.#accounts.changing(id, () => change)))?.after ?? null;
  }

  /** Suspends an account, or resumes it if `since` is null. */
  suspend(id: string, since: number | null): Promise<Account | null> {
    return this.change(id, { suspendedAt: since });
  }

  close(id: string): Promise<Account | null> {
    return this.change(id, { closedAt: this.#clock() });
  }

  changeUsage(id: string, change: (usage: Usage) => Usage): Promise<object | null> {
    return this.#transact(this.#accounts.changingUsage(id, change));
  }

  remove(id: string, condition: (state: AccountState) => boolean): Promise<boolean | null> {
    return this.#transact(this.#accounts.removing({ id }, condition));
  }

  find(id: string): Promise<AccountState | null> {
    return this.#accounts.find(id);
  }

  /** The stored usage of an account. */
  async usage(id: string): Promise<Usage> {
    const state = await this.find(id);
    assert(state);
    return state.usage;
  }

  async list(): Promise<readonly AccountState[]> {
    const { states, next } = await this.#accounts.page(undefined, 1_000);
    assert(next === undefined, "There are more accounts");
    return states;
  }

  async #transact<Result extends Decided>(transaction: Transaction<Result>): Promise<Result> {
    return (await this.#transactions.run(transaction)).result;
  }
}
