import { pause } from "./part.ts";

const ROOT = `${import.meta.dirname}/../..`;
const ENGINE = ["--config", "tests/connect/deno.json", "tests/connect/server.ts"];
const POLL_INTERVAL = 10;

/** The access token of every KvServer. */
export const TOKEN = "a token of the store";

/** A KV Connect server on a file, which can be killed and stopped; always on the same port. */
export class KvServer implements AsyncDisposable {
  readonly #file: string;
  readonly #port: number;
  #child: Deno.ChildProcess | undefined;

  private constructor(file: string) {
    this.#file = file;
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#port = listener.addr.port;
  }

  /** Runs the denokv that DENOKV names, or else the engine of `@deno/kv`. */
  static async run(file: string): Promise<KvServer> {
    const server = new KvServer(file);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts it, anew after a kill; resolves once it accepts connections. */
  async start(): Promise<void> {
    const denokv = Deno.env.get("DENOKV");
    const address = ["--access-token", TOKEN, "--addr", `127.0.0.1:${this.#port}`];
    const [program, args] = denokv
      ? [denokv, ["--sqlite-path", this.#file, "serve", ...address]]
      : [Deno.execPath(), ["run", "--quiet", "-A", ...ENGINE, this.#file, "Infinity", `${this.#port}`]];
    this.#child = new Deno.Command(program, { args, cwd: ROOT, stdout: "null", stderr: "null" }).spawn();
    let hasEnded = false;
    this.#child.status.then(() => hasEnded = true);
    while (!await this.#accepts()) {
      if (hasEnded) throw new Error(`${program} ended`);
      await pause(POLL_INTERVAL);
    }
  }

  /** Ends it with SIGKILL. */
  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.status;
    this.#child = undefined;
  }

  /** Has it stand still: the system goes on to accept connections and bytes in its name. */
  stop(): void {
    this.#child?.kill("SIGSTOP");
  }

  /** Has it go on. */
  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #accepts(): Promise<boolean> {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port: this.#port })).close();
      return true;
    } catch {
      return false;
    }
  }
}
