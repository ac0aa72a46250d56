import { ACCOUNTS_VERSION } from "./accounts/account.ts";
import { AccountStore } from "./accounts/account_store.ts";
import { type Config, ConfigError, OUT_OF_REACH, readConfig } from "./config.ts";
import { MEMORY, OpenError, openStore } from "./kv/open.ts";
import { MessageStore } from "./messages/message_store.ts";
import { carryOut } from "./operator/operator.ts";
import { carryOutRemotely } from "./operator/remote.ts";
import type { Command, Terminal } from "./operator/terminal.ts";
import { CATALOGUE_VERSION, PetStore } from "./pets/pet_store.ts";
import { Transactions } from "./store/transactions.ts";
import { Versions } from "./store/versions.ts";
import { BROKEN_PIPE, print, printOutput, readLines } from "./stdio.ts";

/**
 * Carries out an operator's command, such as `["accounts", "list"]`, with the environment variables that `env`
 * reads: by the service at SERVICE_URL, if there is one, else on the KV. Resolves to the exit code: 0 done, 1
 * could not be done, 2 not understood.
 */
export async function main(
  args: readonly string[],
  env: (name: string) => string | undefined,
  terminal: Terminal,
): Promise<number> {
  try {
    return await carryOut(args, terminal, async (command) => {
      const config = readConfig(env);
      const { serviceUrl, operatorTokens: [token] } = config;
      if (serviceUrl === undefined) return await runHere(command, config, terminal);
      if (token === undefined) throw new ConfigError("SERVICE_URL needs OPERATOR_TOKEN beside it.");
      return await carryOutRemotely(args, { url: serviceUrl, token }, terminal);
    });
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return BROKEN_PIPE;
    const saysWhy = error instanceof ConfigError || error instanceof OpenError;
    const reason = error instanceof Error ? error.message : typeof error;
    terminal.err(saysWhy ? reason : `Failed: ${reason}`);
    return 1;
  }
}

async function runHere(
  command: Command,
  { kvPath, environment }: Config,
  { clock }: Terminal,
): Promise<number> {
  if (kvPath === MEMORY) throw new ConfigError(OUT_OF_REACH);
  const store = await openStore(kvPath, { clock, create: false });
  try {
    const versions = new Versions(store);
    const transactions = new Transactions(store, clock);
    await command({
      accounts: new AccountStore(store, versions.watch(ACCOUNTS_VERSION), environment),
      pets: new PetStore(store, transactions, versions.watch(CATALOGUE_VERSION)),
      messages: new MessageStore(store),
      transact: async (transaction) => (await transactions.run(transaction)).result,
    });
  } finally {
    await store.close();
  }
  return 0;
}

if (import.meta.main) {
  const terminal = {
    clock: Date.now,
    input: () => Array.fromAsync(readLines()),
    out: printOutput,
    err: print,
    isStopping: () => false,
    isRemote: false,
  };
  Deno.exit(await main(Deno.args, (name) => Deno.env.get(name), terminal));
}
