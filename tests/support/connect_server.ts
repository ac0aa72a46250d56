import { DenoProcess } from "./process.ts";

/** What a KV Connect server stands on, and how it behaves. */
export interface ConnectServerOptions {
  /** The file of its KV; one of its own, which is removed with it, where this is not given. */
  readonly file?: string;
  /** Of so many writes, the reply to one is lost, though it was carried out; none where this is not given. */
  readonly lostOneIn?: number;
}

/** A KV Connect server; the native code in it takes permissions that tests do not have. */
export class ConnectServer extends DenoProcess {
  /** Where it is, with a slash at the end. */
  url = "";
  readonly #ownFolder: string | undefined;

  private constructor(file: string, lostOneIn: number, ownFolder: string | undefined) {
    const flags = ["net=127.0.0.1", "ffi", "read", `write=${file.replace(/[^/]*$/, "")}`, "env", "sys"];
    const program = ["--config", "tests/connect/deno.json", "tests/connect/server.ts", file, `${lostOneIn}`];
    super(["--quiet", ...flags.map((flag) => `--allow-${flag}`), ...program], {});
    this.#ownFolder = ownFolder;
  }

  /** Starts it; clients in this process have a token from then on. */
  static async start({ file, lostOneIn = Infinity }: ConnectServerOptions = {}): Promise<ConnectServer> {
    Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
    const folder = file === undefined ? await Deno.makeTempDir() : undefined;
    const server = new ConnectServer(file ?? `${folder}/animals.kv`, lostOneIn, folder);
    server.url = await server.wrote("stdout", /^http:.*\/$/m);
    return server;
  }

  /** How many replies were lost. */
  async lost(): Promise<number> {
    return await (await fetch(`${this.url}lost`)).json();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    if (this.#ownFolder !== undefined) await Deno.remove(this.#ownFolder, { recursive: true });
  }
}
