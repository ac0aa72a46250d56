// Copies of the checkout with toys in place of the shipped collections, made by the steps of src/README.md.
import { copyService, rewrite } from "../process/checkout.ts";
import { DenoProcess, type Outcome, type Variables } from "../process/process.ts";

/** Copies the service, and puts toys in place of its collections. Resolves to the folder of the copy. */
export async function makeToyShop(): Promise<string> {
  const folder = await copyService();
  await putToysInPlace(folder);
  return folder;
}

/** Puts toys in place of the collections in a copy, as the guide says. */
export async function putToysInPlace(folder: string): Promise<void> {
  const catalogue = `${folder}/src/catalogue`;
  await Deno.remove(`${catalogue}/pets.ts`);
  await Deno.copyFile(`${import.meta.dirname}/toys.ts`, `${catalogue}/toys.ts`);
  await rewrite(
    `${catalogue}/catalogue.ts`,
    (text) =>
      text.replaceAll("PETS", "TOYS").replace("pets.ts", "toys.ts").replace("Animal Store", "Toy Store")
        .replace("animals.kv", "toys.kv").replace(/original: "[^"]*"/, "original: undefined"),
  );
}

/** A task of the copy, such as `["start"]` or `["items", "toys", "list"]`. */
export class ToyTask extends DenoProcess {
  constructor(folder: string, args: readonly string[], variables: Variables = {}) {
    super(args, variables, { program: [Deno.execPath(), "task", "--quiet"], cwd: folder });
  }
}

/** Runs a command of the copy. */
export async function runToyTask(
  folder: string,
  args: readonly string[],
  variables?: Variables,
): Promise<Outcome> {
  return await new ToyTask(folder, args, variables).ended();
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
