// Copies of the checkout with toys in place of the shipped collections, made by the steps of src/README.md.
import { copyService, rewrite } from "../process/checkout.ts";
import { DenoProcess, type Variables } from "../process/process.ts";

/** Copies the service, and puts toys in place of its collections. Resolves to the folder of the copy. */
async function makeToyShop(): Promise<string> {
  const folder = await copyService();
  await putToysInPlace(folder);
  return folder;
}

/** Puts toys in place of the collections in a copy. */
async function putToysInPlace(folder: string): Promise<void> {
  const catalogue = `${folder}/src/catalogue`;
  await Deno.copyFile(`${import.meta.dirname}/toys.ts`, `${catalogue}/toys.ts`);
  await rewrite(
    `${catalogue}/catalogue.ts`,
    (text) =>
      text.replace("export", `import { TOYS } from "./toys.ts";\n\nexport`)
        .replace(/title: ".*"/, 'title: "Toy Store"').replace(/resources: \[.*\]/, "resources: [TOYS]")
        .replace(/original: .*,/, "original: undefined,").replace(/"data\/.*"/, '"data/toys.kv"'),
  );
}

/** A task of the copy, such as `["start"]`. */
class ToyTask extends DenoProcess {
  constructor(folder: string, args: readonly string[], variables: Variables = {}) {
    super(args, variables, { program: [Deno.execPath(), "task", "--quiet"], cwd: folder });
  }
}

/** The service of the copy, which `deno task start` starts. Its folder is removed with it. */
export class ToyServer implements AsyncDisposable {
  readonly folder: string;
  readonly origin: string;
  readonly process: ToyTask;

  private constructor(folder: string, origin: string, process: ToyTask) {
    this.folder = folder;
    this.origin = origin;
    this.process = process;
  }

  static async start(variables: Variables = {}): Promise<ToyServer> {
    const folder = await makeToyShop();
    const process = new ToyTask(folder, ["start"], { PORT: "0", HOST: "127.0.0.1", ...variables });
    const origin = await process.wrote("stderr", /^Listening on (http:\/\/localhost:\d+)\//m);
    return new ToyServer(folder, origin, process);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.signal("SIGTERM"); // The task passes it on.
    await this.process.ended();
    await Deno.remove(this.folder, { recursive: true });
  }
}
