// Processes: the service, its commands, a KV Connect server, and other programs in Deno.
import config from "../../deno.json" with { type: "json" };
import { pause } from "../../src/base/time.ts";
import { type HarnessRequest, requestTo } from "../support/client.ts";
import { SERVING } from "./shipped.ts";

/** Environment variables of a process, in addition to those that every process has. */
export type Variables = Readonly<Record<string, string>>;

/** Options of a process. */
export interface ProcessOptions {
  /** Maximum number of open files, including connections. */
  readonly openFiles?: number;
  /** Maximum size of a file that it writes, in KiB. The limit can be raised while it runs. */
  readonly fileSize?: number;
  /** Time in ms after which it is killed. */
  readonly lifetime?: number;
  /** Further arguments of `deno run`. */
  readonly runtime?: readonly string[];
  /** Command in place of `deno run`. */
  readonly program?: readonly string[];
  /** Its folder; by default that of the checkout. */
  readonly cwd?: string;
}

/** With these options, the timers of a server run twice as fast: a test waits less for its deadlines. */
export const IN_HASTE: ProcessOptions = { runtime: ["--preload", "tests/process/haste.ts"] };

/** The end of a process, and its output. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  /** Lines for people on standard error, without their times and Deno's warning about permissions in the configuration file. */
  readonly errorLines: readonly string[];
  /** Lines of the log on standard error. */
  readonly records: readonly LogRecord[];
}

/** A line of the log. */
type LogRecord = Readonly<Record<string, unknown>>;

const ROOT = `${import.meta.dirname}/../..`;
const LIFETIME = 300_000;
/** The access token of every KV Connect server here. */
const KV_TOKEN = "any token will do";
const OWN_WARNING = /^Warning Permissions in the config file/;
const TIME = / \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\]$/;
const SERVICE_VARIABLES = ["OTEL_DENO", ...config.permissions.default.env];

/** The output of a process so far. */
export class Output {
  text = "";
  readonly ended: Promise<void>;
  #more: PromiseWithResolvers<void> = Promise.withResolvers();
  #closed = false;
  #paused: PromiseWithResolvers<void> | undefined;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.ended = this.#collect(stream);
  }

  /** Waits for a match; undefined if the output ends without one. */
  async find(pattern: RegExp): Promise<RegExpExecArray | undefined> {
    while (true) {
      const found = pattern.exec(this.text);
      if (found !== null) return found;
      if (this.#closed) return undefined;
      await this.#more.promise;
    }
  }

  /** Stops reading until `resume`. */
  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  /** Resumes reading. */
  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  async #collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      this.text += decoder.decode(bytes, { stream: true });
      this.#notify();
      await this.#paused?.promise;
    }
    this.#closed = true;
    this.#notify();
  }

  #notify(): void {
    this.#more.resolve();
    this.#more = Promise.withResolvers();
  }
}

/** A Deno process. It is killed when it is disposed, or at the end of its lifetime. */
export class DenoProcess implements AsyncDisposable {
  readonly pid: number;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #child: Deno.ChildProcess;
  readonly #timer: ReturnType<typeof setTimeout>;

