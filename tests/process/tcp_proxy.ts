// A TCP proxy that simulates a network.
import { pause } from "../../src/base/time.ts";

/** A proxy to a port of this machine that can simulate a bad network. */
export class TcpProxy implements AsyncDisposable {
  /** Whether it closes new connections. */
  refuses = false;
  /** The port that it forwards new connections to. */
  target: number;
  /** One in this many replies is lost, together with its connection. */
  losesOneIn = Infinity;
  /** Number of lost replies. */
  lost = 0;
  readonly #listener: Deno.TcpListener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #latency: number;
  readonly #connections: Set<Deno.TcpConn> = new Set();
  readonly #silent: Set<Deno.TcpConn> = new Set();
  readonly #accepting: Promise<void>;

  /** Creates a proxy to the server at this URL, over a network with a round trip of `latency` ms. */
  constructor(url: string, latency = 0) {
    this.target = Number(new URL(url).port);
    this.#latency = latency;
    this.#accepting = this.#accept();
  }

  /** The URL of the server through the proxy. */
  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}/`;
  }

  /** Swallows all bytes on existing connections, unnoticed by either end. */
  silence(): void {
    for (const connection of this.#connections) this.#silent.add(connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#connections) close(connection);
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    const serving: Promise<void>[] = [];
    for await (const near of this.#listener) serving.push(this.#serve(near));
    await Promise.all(serving);
  }

  async #serve(near: Deno.TcpConn): Promise<void> {
    if (this.refuses) return close(near);
    this.#connections.add(near);
    try {
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.target });
      this.#connections.add(far);
      for (const connection of [near, far]) connection.setNoDelay(true);
      await Promise.all([this.#pipe(near, far), this.#pipe(far, near, () => this.#isLost())]);
    } catch {
      close(near);
    }
  }

  #isLost(): boolean {
    const isLost = Math.random() < 1 / this.losesOneIn;
    if (isLost) this.lost++;
    return isLost;
  }

  /** Forwards bytes, in order and after the latency. */
  async #pipe(from: Deno.TcpConn, to: Deno.TcpConn, isLost: () => boolean = () => false): Promise<void> {
    const buffer = new Uint8Array(65_536);
    let delivered: Promise<void> = Promise.resolve();
    try {
      for (let length; (length = await from.read(buffer)) !== null;) {
        if (this.#silent.has(from)) continue;
        if (isLost()) break;
        const [bytes, arrival] = [buffer.slice(0, length), performance.now() + this.#latency / 2];
        delivered = delivered.then(() => deliver(bytes, to, arrival)).catch(() => {}); // The other end may have closed.
      }
    } catch {
      // One end has closed.
    }
    await delivered;
    if (this.#silent.has(from)) return;
    close(from);
    close(to);
  }
}

/** Writes bytes, but not before this time. */
async function deliver(bytes: Uint8Array, to: Deno.TcpConn, arrival: number): Promise<void> {
  const wait = arrival - performance.now();
  if (wait > 0) await pause(wait);
  for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Already closed.
  }
}
