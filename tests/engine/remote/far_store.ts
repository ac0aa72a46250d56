// A KV Connect server behind a bad network, for server processes.
import { pause } from "../../../src/base/time.ts";
import { ConnectServer, ServerProcess, type Variables } from "../../process/process.ts";
import { TcpProxy } from "../../process/tcp_proxy.ts";
import { TemporaryStore } from "../../process/temporary_store.ts";
import { call } from "../../support/client.ts";

/** A KV file behind a KV Connect server, and a proxy to that server. */
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

/** Waits until the server can read its KV again. */
export async function untilReady(server: ServerProcess): Promise<void> {
  // Much longer than a server takes to reconnect.
  for (let count = 0; count < 300; count++) {
    if ((await call(server, undefined, "GET /ready")).status === 200) return;
    await pause(50);
  }
  throw new Error("The server did not recover");
}
