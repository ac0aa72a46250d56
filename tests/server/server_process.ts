/** Environment variables of a process, beside those every process needs. */
export type Variables = Readonly<Record<string, string>>;

/** How a process ended, and all it wrote. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  /** Lines on standard error, without Deno's own warning of permissions in the configuration file. */
  readonly errorLines: readonly string[];
}

const ROOT = `${import.meta.dirname}/../..`;
const DEADLINE = 30_000;
const LISTENING = /^Listening on http:\/\/localhost:(\d+)\/$/m;
const OWN_WARNING = /^Warning Permissions in the config file/;
const SERVICE_VARIABLES = [
  "PORT",
  "HOST",
  "KV_PATH",
  "ENVIRONMENT",
  "ACCESS_LOG",
  "CLIENT_ADDRESS_HEADER",
  "DENO_DEPLOYMENT_ID",
  "DENO_TIMELINE",
  "OTEL_DENO",
];

/** The service in a process of its own, on a free port; killed when disposed of. */
export class ServerProcess implements AsyncDisposable {
  readonly port: number;
  readonly origin: string;
  readonly #child: Deno.ChildProcess;
  readonly #stdout: Promise<string>;
  readonly #stderr: Output;

  private constructor(
    child: Deno.ChildProcess,
    port: number,
    stdout: Promise<string>,
    stderr: Output,
  ) {
    this.#child = child;
    this.port = port;
    this.origin = `http://127.0.0.1:${port}`;
    this.#stdout = stdout;
    this.#stderr = stderr;
  }

  /** Starts the service and waits until it says where it listens. */
  static async start(variables: Variables): Promise<ServerProcess> {
    const child = command(["main.ts"], { PORT: "0", HOST: "127.0.0.1", ...variables }).spawn();
    const stdout = new Response(child.stdout).text();
    const stderr = new Output(child.stderr);
    const timer = setTimeout(() => kill(child, "SIGKILL"), DEADLINE);
    const port = (await stderr.find(LISTENING))?.[1];
    clearTimeout(timer);
    if (port === undefined) {
      await stdout;
      await child.status;
      throw new Error(`The server did not start:\n${stderr.text}`);
    }
    return new ServerProcess(child, Number(port), stdout, stderr);
  }

  /** Sends the process a signal. */
  signal(signal: Deno.Signal): void {
    kill(this.#child, signal);
  }

  /** Waits until the process has ended by itself. */
  async ended(): Promise<Outcome> {
    const timer = setTimeout(() => this.signal("SIGKILL"), DEADLINE);
    const [{ code }, stdout] = await Promise.all([this.#child.status, this.#stdout, this.#stderr.ended]);
    clearTimeout(timer);
    return { code, stdout, errorLines: ownLines(this.#stderr.text) };
  }

  /** Ends the process with SIGKILL: it cannot do anything about it. */
  async crash(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
  }
}

/** Text that a process writes, kept as it comes. */
class Output {
  text = "";
  readonly ended: Promise<void>;
  #more: PromiseWithResolvers<void> = Promise.withResolvers();
  #closed = false;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.ended = this.#collect(stream.pipeThrough(new TextDecoderStream()));
  }

  /** Waits for text that matches; undefined when the output ends without. */
  async find(pattern: RegExp): Promise<RegExpExecArray | undefined> {
    while (true) {
      const found = pattern.exec(this.text);
      if (found !== null) return found;
      if (this.#closed) return undefined;
      await this.#more.promise;
    }
  }

  async #collect(stream: ReadableStream<string>): Promise<void> {
    for await (const text of stream) {
      this.text += text;
      this.#notify();
    }
    this.#closed = true;
    this.#notify();
  }

  #notify(): void {
    this.#more.resolve();
    this.#more = Promise.withResolvers();
  }
}

/** Starts the service in the expectation that it ends by itself. */
export function runServer(variables: Variables, args: readonly string[] = []): Promise<Outcome> {
  return run(["main.ts", ...args], { PORT: "0", HOST: "127.0.0.1", ...variables });
}

/** Runs an operator's command, such as `["keys", "list"]`. */
export function runCommand(args: readonly string[], variables: Variables): Promise<Outcome> {
  return run(["src/cli.ts", ...args], variables);
}

async function run(args: readonly string[], variables: Variables): Promise<Outcome> {
  const child = command(args, variables).spawn();
  const timer = setTimeout(() => kill(child, "SIGKILL"), DEADLINE);
  const { code, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), errorLines: ownLines(decoder.decode(stderr)) };
}

function command(args: readonly string[], variables: Variables): Deno.Command {
  const env = Deno.env.toObject();
  for (const name of SERVICE_VARIABLES) delete env[name];
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-P", ...args],
    cwd: ROOT,
    clearEnv: true,
    env: { ...env, NO_COLOR: "1", ...variables },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

function kill(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch {
    // It has ended already.
  }
}

function ownLines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "" && !OWN_WARNING.test(line));
}
