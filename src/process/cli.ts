import { isUrl, MEMORY, OpenError, openStore, type Store } from "../engine/mod.ts";
import { type Catalogue, openCollections, ResourceError } from "../resource/mod.ts";
import { accountCommands } from "../operator/account_commands.ts";
import { backUp, restore } from "../operator/backup.ts";
import { CHANGE_COMMANDS } from "../operator/change_commands.ts";
import { Client, onClient, remoteFetch, type Target } from "../operator/client.ts";
import {
  CommandError,
  type CommandGroup,
  type CommandIo,
  runCommandLine,
  type Task,
  type Work,
} from "../operator/command_line.ts";
import { itemCommands } from "../operator/item_commands.ts";
import { localFetch } from "../operator/local.ts";
import { operatorOperations } from "../operator/operations.ts";
import type { CopyOptions } from "../operator/store_copy.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "../catalogue/catalogue.ts";
import { PARTS } from "../catalogue/parts.ts";
import { createStores } from "../app/stores.ts";
import { VERSION } from "../app/version.ts";
import { type Config, ConfigError, readConfig, type Variables } from "./config.ts";
import { BROKEN_PIPE, onStopSignal, print, printOutput, readLines } from "./process.ts";
import { warningsOfKv, warningsOfService } from "./warnings.ts";

/** The store's file, for commands that work on it. */
interface StoreFile extends CopyOptions {
  readonly kvPath: string;
}

/** Commands on what a catalogue declares. Most call operators' operations. */
export function clientTasks(catalogue: Catalogue): readonly Task<Target>[] {
  const adapted = (group: CommandGroup<Client>) => ({ ...group, commands: onClient(group.commands) });
  return [
    adapted(accountCommands(catalogue)),
    itemCommands(catalogue),
    adapted(CHANGE_COMMANDS),
    ...PARTS.flatMap(({ commands }) => commands ? [adapted(commands)] : []),
  ];
}

/** Commands on the store's file. They need neither the service nor the network. */
export const FILE_TASKS: readonly Task<StoreFile>[] = [
  {
    name: "backup",
    command: {
      words: ["FILE"],
      help: `Copies the store at KV_PATH (default: ${DEFAULT_KV_PATH}) to a new file, while the service
runs. The backup contains everything that was stored when the command started. FILE appears only once it
is complete and checked. An interrupted backup leaves nothing behind; only kill -9 leaves a folder whose
name ends with .unfinished. Keep a backup as safe as the store itself. Relative paths start from the
project's folder, not from your current folder.`,
      prepare: ({ words: [file = ""] }) => ({ kvPath, ...options }) => backUp(kvPath, file, options),
    },
  },
  {
    name: "restore",
    command: {
      words: ["FILE"],
      help: `Restores the backup FILE to KV_PATH (default: ${DEFAULT_KV_PATH}), where no store may exist.
First stop the service, because a running service keeps using the old file even after you move it. Then
move that file away, with its -wal, -shm and -journal files if they exist. The store appears only once it
is complete and checked. An interrupted restore leaves nothing behind. Everything is then as it was at the
time of the backup: replaced keys work again, suspensions since then are lifted, ids are used again. If
the feed of changes is on, its readers get 410, and have to list everything again.
Relative paths start from the project's folder, not from your current folder.`,
      prepare: ({ words: [file = ""] }) => ({ kvPath, ...options }) => restore(file, kvPath, options),
    },
  },
];

/**
 * Runs an operator's command, such as `["accounts", "list"]` or `["backup", FILE]`. Most commands call operators'
 * operations: those of the service at SERVICE_URL or, without it, the same operations here, on the KV. Resolves to the
 * exit code: 0 success, 1 failure, 2 invalid arguments.
 */
