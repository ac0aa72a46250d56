import config from "../../deno.json" with { type: "json" };

/** Environment variables of a process, beside those every process needs. */
export type Variables = Readonly<Record<string, string>>;

/** How a process differs from others. */
export interface ProcessOptions {
  /** Most files, connections included, that it may have open. */
  readonly openFiles?: number;
  /** Largest file that it may write, in KiB; a limit that can be raised while it runs. */
  readonly fileSize?: number;
  /** After how many ms it is killed in any case. */
  readonly lifetime?: number;
  /** Further arguments of `deno run`. */
  readonly runtime?: readonly string[];
}

/** How a process ended, and all it wrote. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  /** Lines on standard error, without Deno's own warning of permissions in the configuration file. */
  readonly errorLines: readonly string[];
}

const ROOT = `${import.meta.dirname}/../..`;
const LIFETIME = 60_000;
const OWN_WARNING = /^Warning Permissions in the config file/;
const SERVICE_VARIABLES = ["OTEL_DENO", ...config.permissions.default.env];

/** Text that a process writes, kept as it comes. */
export class Output {
  text = "";
  readonly ended: Promise<void>;
  #more: PromiseWithResolvers<void> = Promise.withResolvers();
  #closed = false;
  #paused: PromiseWithResolvers<void> | undefined;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.ended = this.#collect(stream);
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

  /** Stops to read, until `resume`. */
  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  /** Reads on. */
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

/** Deno with a program, in a process of its own; killed when disposed of, and at the end of its lifetime. */
export class DenoProcess implements AsyncDisposable {
  readonly pid: number;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #child: Deno.ChildProcess;
  readonly #timer: ReturnType<typeof setTimeout>;

  /** Starts `deno run` with these arguments and no other variables of the service. */
  constructor(
    args: readonly string[],
    variables: Variables,
    { openFiles, fileSize, lifetime = LIFETIME }: ProcessOptions = {},
  ) {
    const inherited = Object.entries(Deno.env.toObject()).filter(([name]) =>
      !SERVICE_VARIABLES.includes(name)
    );
    const limits = [
      ...(openFiles === undefined ? [] : [`ulimit -n ${openFiles}; `]),
      // A write beyond the limit fails where the signal is ignored, and else ends the process.
      ...(fileSize === undefined ? [] : [`trap "" XFSZ; ulimit -Sf ${fileSize}; `]),
    ];
    this.#child = new Deno.Command("bash", {
      args: ["-c", `${limits.join("")}exec "$0" "$@"`, Deno.execPath(), "run", ...args],
      cwd: ROOT,
      clearEnv: true,
      env: { ...Object.fromEntries(inherited), NO_COLOR: "1", DENO_KV_ACCESS_TOKEN: "any", ...variables },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.#timer = setTimeout(() => this.signal("SIGKILL"), lifetime);
    this.stdout = new Output(this.#child.stdout);
    this.stderr = new Output(this.#child.stderr);
  }

  /** Waits until an output has something that matches, or that it captures. */
  async wrote(output: "stdout" | "stderr", pattern: RegExp): Promise<string> {
    const found = await this[output].find(pattern);
    if (found) return found[1] ?? found[0];
    await this.ended();
    throw new Error(`${pattern} was not written, but:\n${this.stdout.text}${this.stderr.text}`);
  }

  /** Sends the process a signal. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch {
      // It has ended already.
    }
  }

  /** Waits until the process has ended by itself. */
  async ended(): Promise<Outcome> {
    const { code } = await this.#child.status;
    clearTimeout(this.#timer);
    for (const output of [this.stdout, this.stderr]) {
      output.resume();
      await output.ended;
    }
    const lines = this.stderr.text.split("\n");
    const errorLines = lines.filter((line) => line !== "" && !OWN_WARNING.test(line));
    return { code, stdout: this.stdout.text, errorLines };
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
