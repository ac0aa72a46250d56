// Operators' commands over HTTP, and changes by another process.
import { assert, assertEquals } from "@std/assert";
import {
  type Account,
  accountKey,
  ACCOUNTS_VERSION,
  decodeAccount,
  type Issued,
  type Limits,
  type Plan,
} from "../../src/accounts/account.ts";
import { type AccountState, AccountStore, type NewAccount } from "../../src/accounts/account_store.ts";
import type { Environment } from "../../src/accounts/api_key.ts";
import { decodeUsage, encodeUsage, type Usage, usageKey } from "../../src/accounts/usage.ts";
import type { App } from "../../src/app.ts";
import { encodeJson } from "../../src/kv/row.ts";
import type { Store } from "../../src/kv/store.ts";
import type { Transaction } from "../../src/store/transaction.ts";
import { Transactions } from "../../src/store/transactions.ts";
import { Versions } from "../../src/store/versions.ts";
import { requestTo } from "./client.ts";

/** The operator token. */
export const OPERATOR_TOKEN = "an-operator's-token-of-32-characters";

/** The result of a command. */
export interface Outcome {
  readonly exit: number;
  /** Lines of standard output and of standard error. */
  readonly out: readonly string[];
  readonly err: readonly string[];
}

const INFO = { remoteAddr: { transport: "tcp", hostname: "198.51.100.1", port: 1 } } as const;

/** Runs a command over HTTP, such as `operate(app, ["accounts", "list"])`. */
export async function operate(app: App, args: readonly string[], input: string = ""): Promise<Outcome> {
  const options = { key: OPERATOR_TOKEN, json: { args, input } };
  const response = await app(requestTo("http://localhost", "POST /operator", options), INFO);
  assertEquals(response.status, 200);
  const lines: Record<string, unknown>[] = (await response.text()).trimEnd().split("\n")
    .map((line) => JSON.parse(line));
  const texts = (name: string) => lines.flatMap((line) => name in line ? [String(line[name])] : []);
  return { exit: Number(lines.at(-1)?.exit ?? NaN), out: texts("out"), err: texts("err") };
}

/** Runs a command that must succeed. Resolves to its lines of standard output and of standard error. */
export async function operated(app: App, args: readonly string[], input?: string): Promise<Outcome> {
  const outcome = await operate(app, args, input);
  assertEquals(outcome.exit, 0, outcome.err.join("\n"));
  return outcome;
}

/** Changes accounts by commands over HTTP, and reads or forges their rows. */
export class Desk {
  readonly #app: App;
  readonly #kv: Deno.Kv;

  constructor(app: App, kv: Deno.Kv) {
    this.#app = app;
    this.#kv = kv;
  }

  /** Creates an account on a plan, or with its own limits. Resolves to its ID and its key. */
  async create(plan: Exclude<Plan, "enterprise"> | Limits): Promise<{ id: string; apiKey: string }> {
    const options = typeof plan === "string" ? [plan] : enterprise(plan);
    const { out: [apiKey], err } = await operated(this.#app, [
      "accounts",
      "create",
      "tests",
      "--plan",
      ...options,
    ]);
    const [id] = /acct_\w+/.exec(err.join()) ?? [];
    assert(id && apiKey);
    return { id, apiKey };
  }

  /** Moves an account to a plan with these limits. */
  async plan(id: string, limits: Limits): Promise<void> {
    await operated(this.#app, ["accounts", "plan", id, ...enterprise(limits)]);
  }

  /** Gives an account a new key. The previous one expires after `grace` seconds, or at once. */
  async rotate(id: string, graceSeconds: number = 0): Promise<string> {
    const grace = graceSeconds > 0 ? ["--grace", `${graceSeconds}s`] : [];
    const { out: [apiKey] } = await operated(this.#app, ["accounts", "rotate", id, ...grace]);
    assert(apiKey);
    return apiKey;
  }

  /** Runs a command that needs only the account's ID. */
  async do(what: "suspend" | "resume" | "unban" | "reset" | "close" | "delete", id: string): Promise<void> {
    await operated(this.#app, ["accounts", what, id]);
  }

  /** The stored account. */
  async account(id: string): Promise<Account> {
    return decodeAccount(await this.#row(accountKey(id)));
  }

  /** The stored usage of an account. */
  async usage(id: string): Promise<Usage> {
    return decodeUsage(await this.#row(usageKey(id)));
  }

  /** Renames an account. Requests are not affected, but every process reads the accounts again. */
  async rename(id: string, name: string): Promise<void> {
    await this.#rewrite(id, { name });
  }

  /** Forges the usage of an account. */
  async forgeUsage(id: string, change: Partial<Usage>): Promise<void> {
    await this.#rewrite(id, {}, change);
  }

  async #row(key: Deno.KvKey): Promise<Deno.KvEntry<unknown>> {
    const entry = await this.#kv.get(key);
    assert(entry.versionstamp !== null, `There is no row ${key.join()}`);
    return entry;
  }

  /** Changes an account as another process does, so that every process notices. */
  async #rewrite(id: string, change: Partial<Account>, usageChange?: Partial<Usage>): Promise<void> {
    const account = await this.#row(accountKey(id));
    const operation = this.#kv.atomic().check(account).set(ACCOUNTS_VERSION, encodeJson({}));
    operation.set(account.key, encodeJson({ ...decodeAccount(account), ...change }));
    if (usageChange) {
      const usage = await this.#row(usageKey(id));
      operation.check(usage).set(usage.key, encodeUsage({ ...decodeUsage(usage), ...usageChange }));
    }
    if (!(await operation.commit()).ok) await this.#rewrite(id, change, usageChange);
  }
}

function enterprise({ minute, day }: Limits): string[] {
  return ["enterprise", "--per-minute", `${minute}`, "--per-day", `${day}`];
}

/** Changes accounts in another process, which shares no memory with the service. */
export class RemoteAccounts {
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