export async function main(
  args: readonly string[],
  env: Variables,
  io: CommandIo,
  catalogue: Catalogue = CATALOGUE,
): Promise<number> {
  try {
    if (FILE_TASKS.some(({ name }) => name === args[0])) {
      return await runCommandLine(FILE_TASKS, args, io, (work) => runOnFile(work, env, io));
    }
    return await runCommandLine(clientTasks(catalogue), args, io, async (work) => {
      const config = readConfig(env);
      const { serviceUrl, operatorTokens, operatorReadTokens } = config;
      const [{ token } = {}] = [...operatorTokens, ...operatorReadTokens];
      if (serviceUrl === undefined) return await runLocally(work, config, catalogue, io);
      if (token === undefined) throw new ConfigError("With SERVICE_URL, also set OPERATOR_TOKEN.");
      for (const warning of warningsOfService(serviceUrl)) io.err(warning);
      await work({
        operate: (work) => work(new Client(remoteFetch(serviceUrl, token), VERSION)),
        store() {
          throw new ConfigError("This command needs the store itself. Unset SERVICE_URL, and set KV_PATH.");
        },
      });
    });
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return BROKEN_PIPE;
    const saysWhy = error instanceof ConfigError || error instanceof OpenError ||
      error instanceof ResourceError;
    const reason = error instanceof Error ? error.message : typeof error;
    io.err(saysWhy ? reason : `Failed: ${reason}`);
    return 1;
  }
}

/** Works on the store, in this process. */
async function runLocally(
  work: Work<Target>,
  config: Config,
  catalogue: Catalogue,
  io: CommandIo,
): Promise<void> {
  requireReachable(config.kvPath);
  for (const warning of warningsOfKv(config)) io.err(warning);
  const store = await openStore(config.kvPath, { clock: io.clock, create: false });
  try {
    await work({ operate: (work) => operate(work, store, config, catalogue, io), store: () => store });
  } finally {
    await store.close();
  }
}

/** Works with operators' operations in this process. */
async function operate(
  work: Work<Client>,
  store: Store,
  { environment }: Config,
  catalogue: Catalogue,
  { clock, err }: CommandIo,
): Promise<void> {
  const generations = await openCollections(store, catalogue, { create: false });
  const { accounts, items, changes, transactions, close } = createStores({
    ...{ store, catalogue, environment, clock, generations },
    report: ({ message }) => err(`${message}.`),
  });
  const operations = operatorOperations({ store, catalogue, accounts, items, changes, parts: PARTS });
  await work(new Client(localFetch(operations, { transactions, clock }))).finally(close);
}

/** Works on the store's file. SIGINT and SIGTERM stop it. These commands may read only two environment variables. */
async function runOnFile(work: Work<StoreFile>, env: Variables, { err }: CommandIo): Promise<void> {
  if (env("SERVICE_URL")) {
    throw new ConfigError(
      "Backups need the store's file. Unset SERVICE_URL, set KV_PATH, and run this on the machine that has the file.",
    );
  }
  const { kvPath = DEFAULT_KV_PATH } = readConfig((name) => name === "KV_PATH" ? env(name) : undefined);
  requireReachable(kvPath);
  if (isUrl(kvPath)) {
    throw new ConfigError(
      "KV_PATH is the URL of a KV Connect server. Run this on that server's machine, with the path of its SQLite file.",
    );
  }
  const stop = new AbortController();
  using _ = onStopSignal((name) => stop.abort(new CommandError(`it was stopped by ${name}`)));
  await work({ kvPath, err, signal: stop.signal });
}

function requireReachable(kvPath: string | undefined): void {
  if (kvPath === MEMORY) {
    throw new ConfigError("Commands cannot use KV_PATH=:memory:, because only the server has access to it.");
  }
}

if (import.meta.main) {
  const io: CommandIo = {
    clock: Date.now,
    input: () => Array.fromAsync(readLines()),
    out: printOutput,
    err: print,
  };
  Deno.exit(await main(Deno.args, (name) => Deno.env.get(name), io));
}
