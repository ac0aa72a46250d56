import config from "../../deno.json" with { type: "json" };

/** How to start a server: what follows `deno run`, and its environment beside PORT. */
export interface ServerCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const ROOT = `${import.meta.dirname}/../..`;
// Every server gets what the service gets.
const V8_FLAGS = config.tasks.start.command.split(" ").filter((word) => word.startsWith("--v8-flags="));
const START_DEADLINE = 30_000;
const POLL_INTERVAL = 5;
const LOWEST_PORT = 20_000;
const PORT_COUNT = 10_000;

/** A server of this benchmark in a process of its own, killed when disposed of. */
export class ServerProcess implements AsyncDisposable {
  readonly origin: string;
  /** From the start of the process to its first answer. */
  readonly startUpMs: number;
  readonly #child: Deno.ChildProcess;

  private constructor(child: Deno.ChildProcess, origin: string, startUpMs: number) {
    this.#child = child;
    this.origin = origin;
    this.startUpMs = startUpMs;
  }

  /** Starts a server on a free port and waits until it answers. */
  static async start(command: ServerCommand, signal: AbortSignal): Promise<ServerProcess> {
    const port = freePort();
    const origin = `http://127.0.0.1:${port}`;
    const started = performance.now();
    const child = spawn(command, port, signal);
    const log = new Response(child.stderr).text();
    try {
      await untilAnswering(child, origin, AbortSignal.any([signal, AbortSignal.timeout(START_DEADLINE)]));
    } catch (cause) {
      await kill(child);
      throw new Error(`No answer from deno run ${command.args.join(" ")}\n${await log}`, { cause });
    }
    return new ServerProcess(child, origin, performance.now() - started);
  }

  /** The process, to look at it or to signal it. */
  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await kill(this.#child);
  }
}

function spawn({ args, env }: ServerCommand, port: number, signal: AbortSignal): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", ...V8_FLAGS, ...args],
    cwd: ROOT,
    env: { ...env, PORT: `${port}`, HOST: "127.0.0.1", NODE_ENV: "production" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal,
  }).spawn();
}

/** Below the ports that systems give to whoever asks for any, so that nobody takes it meanwhile. */
function freePort(): number {
  while (true) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORT_COUNT);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

async function untilAnswering(child: Deno.ChildProcess, origin: string, signal: AbortSignal): Promise<void> {
  let exited = false;
  child.status.then(() => exited = true);
  while (!exited) {
    signal.throwIfAborted();
    try {
      const response = await fetch(origin, { signal });
      await response.body?.cancel();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
    }
  }
  throw new Error("the process ended");
}

async function kill(child: Deno.ChildProcess): Promise<void> {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
  await child.status;
}
