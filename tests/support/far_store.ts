import { call } from "./client.ts";
import { ConnectServer } from "./connect_server.ts";
import type { Variables } from "./process.ts";
import { ServerProcess } from "./server_process.ts";
import { TcpProxy } from "./tcp_proxy.ts";
import { TemporaryStore } from "./temporary_store.ts";

/** With 50 ms between them, far more than a server takes to connect anew. */
const TRIES = 300;

/** A KV file behind a KV Connect server, and that behind a network which can be made bad. */
export class FarStore implements AsyncDisposable {
  readonly file: TemporaryStore;
  readonly proxy: TcpProxy;
  readonly #server: ConnectServer;

  private constructor(file: TemporaryStore, server: ConnectServer) {
    this.file = file;
    this.#server = server;
    this.proxy = new TcpProxy(server.url);
  }

  static async create(): Promise<FarStore> {
    const file = await TemporaryStore.create();
    return new FarStore(file, await ConnectServer.start({ file: file.kvPath }));
  }

  serve(): Promise<ServerProcess> {
    return ServerProcess.start({ KV_PATH: this.proxy.url });
  }

  serveOnDeploy(variables: Variables = {}): Promise<ServerProcess> {
    const deployed = { DENO_DEPLOYMENT_ID: "7f3k", DENO_KV_DEFAULT_PATH: this.proxy.url };
    return ServerProcess.start({ ...deployed, ...variables });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
    await this.file[Symbol.asyncDispose]();
  }
}

/** Waits until the server can read its store again. */
export async function untilReady(server: ServerProcess): Promise<void> {
  for (let count = 0; count < TRIES; count++) {
    if ((await call(server, "GET /ready")).status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The server does not recover");
}
