import { basename, resolve } from "node:path";
import { fill } from "./catalogue.ts";
import { ask } from "./measure.ts";
import { type Server, startServer } from "./server.ts";
import { Failure } from "./terminal.ts";
import { ACCOUNTS, type Caller, ONE_PAGE, type Work } from "./works.ts";

/** Someone who takes part. */
export interface Contender {
  readonly name: string;
  /** What starts its server, after `deno run`. */
  readonly args: readonly string[];
  /** The caller's keys, known to the server that keeps its data there. */
  readonly keysOf: (
    caller: Caller,
    dataPath: string,
  ) => readonly string[] | Promise<readonly string[]>;
}

/** A server under measurement, and the keys that it is sent in turn. */
export interface Target extends Server {
  readonly keys: readonly string[];
}

const ROOT = resolve(`${import.meta.dirname}/../..`);
// What precedes an account's name, in this version of the service and in earlier ones.
const CREATE_KEY = [["accounts", "create"], ["keys", "create", "--account"]];
const OF_THE_HTTP_LAYER = [
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
];

/** The checkout that the benchmark belongs to. */
export const SERVICE: Contender = checkout(ROOT, "This service");

/** Other ways to write the service. */
export const RIVALS: readonly Contender[] = [
  rival("Naive Deno KV", "naive_kv.ts"),
  rival("Fastify, SQLite", "fastify_sqlite.ts"),
];

/** The service as it is in some folder. */
export function checkout(
  folder: string,
  name = `${basename(resolve(folder))}'s`,
): Contender {
  const args = script(folder, "main.ts");
  async function keysOf(
    caller: Caller,
    dataPath: string,
  ): Promise<readonly string[]> {
    await using elsewhere = new AsyncDisposableStack();
    // A stranger's key is right in form, but of another store.
    const store = caller === "stranger" ? (await startServer(elsewhere, args)).dataPath : dataPath;
    const keys: string[] = [];
    for (const { perMinute } of ACCOUNTS[caller]) {
      keys.push(await createKey(folder, store, perMinute));
    }
    return keys;
  }
  return { name, args, keysOf };
}

/** A bare server that gives the service's answer to the work, whatever it is asked. */
export async function constantReply(
  service: Target,
  work: Work,
): Promise<Contender> {
  // The first request of a minute is still within the limit.
  if (work.caller === "limited") await ask(service, work);
  const response = await ask(service, work);
  if (response.status !== work.status) {
    throw new Failure(`${work.name}: answered with ${response.status}`);
  }
  const headers = [...response.headers].filter(([name]) => !OF_THE_HTTP_LAYER.includes(name));
  const reply = JSON.stringify({
    status: work.status,
    headers,
    body: await response.text(),
  });
  return rival("Constant reply", "constant_reply.ts", reply);
}

/** Starts a contender with that many animals and with the caller's keys; `cleanup` ends it. */
export async function start(
  { args, keysOf }: Contender,
  cleanup: AsyncDisposableStack,
  caller: Caller,
  animals: number = ONE_PAGE,
): Promise<Target> {
  const server = await startServer(cleanup, args);
  if (animals > 0) {
    await fill(
      { ...server, keys: await keysOf("one", server.dataPath) },
      animals,
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
    keysOf: (caller) => ACCOUNTS[caller].map(({ key }) => key),
  };
}

/** What `deno run` needs for a script of a folder that has a deno.json. */
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
  for (const create of CREATE_KEY) {
    const args = [
      "run",
      ...script(folder, "src/cli.ts"),
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
  throw new Failure(`No command of ${folder} makes a key`);
}
