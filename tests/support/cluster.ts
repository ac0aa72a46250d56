import { type Answer, call } from "./client.ts";
import type { ServerProcess } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

/** Two servers on one KV file. */
export class Cluster implements AsyncDisposable {
  readonly store: TemporaryStore;
  readonly #servers: readonly [ServerProcess, ServerProcess];

  private constructor(store: TemporaryStore, servers: readonly [ServerProcess, ServerProcess]) {
    this.store = store;
    this.#servers = servers;
  }

  /** Starts both at once, on a file that does not exist yet. */
  static async start(): Promise<Cluster> {
    const store = await TemporaryStore.empty();
    return new Cluster(store, await Promise.all([store.serve(), store.serve()]));
  }

  /** The one or the other server, for an even or odd index. */
  server(index: number): ServerProcess {
    return this.#servers[index % 2 === 0 ? 0 : 1];
  }

  /** Lists animals through the one or the other server. */
  list(index: number, key: string): Promise<Answer> {
    return call(this.server(index), "GET /v1/pets", { key });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}
