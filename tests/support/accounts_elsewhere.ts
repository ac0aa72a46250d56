import { type Account, ACCOUNTS_VERSION, type Issued } from "../../src/accounts/account.ts";
import type { AccountState } from "../../src/accounts/account_state.ts";
import { AccountStore, type NewAccount } from "../../src/accounts/account_store.ts";
import type { Environment } from "../../src/accounts/api_key.ts";
import type { Usage } from "../../src/accounts/usage.ts";
import type { Store } from "../../src/kv/store.ts";
import type { Transaction } from "../../src/store/transaction.ts";
import { Transactions } from "../../src/store/transactions.ts";
import { Versions } from "../../src/store/versions.ts";

/** What another process does to accounts, as an operator's command: it knows nothing of what the service remembers. */
export class AccountsElsewhere {
  readonly #accounts: AccountStore;
  readonly #transactions: Transactions;

  constructor(store: Store, environment: Environment = "staging", clock: () => number = () => 0) {
    this.#accounts = new AccountStore(store, new Versions(store).watch(ACCOUNTS_VERSION), environment);
    this.#transactions = new Transactions(store, clock);
  }

  create(newAccount: NewAccount, now: number): Promise<Issued> {
    return this.#transact(this.#accounts.creating(newAccount, now));
  }

  rotate(id: string, grace: number, now: number, replaced?: string): Promise<Issued | null> {
    return this.#transact(this.#accounts.rotating(id, grace, now, replaced));
  }

  change(id: string, change: Partial<Account>): Promise<Account | null> {
    return this.#transact(this.#accounts.changing(id, change));
  }

  suspend(id: string, since: number | null): Promise<Account | null> {
    return this.#transact(this.#accounts.suspending(id, since));
  }

  changeUsage(id: string, change: (usage: Usage) => Usage): Promise<AccountState | null> {
    return this.#transact(this.#accounts.changingUsage(id, change));
  }

  remove(id: string, condition: (state: AccountState) => boolean): Promise<boolean | null> {
    return this.#transact(this.#accounts.removing(id, condition));
  }

  find(id: string): Promise<AccountState | null> {
    return this.#accounts.find(id);
  }

  list(): AsyncGenerator<AccountState> {
    return this.#accounts.list();
  }

  async #transact<Result>(transaction: Transaction<Result>): Promise<Result> {
    return (await this.#transactions.run(transaction)).result;
  }
}
