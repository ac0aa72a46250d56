/** A network between a process and its store. */
export interface NetworkOptions {
  /** Of a round trip, in ms. */
  readonly latency: number;
  /** Up to how much longer one way may take, in ms. */
  readonly jitter: number;
  /** The share of replies with which the connection breaks instead. */
  readonly loss: number;
}

const BUFFER = 65_536;

/** Leads to a port of this machine by way of such a network; returns the port to connect to. */
export function openNetwork(target: number, options: NetworkOptions): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  accept(listener, target, options);
  return listener.addr.port;
}

async function accept(listener: Deno.TcpListener, target: number, options: NetworkOptions): Promise<void> {
  for await (const near of listener) connect(near, target, options);
}

async function connect(near: Deno.TcpConn, target: number, options: NetworkOptions): Promise<void> {
  try {
    const far = await Deno.connect({ hostname: "127.0.0.1", port: target });
    near.setNoDelay(true);
    far.setNoDelay(true);
    pipe(near, far, { ...options, loss: 0 });
    pipe(far, near, options);
  } catch {
    close(near);
  }
}

/** Passes bytes on, late and in order. */
async function pipe(
  from: Deno.TcpConn,
  to: Deno.TcpConn,
  { latency, jitter, loss }: NetworkOptions,
): Promise<void> {
  const buffer = new Uint8Array(BUFFER);
  let arrival = 0;
  let delivered: Promise<void> = Promise.resolve();
  try {
    for (let length; (length = await from.read(buffer)) !== null;) {
      if (Math.random() < loss) break;
      const bytes = buffer.slice(0, length);
      arrival = Math.max(arrival, performance.now() + latency / 2 + Math.random() * jitter);
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, arrival - performance.now());
      const before = delivered;
      delivered = promise.then(() => before).then(() => writeAll(to, bytes)).catch(() => {});
    }
  } catch {
    // One of its ends has gone.
  }
  await delivered;
  close(from);
  close(to);
}

async function writeAll(to: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}
