import { main } from "../../src/cli.ts";
import { Harness, NOON } from "../harness.ts";

/** Somebody who runs commands on a KV file of their own, and keeps what they print. */
export class Operator implements AsyncDisposable {
  readonly folder: string;
  readonly environment: Map<string, string>;
  now: number = NOON;
  /** Lines of the last command for programs, and for people. */
  out: string[] = [];
  err: string[] = [];
  /** Stands in for a program that reads the output. */
  reader: (line: string) => Promise<void> = () => Promise.resolve();

  private constructor(folder: string) {
    this.folder = folder;
    this.environment = new Map([["KV_PATH", `${folder}/data/animals.kv`]]);
  }

  /** One whose file is not there yet. */
  static async start(): Promise<Operator> {
    return new Operator(await Deno.makeTempDir());
  }

  /** Runs a command, such as `run("keys", "list")`; resolves to its exit code. */
  run(...args: string[]): Promise<number> {
    this.out = [];
    this.err = [];
    return main(args, {
      env: (name) => this.environment.get(name),
      clock: () => this.now,
      out: async (line) => {
        await this.reader(line);
        this.out.push(line);
      },
      err: (line) => this.err.push(line),
    });
  }

  /** Makes a key; resolves to its secret and its id. */
  async createKey(plan: string = "free"): Promise<{ secret: string; id: string }> {
    await this.run("keys", "create", "--account", "tests", "--plan", plan);
    const id = /key_[0-9A-Za-z]+/.exec(this.err.join())?.[0];
    const [secret] = this.out;
    if (id === undefined || secret === undefined) throw new Error(this.err.join("\n"));
    return { secret, id };
  }

  /** The service on the same KV. */
  async serve(): Promise<Harness> {
    await Deno.mkdir(`${this.folder}/data`, { recursive: true });
    return new Harness(await Deno.openKv(this.environment.get("KV_PATH")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
