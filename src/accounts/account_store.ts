import { type Along, both, type Change, NO_CHANGE } from "../batching/change.ts";
import { GroupCommit } from "../batching/group_commit.ts";
import { bump, noteVersion, type VersionRow } from "../store/versions.ts";
import { type Build, certain, type Checks, type CommitResult } from "../kv/commit.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { encodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import {
  type Account,
  accountKey,
  apiKeyKey,
  decodeAccount,
  isOpenedBy,
  type Issued,
  issued,
  keyHashesOf,
} from "./account.ts";
import { type AccountState, decodeState, stateKeys } from "./account_state.ts";
import { createApiKey, type Environment, hashApiKey, randomBase62 } from "./api_key.ts";
import { DAYS_KEPT, dayTotalKey, pastDay } from "./day_totals.ts";
import { countRotation } from "./rotations.ts";
import { dayOf, encodeUsage, UNUSED, type Usage, usageKey } from "./usage.ts";

/** What an account is made of. */
export type NewAccount = Pick<Account, "name" | "plan" | "limits" | "signedUp">;

/**
 * Stores accounts and changes them. A change shows at the next request in every process. Every method throws
 * StoreUnavailable when KV fails.
 */
export class AccountStore {
  readonly #store: Store;
  readonly #accounts: VersionRow;
  /** Of the accounts that it makes. */
  readonly #environment: Environment;
  /** For new accounts: nobody remembers anything of them, so the version need not change. */
  readonly #group: GroupCommit;

  /** What it does to accounts shows in the version that is watched. */
  constructor(store: Store, accounts: VersionRow, environment: Environment) {
    this.#store = store;
    this.#accounts = accounts;
    this.#environment = environment;
    this.#group = new GroupCommit(store);
  }

  /**
   * Makes an account with a key, if another change can be made along with it; else null.
   *
   * @throws {IssueInDoubt}
   */
  create(
    newAccount: NewAccount,
    now: number,
    along: Along<Account> = () => NO_CHANGE,
  ): Promise<Issued | null> {
    const environment = this.#environment;
    const apiKey = createApiKey(environment);
    const key = { keyHash: hashApiKey(apiKey), previousKey: null };
    const id = `acct_${randomBase62(16)}`;
    const times = { createdAt: now, suspendedAt: null, closedAt: null };
    const account = { id, ...newAccount, environment, ...times, ...key };
    const made: Change = {
      checks: [{ key: accountKey(id), versionstamp: null }],
      sets: [
        [accountKey(id), encodeJson(account)],
        [usageKey(id), encodeUsage(UNUSED)],
        [apiKeyKey(key.keyHash), encodeJson(id)],
      ],
    };
    return issued({ account, apiKey }, certain(this.#group.commit(both(made, along(account)))));
  }

  /** The account with this id and what it has used; null where there is none. */
  async find(id: string): Promise<AccountState | null> {
    const [account, usage] = await this.#store.getMany(stateKeys(id));
    return decodeState(account, usage);
  }

  /** Every account, in the order of ids. */
  async *list(): AsyncGenerator<AccountState> {
    for await (const accounts of this.#store.pages(accountKey(""), accountKey("~"))) {
      const usages = await this.#store.getMany(accounts.map(({ key }) => usageKey(String(key.at(-1)))));
      for (const [index, account] of accounts.entries()) {
        const state = decodeState(account, usages[index]);
        if (state) yield state;
      }
    }
  }

  /**
   * Gives an open account a new key. The one that is replaced stays valid for `grace` ms more: the one with the
   * hash `replaced`, if it opens the account now; else its latest. So who asks again, for a new key did not
   * arrive, keeps the key that he has. Null where no open account has this id, or the key does not open it.
   * Only clients name the key `replaced`: their rotations are counted, in the same commit, and limited.
   *
   * @throws {ApiError} `rotation_limit`.
   * @throws {IssueInDoubt}
   */
  rotate(
    id: string,
    grace: number,
    now: number,
    replaced?: string,
    checks: Checks = () => [],
  ): Promise<Issued | null> {
    return retried(async () => {
      const open = await this.#findOpen(id);
      const hash = replaced ?? open?.account.keyHash ?? "";
      if (open === null || !isOpenedBy(open.account, hash, now)) return null;
      const apiKey = createApiKey(open.account.environment);
      const account = {
        ...open.account,
        keyHash: hashApiKey(apiKey),
        previousKey: grace > 0 ? { hash, expiresAt: now + grace } : null,
        ...(replaced === undefined ? {} : { rotations: countRotation(open.account.rotations, now) }),
      };
      const ended = keyHashesOf(open.account).filter((known) => grace === 0 || known !== hash);
      const before = [open.check, ...checks()];
      const commit = this.#commit((operation) => {
        operation.check(...before).set(accountKey(id), encodeJson(account));
        operation.set(apiKeyKey(account.keyHash), encodeJson(id));
        for (const known of ended) operation.delete(apiKeyKey(known));
      });
      return await issued({ account, apiKey }, commit) ?? AGAIN;
    });
  }

