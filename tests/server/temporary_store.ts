import { assertEquals } from "@std/assert";
import { type Outcome, runCommand, ServerProcess, type Variables } from "./server_process.ts";

/** A day's limit that no test reaches, and a minute's. */
const AMPLE = 1_000_000_000;

/** A KV file in a folder of its own, for server processes and commands; removed when disposed of. */
export class TemporaryStore implements AsyncDisposable {
  readonly folder: string;
  readonly kvPath: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.kvPath = `${folder}/animals.kv`;
  }

  /** Makes the folder; the KV file does not exist yet. */
  static async create(): Promise<TemporaryStore> {
    return new TemporaryStore(await Deno.makeTempDir({ prefix: "animal_store_" }));
  }

  /** Starts a server on the KV file. */
  serve(variables: Variables = {}): Promise<ServerProcess> {
    return ServerProcess.start({ KV_PATH: this.kvPath, ...variables });
  }

  /** Runs an operator's command on the KV file. */
  run(...args: readonly string[]): Promise<Outcome> {
    return runCommand(args, { KV_PATH: this.kvPath });
  }

  /** Makes a key, with ample limits unless told otherwise, by the operator's command. */
  async issueKey({ perMinute = AMPLE, perDay = AMPLE }: IssueOptions = {}): Promise<Credential> {
    const { code, stdout, errorLines } = await this.run(
      ...["keys", "create", "--account", "tests", "--plan", "enterprise"],
      ...["--per-minute", `${perMinute}`, "--per-day", `${perDay}`],
    );
    assertEquals(code, 0, errorLines.join("\n"));
    const id = /key_\w+/.exec(errorLines.join("\n"))?.[0];
    if (id === undefined) throw new Error(`No key id in:\n${errorLines.join("\n")}`);
    return { id, authorization: `Bearer ${stdout.trim()}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Limits of a key to make. */
export interface IssueOptions {
  readonly perMinute?: number;
  readonly perDay?: number;
}

/** A key that was made. */
export interface Credential {
  readonly id: string;
  /** Value of the Authorization header. */
  readonly authorization: string;
}
