import { jsonHeaders, RawConnection, rawRequest } from "../process/raw_connection.ts";
import { KEYS, LIST, PATH } from "../process/shipped.ts";

const BODY_BYTES = 65_536;
const AT_ONCE = 100;
const FLOODERS = 8;
const PIPELINED = 250;

/** What connections send first, in turn: nothing, half a head (two kinds), and all but one byte of a body. */
const KINDS = 4;
const SLOW = 2;
const DRIP_INTERVAL = 1_000;

/** Bad connections: idle ones, ones with half a request, and slow ones, which send a byte a second. */
export class Crowd implements Disposable {
  /** Number of open connections. */
  size = 0;
  readonly #connections: DisposableStack = new DisposableStack();
  readonly #slow: RawConnection[] = [];
  readonly #timer: ReturnType<typeof setInterval> = setInterval(() => {
    for (const connection of this.#slow) connection.send("a");
  }, DRIP_INTERVAL);

  /** Number of connections with an incomplete body. */
  get bodies(): number {
    return Math.floor(this.size / KINDS);
  }

  /** Opens `count` connections to a port. The key is for requests with a body. */
  async open(count: number, port: number, key: string): Promise<void> {
    const half = `${LIST} HTTP/1.1\r\nhost: localhost\r\nx-half: `;
    const headers = { ...jsonHeaders(key), "content-length": `${BODY_BYTES}` };
    const starts = ["", half, half, rawRequest(`POST ${PATH}`, headers, " ".repeat(BODY_BYTES - 1))];
    let turn = 0;
    const openSome = async () => {
      for (let kind = turn++ % KINDS; turn <= count; kind = turn++ % KINDS) {
        const connection = this.#connections.use(await RawConnection.open(port));
        await connection.send(starts[kind] ?? "");
        if (kind === SLOW) this.#slow.push(connection);
        this.size++;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, openSome));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#connections.dispose();
  }
}

/** Sends a request with an unknown key from each of many addresses. Resolves to the number of 401 responses. */
export async function flood(port: number, addresses: number): Promise<number> {
  let sent = 0;
  let refused = 0;
  async function floodOne(): Promise<void> {
    using connection = await RawConnection.open(port);
    while (sent < addresses) {
      const first = sent;
      const last = Math.min(addresses, sent += PIPELINED);
      const requests = Array.from({ length: last - first }, (_, index) => unknown(first + index));
      await connection.send(requests.join(""));
      for (const _ of requests) {
        const answer = await connection.receive();
        if (answer?.status === 401) refused++;
      }
    }
  }
  await Promise.all(Array.from({ length: FLOODERS }, floodOne));
  return refused;
}

function unknown(index: number): string {
  const address = `10.${index >> 16 & 255}.${index >> 8 & 255}.${index & 255}`;
  return rawRequest(LIST, {
    authorization: `Bearer ${KEYS.create("staging")}`,
    "x-real-ip": address,
  });
}
