import { monotonicNow, msSince, PAST } from "../base/mod.ts";

/** Options of a {@linkcode Server}. */
export interface ServerOptions {
  /** 0 for any free port. */
  readonly port: number;
  readonly hostname: string;
  /** Called when connections cannot be accepted, once for each period of failures. */
  readonly onFailure: (error: unknown) => void;
}

/** Responds to a request. */
export type ServerHandler = Deno.ServeHandler<Deno.Addr>;

/** All addresses of this machine: those of IPv6 and, unless its system is configured otherwise, of IPv4. */
export const ANY_ADDRESS = "::";
const ANY_IPV4 = "0.0.0.0";
const PAUSE = 1_000;
const QUIET_PERIOD = 60_000;
/** How many servers that have failed keep their idle connections. */
const MAX_FAILED = 10;
/** Deno before 2.9 always compresses responses. That makes their ETags weak, and If-Match never matches a weak one. */
const COMPRESSES = /^2\.[0-8]\./.test(Deno.version.deno);

/**
 * An HTTP server that survives running out of file descriptors. When that happens, Deno's server permanently stops
 * accepting connections, but keeps existing ones. So after a pause, another server listens on the same port. If ten more
 * have failed, a server ends its connections once their requests have got responses. At an address other than TCP, which DENO_SERVE_ADDRESS can be, none can: `ended` then resolves.
 *
 * @throws if it cannot listen.
 */
export class Server {
  readonly address: Deno.Addr;
  /** Resolves to true once no further connection can be accepted. */
  readonly ended: Promise<true>;
  readonly #setEnded: (ended: true) => void;
  readonly #options: ServerOptions;
  readonly #handler: ServerHandler;
  /** All that may have connections. */
  readonly #servers: Set<Deno.HttpServer> = new Set();
  /** Those that have failed, and whose clients have not been asked to connect again. */
  readonly #failed: Deno.HttpServer[] = [];
  #stopping = false;
  #failedAt = PAST;

  constructor(options: ServerOptions, handler: ServerHandler) {
    this.#options = options;
    this.#handler = withoutBodiesOfHead(COMPRESSES ? uncompressed(handler) : handler);
    ({ promise: this.ended, resolve: this.#setEnded } = Promise.withResolvers<true>());
    this.address = this.#listenFirst(options);
  }

  /** Stops accepting connections. Resolves when the last one has ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#servers].map((server) => this.#end(server)));
  }

  /** Resolves when the server's last connection has ended. */
  async #end(server: Deno.HttpServer): Promise<void> {
    await server.shutdown().catch(() => {});
    this.#servers.delete(server);
  }

  #listenFirst({ hostname, port }: ServerOptions): Deno.Addr {
    try {
      return this.#listen({ hostname, port });
    } catch (error) {
      if (hostname !== ANY_ADDRESS || error instanceof Deno.errors.AddrInUse) throw error;
      return this.#listen({ hostname: ANY_IPV4, port }); // The machine has no IPv6.
    }
  }

  #listen({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): Deno.Addr {
    const options = { port, hostname, automaticCompression: false, onListen() {} };
    const server = Deno.serve(options, this.#handler);
    this.#servers.add(server);
    server.finished.catch((error) => {
      this.#failed.push(server);
      const oldest = this.#failed.length > MAX_FAILED ? this.#failed.shift() : undefined;
      if (oldest) void this.#end(oldest);
      this.#recover(error);
    });
    return server.addr;
  }

  #recover(error: unknown): void {
    if (msSince(this.#failedAt) > QUIET_PERIOD) this.#options.onFailure(error);
    this.#failedAt = monotonicNow();
    const { address } = this;
    if ("hostname" in address) setTimeout(() => this.#listenAgain(address), PAUSE);
    else this.#setEnded(true);
  }

  #listenAgain(address: Deno.NetAddr): void {
    if (this.#stopping) return;
    try {
      this.#listen(address);
    } catch (error) {
      this.#recover(error);
    }
  }
}

const LOCALHOST: readonly string[] = [ANY_ADDRESS, ANY_IPV4, "127.0.0.1"];

/**
 * The origin of a server's URLs, as seen from this machine; undefined if it listens on something other than TCP.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(originOf({ transport: "tcp", hostname: "::", port: 8000 }), "http://localhost:8000");
 * assertEquals(originOf({ transport: "tcp", hostname: "::1", port: 8000 }), "http://[::1]:8000");
 * assertEquals(originOf({ transport: "unix", path: "/run/toys.sock" }), undefined);
 * ```
 */
export function originOf(address: Deno.Addr): string | undefined {
  if (!("hostname" in address)) return undefined;
  const { hostname, port } = address;
  if (LOCALHOST.includes(hostname)) return `http://localhost:${port}`;
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

/** Adds no-transform (RFC 9111 section 5.2.2.6) to every response, so that Deno does not compress it. */
export function uncompressed(handler: ServerHandler): ServerHandler {
  return async (request, info) => {
    const response = await handler(request, info);
    const directives = [response.headers.get("cache-control"), "no-transform"];
    response.headers.set("cache-control", directives.filter((directive) => directive !== null).join(", "));
    return response;
  };
}

/** Responds to HEAD with the body's length but no body. Over HTTP/2, Deno would send the body. */
export function withoutBodiesOfHead(handler: ServerHandler): ServerHandler {
  async function respondToHead(request: Request, info: Deno.ServeHandlerInfo<Deno.Addr>): Promise<Response> {
    const response = await handler(request, info);
    if (response.body === null) return response;
    const { status, headers } = response;
    const { length } = await response.bytes();
    headers.delete("transfer-encoding");
    headers.set("content-length", `${length}`);
    return new Response(null, { status, headers });
  }
  return (request, info) => request.method === "HEAD" ? respondToHead(request, info) : handler(request, info);
}
