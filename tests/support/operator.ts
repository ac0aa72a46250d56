// Somebody who types commands, without a process for each.
import { main } from "../../src/cli.ts";
import { openStore } from "../../src/kv/open.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { NOON } from "./time.ts";

/** Somebody who runs commands on a KV file of their own, and keeps what they print. */
export class Operator implements AsyncDisposable {
  readonly folder: string;
  readonly environment: Map<string, string>;
  now: number = NOON;
  /** Lines of standard input. */
  input: string[] = [];
  /** Lines of the last command for programs, and for people. */
  out: string[] = [];
  err: string[] = [];
  /** Stands in for a program that reads the output. */
  reader: (line: string) => Promise<void> = () => Promise.resolve();

  private constructor(folder: string) {
    this.folder = folder;
    this.environment = new Map([["KV_PATH", `${folder}/data/animals.kv`]]);
  }

  /** One whose file the service has made. */
  static async start(): Promise<Operator> {
    const operator = new Operator(await Deno.makeTempDir());
    const { environment, now } = operator;
    const options = { clock: () => now, create: true, makesFolder: true };
    const store = await openStore(environment.get("KV_PATH"), options);
    await store.close();
    return operator;
  }

  /** Runs a command, such as `run("accounts list")` or `run("accounts create", "two words")`, to its exit code. */
  run(command: string, ...more: string[]): Promise<number> {
    [this.out, this.err] = [[], []];
    return main(
      [...command.split(" ").filter((word) => word !== ""), ...more],
      (name) => this.environment.get(name),
      {
        clock: () => this.now,
        input: () => Promise.resolve(this.input),
        out: async (line) => {
          await this.reader(line);
          this.out.push(line);
        },
        err: (line) => this.err.push(line),
        isStopping: () => false,
        isRemote: false,
      },
    );
  }

  /** Makes an account; resolves to its id and its key. */
  async createAccount(options = ""): Promise<{ id: string; key: string }> {
    await this.run(`accounts create tests ${options}`);
    const [id] = /acct_\w+/.exec(this.err.join()) ?? [];
    const [key] = this.out;
    if (id === undefined || key === undefined) throw new Error(this.err.join("\n"));
    return { id, key };
  }

  /** The service on the same KV. */
  async serve(options?: HarnessOptions): Promise<Harness> {
    return new Harness(await Deno.openKv(this.environment.get("KV_PATH")), options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
