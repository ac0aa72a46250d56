// Operators' commands, run in the process of the test.
import { main } from "../../src/process/cli.ts";
import { openStore } from "../../src/engine/open.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { OF_THINGS } from "./things.ts";
import { NOON } from "./time.ts";

/** Runs commands on its own KV file, and keeps their output. */
export class Operator implements AsyncDisposable {
  readonly folder: string;
  readonly environment: Map<string, string>;
  now: number = NOON;
  /** Lines of standard input. */
  input: string[] = [];
  /** Lines of the last command on standard output and on standard error. */
  out: string[] = [];
  err: string[] = [];
  /** Called with each line of output, in place of a program that reads it. */
  reader: (line: string) => Promise<void> = () => Promise.resolve();

  private constructor(folder: string) {
    this.folder = folder;
    this.environment = new Map([["KV_PATH", `${folder}/data/things.kv`]]);
  }

  /** Creates the KV file as the service does. */
  static async start(): Promise<Operator> {
    const operator = new Operator(await Deno.makeTempDir());
    const { environment, now } = operator;
    const options = { clock: () => now, create: true, makesFolder: true };
    const store = await openStore(environment.get("KV_PATH"), options);
    await store.close();
    return operator;
  }

  /** Runs a command, such as `run("accounts list")` or `run("accounts create", "two words")`. Returns the exit code. */
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
      },
      OF_THINGS,
    );
  }

  /** Creates an account. Resolves to its ID and its key. */
  async createAccount(options = ""): Promise<{ id: string; key: string }> {
    await this.run(`accounts create tests ${options}`);
    const [id] = /acct_\w+/.exec(this.err.join()) ?? [];
    const [key] = this.out;
    if (id === undefined || key === undefined) throw new Error(this.err.join("\n"));
    return { id, key };
  }

  /** Creates the service on the same KV. */
  async serve(options?: HarnessOptions): Promise<Harness> {
    return new Harness(await Deno.openKv(this.environment.get("KV_PATH")), options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
