import { setTimeout as delay } from "node:timers/promises";
import config from "../../deno.json" with { type: "json" };
import { Failure, interrupted } from "./terminal.ts";

/** A server in another process. */
export interface Server {
  readonly origin: string;
  readonly pid: number;
  readonly dataPath: string;
  /** Time from the start of the process to its first response, in ms. */
  readonly startUp: number;
}

/** Folder for temporary data. The system's own may be in memory, where commits do not wait for a disk. */
export const DATA: string = `${import.meta.dirname}/../../data`;
// All servers run with the flags of `deno task start`.
const V8_FLAGS = config.tasks.start.command.split(" ").filter((word) => word.startsWith("--v8-flags="));
/** How often to check whether a server responds, in ms. */
const POLL_INTERVAL = 5;
const ROOT = `${import.meta.dirname}/../..`;

/** Arguments of `deno run` that start the service of this checkout. */
export const CHECKOUT: readonly string[] = [
  "--quiet",
  "--config",
  `${ROOT}/deno.json`,
  "-P",
  `${ROOT}/main.ts`,
];

/** Starts a server with arguments of `deno run`, and waits for its first response. `cleanup` ends it. */
export async function startServer(
  cleanup: AsyncDisposableStack,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  await Deno.mkdir(DATA, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: DATA, prefix: "bench-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  const dataPath = `${folder}/store.db`;
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
  while (!await responds(origin)) {
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

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

function responds(origin: string): Promise<boolean> {
  return fetch(origin).then((response) => response.body?.cancel()).then(
    () => true,
    () => false,
  );
}
