import { setTimeout as delay } from "node:timers/promises";
import config from "../../deno.json" with { type: "json" };
import { Failure, interrupted } from "./terminal.ts";

/** A server in a process of its own. */
export interface Server {
  readonly origin: string;
  readonly pid: number;
  readonly dataPath: string;
  /** Milliseconds from the start of the process to its first answer. */
  readonly startUp: number;
}

// Beside the service's own data: the system's folder for such things may be memory without a disk.
export const DATA: string = `${import.meta.dirname}/../../data`;
// Every server gets what the service gets.
const V8_FLAGS = config.tasks.start.command.split(" ").filter((word) => word.startsWith("--v8-flags="));
const POLL_INTERVAL = 5;
const ROOT = `${import.meta.dirname}/../..`;

/** What starts the service of this checkout, after `deno run`. */
export const CHECKOUT: readonly string[] = [
  "--quiet",
  "--config",
  `${ROOT}/deno.json`,
  "-P",
  `${ROOT}/main.ts`,
];

/** Starts a server with these arguments of `deno run` and waits until it answers; `cleanup` ends it. */
export async function startServer(
  cleanup: AsyncDisposableStack,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  await Deno.mkdir(DATA, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: DATA, prefix: "bench-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  const dataPath = `${folder}/animals.db`;
  const port = freePort();
  const origin = `http://127.0.0.1:${port}`;

  const started = performance.now();
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", ...V8_FLAGS, ...args],
    env: {
      PORT: `${port}`,
      HOST: "127.0.0.1",
      KV_PATH: dataPath,
      ACCESS_LOG: "off",
      NODE_ENV: "production",
      ...env,
    },
    stdout: "null",
    stderr: "piped",
    signal: interrupted,
  });
  const child = cleanup.use(command.spawn());
  const log = child.stderr.text();
  let ended = false;
  child.status.then(() => ended = true);
  while (!await answers(origin)) {
    if (ended) {
      throw new Failure(`deno run ${args.join(" ")} ended:\n${await log}`);
    }
    await delay(POLL_INTERVAL);
  }
  return {
    origin,
    pid: child.pid,
    dataPath,
    startUp: performance.now() - started,
  };
}

export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

function answers(origin: string): Promise<boolean> {
  return fetch(origin).then((response) => response.body?.cancel()).then(
    () => true,
    () => false,
  );
}