  /** Starts `deno run` with these arguments and variables, and no other variables of the service. */
  constructor(
    args: readonly string[],
    variables: Variables,
    { openFiles, fileSize, lifetime = LIFETIME, program = [Deno.execPath(), "run"], cwd = ROOT }:
      ProcessOptions = {},
  ) {
    const inherited = Object.entries(Deno.env.toObject()).filter(([name]) =>
      !SERVICE_VARIABLES.includes(name)
    );
    const limits = [
      ...(openFiles === undefined ? [] : [`ulimit -n ${openFiles}; `]),
      // If the signal is ignored, a write beyond the limit fails. Otherwise it would end the process.
      ...(fileSize === undefined ? [] : [`trap "" XFSZ; ulimit -Sf ${fileSize}; `]),
    ];
    this.#child = new Deno.Command("bash", {
      args: ["-c", `${limits.join("")}exec "$0" "$@"`, ...program, ...args],
      cwd,
      clearEnv: true,
      env: { ...Object.fromEntries(inherited), NO_COLOR: "1", DENO_KV_ACCESS_TOKEN: KV_TOKEN, ...variables },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.#timer = setTimeout(() => this.signal("SIGKILL"), lifetime);
    this.stdout = new Output(this.#child.stdout);
    this.stderr = new Output(this.#child.stderr);
  }

  /** Waits until an output matches. Resolves to the match, or to what it captures. */
  async wrote(output: "stdout" | "stderr", pattern: RegExp): Promise<string> {
    const found = await this[output].find(pattern);
    if (found) return found[1] ?? found[0];
    await this.ended();
    throw new Error(`${pattern} was not written. The output is:\n${this.stdout.text}${this.stderr.text}`);
  }

  /** Sends the process a signal. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch {
      // The process has already ended.
    }
  }

  /** Waits until the process ends by itself. */
  async ended(): Promise<Outcome> {
    const { code } = await this.#child.status;
    clearTimeout(this.#timer);
    for (const output of [this.stdout, this.stderr]) {
      output.resume();
      await output.ended;
    }
    const lines = this.stderr.text.split("\n");
    const ours = lines.filter((line) => line !== "" && !OWN_WARNING.test(line));
    const records = ours.filter((line) => line.startsWith("{"));
    return {
      ...{ code, stdout: this.stdout.text },
      errorLines: ours.filter((line) => !records.includes(line)).map((line) => line.replace(TIME, "")),
      records: records.map((line) => JSON.parse(line)),
    };
  }

  /** Ends the process with SIGKILL. */
  async crash(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
  }
}

/** The service, by default on a free port. */
export class ServerProcess extends DenoProcess {
  port = 0;

  constructor(variables: Variables, { runtime = [], ...options }: ProcessOptions = {}, ...args: string[]) {
    super(
      [...(runtime.includes("--import-map") ? [] : SERVING), "-P", ...runtime, "main.ts", ...args],
      { PORT: "0", HOST: "127.0.0.1", ...variables },
      options,
    );
  }

  /** Starts the service, and waits until it listens. */
  static async start(variables: Variables, options?: ProcessOptions): Promise<ServerProcess> {
    return await new ServerProcess(variables, options).listening();
  }

  /** Waits until it listens. */
  async listening(): Promise<this> {
    this.port = Number(await this.wrote("stderr", /^Listening on http:\/\/localhost:(\d+)\/(?: |$)/m));
    return this;
  }

  /** Stops it gracefully. */
  async stop(): Promise<Outcome> {
    this.signal("SIGTERM");
    return await this.ended();
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Sends a request, such as `fetch("GET /v1/account", { key })`. */
  fetch(target: string, options?: HarnessRequest): Promise<Response> {
    return fetch(requestTo(this.origin, target, options));
  }
}

/** Starts the service, and waits until it ends by itself. */
export function runServer(variables: Variables, ...args: readonly string[]): Promise<Outcome> {
  return new ServerProcess(variables, {}, ...args).ended();
}

/** Runs an operator's command, such as `["accounts", "list"]`. */
export function runCommand(args: readonly string[], variables: Variables): Promise<Outcome> {
  return new DenoProcess([...SERVING, "-P", "src/process/cli.ts", ...args], variables).ended();
}

/** Options of a KV Connect server. */
export interface ConnectServerOptions extends Pick<ProcessOptions, "lifetime"> {
  /** The file of its KV; by default a temporary one. */
  readonly file?: string;
  /** One in this many replies to writes is lost; by default none. */
  readonly lostOneIn?: number;
}

/** A KV Connect server: the binary that DENOKV names, or the engine of `@deno/kv` if it is unset or to lose replies. */
export class ConnectServer extends DenoProcess {
  /** Its URL, with a slash at the end. */
  url = "";
  #ownFolder: string | undefined;

  /** Starts it, and sets the access token of clients in this process. */
  static async start(
    { file, lostOneIn = Infinity, ...options }: ConnectServerOptions = {},
  ): Promise<ConnectServer> {
    Deno.env.set("DENO_KV_ACCESS_TOKEN", KV_TOKEN);
    const folder = file === undefined ? await Deno.makeTempDir() : undefined;
    const path = file ?? `${folder}/store.kv`;
    const denokv = lostOneIn === Infinity ? Deno.env.get("DENOKV") : undefined;
    const server = denokv
      ? await ConnectServer.#startDenokv(path, freePort(), { ...options, program: [denokv] })
      : new ConnectServer([...engineFor(path), path, `${lostOneIn}`], {}, options);
    server.url ||= await server.wrote("stdout", /^http:.*\/$/m);
    server.#ownFolder = folder;
    return server;
  }

  /** Starts denokv and, because it prints nothing, waits until it accepts connections. */
  static async #startDenokv(file: string, port: number, options: ProcessOptions): Promise<ConnectServer> {
    const address = ["--access-token", KV_TOKEN, "--addr", `127.0.0.1:${port}`];
    const server = new ConnectServer(["--sqlite-path", file, "serve", ...address], {}, options);
    server.url = `http://127.0.0.1:${port}/`;
    const failed = server.ended().then(({ errorLines }) => {
      throw new Error(`${options.program} ended:\n${errorLines.join("\n")}`);
    });
    failed.catch(() => {});
    const accepts = () =>
      Deno.connect({ hostname: "127.0.0.1", port }).then((it) => (it.close(), true), () => false);
    while (!await Promise.race([accepts(), failed])) await pause(10);
    return server;
  }

  /** Number of lost replies. */
  async lost(): Promise<number> {
    return await (await fetch(`${this.url}lost`)).json();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    if (this.#ownFolder !== undefined) await Deno.remove(this.#ownFolder, { recursive: true });
  }
}

/** Arguments that start the engine. Its native code needs permissions that tests do not have. */
function engineFor(file: string): string[] {
  const flags = ["net=127.0.0.1", "ffi", "read", `write=${file.replace(/[^/]*$/, "")}`, "env", "sys"];
  const program = ["--config", "tests/connect/deno.json", "tests/connect/server.ts"];
  return ["--quiet", ...flags.map((flag) => `--allow-${flag}`), ...program];
}

/** Runs a program that must succeed. Resolves to false if it is not installed. */
export async function succeeds(program: string, ...args: readonly string[]): Promise<boolean> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(program, { args: [...args] }).output();
    if (success) return true;
    throw new Error([stderr, stdout].map((bytes) => new TextDecoder().decode(bytes)).join(""));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** A port that nobody listens on. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Resident memory of a process, in bytes. Uses `cat`, because Deno reads /proc only with every permission. */
export async function residentMemory(pid: number): Promise<number> {
  const { stdout } = await new Deno.Command("cat", { args: [`/proc/${pid}/status`] }).output();
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(new TextDecoder().decode(stdout)) ?? [];
  if (kilobytes === undefined) throw new Error(`There is no process ${pid}`);
  return Number(kilobytes) * 1024;
}
