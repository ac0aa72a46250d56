import { stringifyJson } from "../../src/web/json.ts";
import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { ACCOUNTS, type Caller } from "./accounts.ts";
import { fill } from "./catalogue.ts";
import { COLLECTION } from "./collection.ts";
import { type Server, startServer } from "./server.ts";
import { Failure } from "./terminal.ts";
import { ONE_PAGE } from "./workloads.ts";

/** A server to measure: the service of some checkout, or a rival. */
export interface Contender {
  readonly name: string;
  /** Arguments of `deno run`. */
  readonly args: readonly string[];
  /** Environment variables, besides those that every server gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the caller's keys for the server with that data; a checkout creates them. */
  readonly keysOf: (
    caller: Caller,
    dataPath: string,
  ) => readonly string[] | Promise<readonly string[]>;
}

/** A running server, and the keys to send in turn. */
export interface Target extends Server {
  readonly keys: readonly string[];
}

const ROOT = resolve(`${import.meta.dirname}/../..`);
// Commands that create a key, up to the account's name: of this version of the service, and of earlier ones.
const CREATE_KEY = [["accounts", "create"], ["keys", "create", "--account"]];

/** The service of this checkout. */
export const SERVICE: Contender = checkout(ROOT, "This service");

/** A second instance of the service of this checkout. */
export const SECOND: Contender = checkout(ROOT, "Second instance");

/** Bare servers that send the response in the environment variable `REPLY`. */
export const CONSTANT_REPLIES: readonly Contender[] = [
  rival("Constant reply", "constant_reply.ts"),
  rival("Constant, chunked", "constant_reply.ts", "chunked"),
];

/** Other implementations of the service. */
export const RIVALS: readonly Contender[] = [
  rival("Naive Deno KV", "naive_kv.ts"),
  rival("Fastify, SQLite", "fastify_sqlite.ts"),
];

/** The service of the checkout in a folder. */
export function checkout(folder: string, name: string = `${basename(resolve(folder))}'s`): Contender {
  const args = script(folder, "main.ts");
  async function keysOf(
    caller: Caller,
    dataPath: string,
  ): Promise<readonly string[]> {
    await using cleanup = new AsyncDisposableStack();
    // A stranger's key is well-formed, but belongs to another store.
    const store = caller === "stranger" ? (await startServer(cleanup, args)).dataPath : dataPath;
    const keys: string[] = [];
    for (const { perMinute } of ACCOUNTS[caller]) {
      keys.push(await createKey(folder, store, perMinute));
    }
    return keys;
  }
  return { name, args, env: {}, keysOf };
}

/** Starts a contender with items and with the caller's keys. `cleanup` ends it. */
export async function start(
  { args, env, keysOf }: Contender,
  cleanup: AsyncDisposableStack,
  caller: Caller,
  items: number = ONE_PAGE,
): Promise<Target> {
  const server = await startServer(cleanup, args, env);
  if (items > 0) {
    await fill(
      { ...server, keys: await keysOf("one", server.dataPath) },
      items,
    );
  }
  return { ...server, keys: await keysOf(caller, server.dataPath) };
}

function rival(
  name: string,
  file: string,
  ...words: readonly string[]
): Contender {
  const args = [...script(`${ROOT}/tests/bench`, `rivals/${file}`), ...words];
  return {
    name,
    args,
    env: { COLLECTION: stringifyJson(COLLECTION) },
    keysOf: (caller) => ACCOUNTS[caller].map(({ key }) => key),
  };
}

/** Arguments of `deno run` for a script in a folder with a deno.json. */
function script(folder: string, path: string): readonly string[] {
  return [
    "--quiet",
    "--config",
    resolve(folder, "deno.json"),
    "-P",
    resolve(folder, path),
  ];
}

async function createKey(
  folder: string,
  dataPath: string,
  perMinute: number,
): Promise<string> {
  const plan = [
    "--plan",
    "enterprise",
    "--per-minute",
    `${perMinute}`,
    "--per-day",
    "1000000000",
  ];
  const commands = ["src/process/cli.ts", "src/cli.ts"]; // Older commits have the second.
  const program = commands.find((path) => existsSync(resolve(folder, path))) ?? "";
  for (const create of CREATE_KEY) {
    const args = [
      "run",
      ...script(folder, program),
      ...create,
      `bench-${crypto.randomUUID()}`,
      ...plan,
    ];
    const command = new Deno.Command(Deno.execPath(), {
      args,
      env: { KV_PATH: dataPath },
    });
    const { success, stdout } = await command.output();
    if (success) return new TextDecoder().decode(stdout).trim();
  }
  throw new Failure(`No command of ${folder} creates a key`);
}
