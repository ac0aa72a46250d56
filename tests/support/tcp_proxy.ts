// A network on the way to a port of this machine.

/** What becomes of a connection to a proxy: it is passed on, hung up on, or its bytes are swallowed. */
export type Treatment = "pass" | "refuse" | "swallow";

/** Passes connections on to a port of this machine, and can be a bad network on the way. */
export class TcpProxy implements AsyncDisposable {
  /** What becomes of new connections. */
  treatment: Treatment = "pass";
  readonly #listener: Deno.TcpListener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #target: number;
  readonly #connections: Set<Deno.TcpConn> = new Set();
  readonly #silent: Set<Deno.TcpConn> = new Set();
  readonly #swallowed: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #accepting: Promise<void>;

  /** Leads to the server at this URL. */
  constructor(url: string) {
    this.#target = Number(new URL(url).port);
    this.#accepting = this.#accept();
  }

  /** The URL of the server by way of this proxy. */
  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}/`;
  }

  /**
   * Lets no more bytes through on the connections there are; neither end gets to know. Resolves when the first
   * have been swallowed.
   */
  silence(): Promise<void> {
    for (const connection of this.#connections) this.#silent.add(connection);
    return this.#swallowed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#connections) close(connection);
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    const piping: Promise<void>[] = [];
    for await (const near of this.#listener) piping.push(this.#serve(near));
    await Promise.all(piping);
  }

  async #serve(near: Deno.TcpConn): Promise<void> {
    if (this.treatment === "refuse") return close(near);
    this.#connections.add(near);
    if (this.treatment === "swallow") return void this.#silent.add(near);
    const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#target });
    this.#connections.add(far);
    for (const connection of [near, far]) connection.setNoDelay(true);
    await Promise.all([this.#pipe(near, far), this.#pipe(far, near)]);
  }

  async #pipe(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
    const buffer = new Uint8Array(16_384);
    try {
      for (let length; (length = await from.read(buffer)) !== null;) {
        if (this.#silent.has(from)) this.#swallowed.resolve();
        else for (let sent = 0; sent < length;) sent += await to.write(buffer.subarray(sent, length));
      }
    } catch {
      // One of its ends has gone.
    }
    if (!this.#silent.has(from)) close(to);
  }
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}
