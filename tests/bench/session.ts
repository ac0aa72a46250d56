import { type ServerCommand, ServerProcess } from "./server_process.ts";

// Beside the service's own data, because the system's folder for such things may be memory without a disk.
const DATA = `${import.meta.dirname}/../../data`;

/** Processes and folders which all end together, however it ends. */
export class Session implements AsyncDisposable {
  /** Aborted when the benchmark is interrupted. */
  readonly signal: AbortSignal;
  readonly #stack: AsyncDisposableStack = new AsyncDisposableStack();

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  /** Starts a server, which runs until the session ends. */
  async start(command: ServerCommand): Promise<ServerProcess> {
    return this.#stack.use(await ServerProcess.start(command, this.signal));
  }

  /** Makes a folder, which lasts until the session ends. */
  async makeFolder(): Promise<string> {
    await Deno.mkdir(DATA, { recursive: true });
    const folder = await Deno.makeTempDir({ dir: DATA, prefix: "bench-" });
    this.#stack.defer(() => Deno.remove(folder, { recursive: true }));
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
