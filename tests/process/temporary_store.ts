// A temporary KV file for server processes.
import { assert } from "@std/assert";
import type { Usage } from "../../src/limits/usage.ts";
import { openStore } from "../../src/engine/open.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { RemoteAccounts } from "../support/accounts.ts";
import { KEYS } from "./shipped.ts";
import { type Outcome, type ProcessOptions, runCommand, ServerProcess, type Variables } from "./process.ts";

/** Limits of an account; high by default. */
export interface AccountLimits {
  readonly perMinute?: number;
  readonly perDay?: number;
}

/** A new account. */
export interface Credential {
  readonly id: string;
  readonly key: string;
}

const AMPLE = 1_000_000_000;

/** A KV file in its own folder, for server processes and commands. Removed when it is disposed. */
export class TemporaryStore implements AsyncDisposable {
  readonly folder: string;
  readonly kvPath: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.kvPath = `${folder}/store.kv`;
  }

  /** Creates the folder, in which a server creates the KV file. */
  static async empty(): Promise<TemporaryStore> {
    return new TemporaryStore(await Deno.makeTempDir({ prefix: "store_" }));
  }

  /** Uses a KV file in a folder that is not removed here. */
  static within(folder: string): TemporaryStore {
    return new TemporaryStore(folder);
  }

  /** Creates the folder and the KV file, as a server does at its first start. */
  static async create(): Promise<TemporaryStore> {
    const store = await TemporaryStore.empty();
    await store.#use(() => Promise.resolve());
    return store;
  }

  /** Starts a server on the KV file. */
  serve(variables: Variables = {}, options: ProcessOptions = {}): Promise<ServerProcess> {
    return ServerProcess.start({ KV_PATH: this.kvPath, ...variables }, options);
  }

  /** Runs an operator's command on the KV file. */
  run(...args: readonly string[]): Promise<Outcome> {
    return runCommand(args, { KV_PATH: this.kvPath });
  }

  /** Creates an account on the KV file. */
  async createAccount({ perMinute = AMPLE, perDay = AMPLE }: AccountLimits = {}): Promise<Credential> {
    const account = {
      name: "tests",
      plan: CATALOGUE.plans.own,
      limits: { minute: perMinute, day: perDay },
      signedUp: false,
    } as const;
    const issued = await this.#use((accounts) => accounts.create(account, Date.now()));
    assert(issued);
    return { id: issued.account.id, key: issued.apiKey };
  }

  /** The stored usage of an account. */
  async usageOf({ id }: Credential): Promise<Usage> {
    const state = await this.#use((accounts) => accounts.find(id));
    assert(state);
    return state.usage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  async #use<T>(use: (accounts: RemoteAccounts) => Promise<T>): Promise<T> {
    const store = await openStore(this.kvPath, { clock: Date.now, create: true });
    const result = await use(new RemoteAccounts(store, "staging", undefined, KEYS));
    await store.close();
    return result;
  }
}

/** A server on its own KV file, and an account. */
export class ServedStore implements AsyncDisposable {
  readonly store: TemporaryStore;
  readonly account: Credential;
  readonly server: ServerProcess;

  private constructor(store: TemporaryStore, account: Credential, server: ServerProcess) {
    this.store = store;
    this.account = account;
    this.server = server;
  }

  static async start(
    { variables, process, ...limits }: AccountLimits & {
      readonly variables?: Variables;
      readonly process?: ProcessOptions;
    } = {},
  ): Promise<ServedStore> {
    const store = await TemporaryStore.create();
    const account = await store.createAccount(limits);
    return new ServedStore(store, account, await store.serve(variables, process));
  }

  get key(): string {
    return this.account.key;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

/** Runs a test of a daily limit. If it fails because midnight (UTC) passed in the meantime, runs it again. */
export async function inOneDay(test: () => Promise<void>): Promise<void> {
  const today = () => new Date().getUTCDate();
  const day = today();
  try {
    await test();
  } catch (error) {
    if (day === today()) throw error;
    await test();
  }
}
