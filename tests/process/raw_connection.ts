// HTTP/1.1 by hand, on a socket.

/** A response as received. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
const AT_ONCE = 16_384;
const END_OF_HEAD = "\r\n\r\n";

/** Where a connection goes. */
export interface Endpoint {
  /** A port of this machine. */
  readonly port: number;
  /** For TLS, the certificate that the server has, in PEM; undefined without TLS. */
  readonly certificate?: string;
}

/** A connection on which a test writes HTTP/1.1 by hand. */
export class RawConnection implements Disposable {
  readonly #connection: Deno.TcpConn | Deno.TlsConn;
  /** What was received and not read yet: a character for each byte. */
  #received = "";

  private constructor(connection: Deno.TcpConn | Deno.TlsConn) {
    this.#connection = connection;
  }

  /** Connects to a port of this machine. */
  static async open(port: number, { certificate }: Omit<Endpoint, "port"> = {}): Promise<RawConnection> {
    const address = { hostname: "127.0.0.1", port };
    return new RawConnection(
      certificate === undefined
        ? await Deno.connect(address)
        : await Deno.connectTls({ ...address, caCerts: [certificate] }),
    );
  }

  /** Writes text. Resolves to false if the server has closed the connection. */
  async send(text: string): Promise<boolean> {
    const bytes = ENCODER.encode(text);
    try {
      for (let sent = 0; sent < bytes.length;) sent += await this.#connection.write(bytes.subarray(sent));
      return true;
    } catch {
      return false;
    }
  }

  /** Closes the sending side of the connection. */
  closeWrite(): Promise<void> {
    return this.#connection.closeWrite();
  }

  /** Reads the next response; undefined if the server closes the connection first. */
  async receive({ bodiless = false }: { bodiless?: boolean } = {}): Promise<RawAnswer | undefined> {
    while (!this.#received.includes(END_OF_HEAD)) {
      if (!await this.#read()) return undefined;
    }
    const [head = ""] = this.#received.split(END_OF_HEAD, 1);
    const [statusLine = "", ...lines] = head.split("\r\n");
    const headers = new Headers(lines.map((line): [string, string] => {
      const [name = "", value = ""] = line.split(/: ?(.*)/s);
      return [name, value];
    }));
    this.#received = this.#received.slice(head.length + END_OF_HEAD.length);
    const isChunked = !bodiless && headers.get("transfer-encoding") === "chunked";
    const length = bodiless ? 0 : Number(headers.get("content-length") ?? 0);
    const body = await (isChunked ? this.#takeChunks() : this.#take(length));
    if (body === undefined) return undefined;
    const text = DECODER.decode(Uint8Array.from(body, (byte) => byte.charCodeAt(0)));
    return { status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1]), headers, body: text };
  }

  /** Reads `length` bytes; undefined if the server closes the connection first. */
  async #take(length: number): Promise<string | undefined> {
    while (this.#received.length < length) {
      if (!await this.#read()) return undefined;
    }
    const taken = this.#received.slice(0, length);
    this.#received = this.#received.slice(length);
    return taken;
  }

  /** Reads a chunked body without trailers (RFC 9112 section 7.1). */
  async #takeChunks(): Promise<string | undefined> {
    let body = "";
    while (true) {
      while (!this.#received.includes("\r\n")) {
        if (!await this.#read()) return undefined;
      }
      const [size = ""] = this.#received.split("\r\n", 1);
      const length = parseInt(size, 16);
      const chunk = await this.#take(size.length + 2 + length + 2);
      if (chunk === undefined || length === 0) return chunk && body;
      body += chunk.slice(size.length + 2, -2);
    }
  }

  /** Reads everything until the server closes the connection. */
  async receiveRest(): Promise<string> {
    while (await this.#read());
    return this.#received;
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  /** Reads more; false at the end. */
  async #read(): Promise<boolean> {
    const buffer = new Uint8Array(AT_ONCE);
    const length = await this.#connection.read(buffer).catch(() => null);
    if (length !== null) this.#received += String.fromCharCode(...buffer.subarray(0, length));
    return length !== null;
  }
}

/**
 * The text of a request, such as `rawRequest("GET /v1/account", { authorization })`.
 * A body has a Content-Length unless the headers say otherwise.
 */
export function rawRequest(
  target: string,
  headers: Readonly<Record<string, string>> = {},
  body = "",
): string {
  const framed = "content-length" in headers || "transfer-encoding" in headers || body === "";
  const all = { host: "localhost", ...headers, ...(framed ? {} : { "content-length": `${body.length}` }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`${target} HTTP/1.1`, ...lines, "", body].join("\r\n");
}

/** Sends a request on its own connection, and reads the response. */
export async function exchange({ port, ...tls }: Endpoint, request: string): Promise<RawAnswer> {
  using connection = await RawConnection.open(port, tls);
  await connection.send(request);
  const answer = await connection.receive({ bodiless: request.startsWith("HEAD") });
  if (answer === undefined) throw new Error("The server closed the connection");
  return answer;
}

/** Headers of a request with a JSON body. */
export function jsonHeaders(key: string): { authorization: string; "content-type": string } {
  return { authorization: `Bearer ${key}`, "content-type": "application/json" };
}
