/** Options of a {@linkcode Server}. */
export interface ServerOptions {
  /** 0 for any free port. */
  readonly port: number;
  readonly hostname: string;
  /** Called when connections cannot be accepted, once for each period of failures. */
  readonly onFailure: (error: unknown) => void;
}

/** Responds to a request. */
export type ServerHandler = Deno.ServeHandler<Deno.NetAddr>;

const PAUSE = 1_000;
const QUIET_PERIOD = 60_000;
/** Deno before 2.9 always compresses responses. That makes their ETags weak, and If-Match never matches a weak one. */
const COMPRESSES = /^2\.[0-8]\./.test(Deno.version.deno);

/**
 * An HTTP server that survives running out of file descriptors. When that happens, Deno's server permanently stops
 * accepting connections, but keeps existing ones. So after a pause, another server listens on the same port.
 *
 * @throws if it cannot listen.
 */
export class Server {
  readonly address: Deno.NetAddr;
  readonly #options: ServerOptions;
  readonly #handler: ServerHandler;
  readonly #servers: Deno.HttpServer<Deno.NetAddr>[] = [];
  #stopping = false;
  #failedAt = -Infinity;

  constructor(options: ServerOptions, handler: ServerHandler) {
    this.#options = options;
    this.#handler = withoutBodiesOfHead(COMPRESSES ? uncompressed(handler) : handler);
    this.address = this.#listen(options.port);
  }

  /** Stops accepting connections. Resolves when the last one has ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.allSettled(this.#servers.map((server) => server.shutdown()));
  }

  #listen(port: number): Deno.NetAddr {
    const { hostname } = this.#options;
    const options = { port, hostname, automaticCompression: false, onListen() {} };
    const server = Deno.serve(options, this.#handler);
    this.#servers.push(server);
    server.finished.catch((error) => this.#failed(error));
    return server.addr;
  }

  #failed(error: unknown): void {
    const now = performance.now();
    if (now - this.#failedAt > QUIET_PERIOD) this.#options.onFailure(error);
    this.#failedAt = now;
    setTimeout(() => this.#listenAgain(), PAUSE);
  }

  #listenAgain(): void {
    if (this.#stopping) return;
    try {
      this.#listen(this.address.port);
    } catch (error) {
      this.#failed(error);
    }
  }
}

const LOCALHOST: readonly string[] = ["0.0.0.0", "::", "127.0.0.1"];

/**
 * The origin of a server's URLs, as seen from this machine.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(originOf({ hostname: "0.0.0.0", port: 8000 }), "http://localhost:8000");
 * assertEquals(originOf({ hostname: "::", port: 8000 }), "http://localhost:8000");
 * assertEquals(originOf({ hostname: "::1", port: 8000 }), "http://[::1]:8000");
 * ```
 */
export function originOf({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): string {
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
  async function answerHead(request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>): Promise<Response> {
    const response = await handler(request, info);
    if (response.body === null) return response;
    const { status, headers } = response;
    const { length } = await response.bytes();
    headers.delete("transfer-encoding");
    headers.set("content-length", `${length}`);
    return new Response(null, { status, headers });
  }
  return (request, info) => request.method === "HEAD" ? answerHead(request, info) : handler(request, info);
}