  /** Changes an open account. Null where none has this id. */
  change(id: string, change: Partial<Account>, checks: Checks = () => []): Promise<Account | null> {
    return retried(async () => {
      const open = await this.#findOpen(id);
      if (open === null) return null;
      const account = { ...open.account, ...change };
      return await this.#replace(account, open.check, ...checks()) ? account : AGAIN;
    });
  }

  /**
   * Suspends an open account since that time (ms since the epoch), or resumes it if that is null; resolves to what it
   * was before. One that is so already stays as it is. Null where no open account has this id.
   */
  suspend(id: string, since: number | null): Promise<Account | null> {
    return retried(async () => {
      const open = await this.#findOpen(id);
      if (open === null) return null;
      const { account, check } = open;
      if ((account.suspendedAt === null) === (since === null)) return account;
      return await this.#replace({ ...account, suspendedAt: since }, check) ? account : AGAIN;
    });
  }

  /**
   * Changes what an open account has used, as an operator may; resolves to what it was. Null where none has this id.
   * Processes that hold something of the account notice, for the version of its row changes, too.
   */
  changeUsage(id: string, change: (usage: Usage) => Usage): Promise<AccountState | null> {
    return retried(async () => {
      const [account, usage] = await this.#store.getMany(stateKeys(id));
      const state = decodeState(account, usage);
      if (!account || !usage || state?.account.closedAt !== null) return null;
      const after = change(state.usage);
      const past = pastDay(state.usage, after);
      const { ok } = await this.#commit((operation) => {
        operation.check(account, usage).set(account.key, account.value).set(usage.key, encodeUsage(after));
        if (past) operation.set(dayTotalKey(past.day, id), encodeJson(past.total));
      });
      return ok ? state : AGAIN;
    });
  }

  /**
   * Removes an account and everything that belongs to it alone, if `condition` allows it. Resolves to whether
   * that was so.
   */
  remove(id: string, condition: (state: AccountState) => boolean): Promise<boolean> {
    return retried(async () => {
      const [account, usage] = await this.#store.getMany(stateKeys(id));
      const state = decodeState(account, usage);
      if (!account || !usage || !state || !condition(state)) return false;
      const day = dayOf(state.usage.minute);
      const { ok } = await this.#commit((operation) => {
        operation.check(account, usage).delete(account.key).delete(usage.key);
        for (const hash of keyHashesOf(state.account)) operation.delete(apiKeyKey(hash));
        for (let ago = 0; ago <= DAYS_KEPT; ago++) operation.delete(dayTotalKey(day - ago, id));
      });
      return ok || AGAIN;
    });
  }

  async #findOpen(id: string): Promise<{ account: Account; check: Deno.AtomicCheck } | null> {
    const entry = await this.#store.get(accountKey(id));
    const account = entry && decodeAccount(entry);
    return entry && account && account.closedAt === null ? { account, check: entry } : null;
  }

  /** Stores an account in place of what it was; resolves to whether the checks held. */
  async #replace(account: Account, ...checks: readonly Deno.AtomicCheck[]): Promise<boolean> {
    const { ok } = await this.#commit((operation) => {
      operation.check(...checks).set(accountKey(account.id), encodeJson(account));
    });
    return ok;
  }

  /** Commits what changes accounts. */
  async #commit(build: Build): Promise<CommitResult> {
    const result = await certain(this.#store.commit((operation) => {
      build(operation);
      bump(operation, this.#accounts);
    }));
    if (result.ok) noteVersion(this.#accounts, result.versionstamp);
    return result;
  }
}
