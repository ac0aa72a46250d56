import { assert } from "@std/assert";
import { type Account, accountKey, ACCOUNTS_VERSION, decodeAccount } from "../../src/accounts/account.ts";
import type { Limits, Plan } from "../../src/accounts/plans.ts";
import { decodeUsage, encodeUsage, type Usage, usageKey } from "../../src/accounts/usage.ts";
import type { App } from "../../src/app.ts";
import { encodeJson } from "../../src/kv/row.ts";
import { operated } from "./operator_calls.ts";

/** Where an operator changes accounts, by commands over HTTP; and where a test reads, and forges, what is stored of them. */
export class Desk {
  readonly #app: App;
  readonly #kv: Deno.Kv;

  constructor(app: App, kv: Deno.Kv) {
    this.#app = app;
    this.#kv = kv;
  }

  /** Makes an account on a plan, or with limits of its own; gives its id and its key. */
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

  /** Gives an account another key; the one before ends after so many seconds, or at once. */
  async rotate(id: string, graceSeconds: number = 0): Promise<string> {
    const grace = graceSeconds > 0 ? ["--grace", `${graceSeconds}s`] : [];
    const { out: [apiKey] } = await operated(this.#app, ["accounts", "rotate", id, ...grace]);
    assert(apiKey);
    return apiKey;
  }

  /** Does what needs no more than the account's id. */
  async do(what: "suspend" | "resume" | "unban" | "reset" | "close" | "delete", id: string): Promise<void> {
    await operated(this.#app, ["accounts", what, id]);
  }

  /** What is stored of an account. */
  async account(id: string): Promise<Account> {
    return decodeAccount(await this.#row(accountKey(id)));
  }

  /** What is stored of what an account has used. */
  async usage(id: string): Promise<Usage> {
    return decodeUsage(await this.#row(usageKey(id)));
  }

  /** Changes what says nothing to requests, so that every process reads the accounts again. */
  async rename(id: string, name: string): Promise<void> {
    await this.#rewrite(id, { name });
  }

  /** Forges what an account has used. */
  async forgeUsage(id: string, change: Partial<Usage>): Promise<void> {
    await this.#rewrite(id, {}, change);
  }

  async #row(key: Deno.KvKey): Promise<Deno.KvEntry<unknown>> {
    const entry = await this.#kv.get(key);
    assert(entry.versionstamp !== null, `There is no row ${key.join()}`);
    return entry;
  }

  /** As another process does that changes an account: every process notices. */
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
