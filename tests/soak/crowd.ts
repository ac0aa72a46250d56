import { jsonHeaders, RawConnection, rawRequest } from "../server/raw_connection.ts";
import { createApiKey } from "../../src/access/api_key.ts";

const BODY_BYTES = 65_536;
const AT_ONCE = 100;
const FLOODERS = 8;
const PIPELINED = 250;

/** Opens idle connections, such that sent half a head, and such that sent all but a byte of a body, in turns. */
export async function openCrowd(
  crowd: DisposableStack,
  { port, key, count }: { readonly port: number; readonly key: string; readonly count: number },
): Promise<number> {
  const body = " ".repeat(BODY_BYTES - 1);
  const starts = [
    "",
    `GET /v1/pets HTTP/1.1\r\nhost: localhost\r\nx-half: `,
    rawRequest("POST /v1/pets", { ...jsonHeaders(key), "content-length": `${BODY_BYTES}` }, body),
  ];
  let opened = 0;
  async function open(): Promise<void> {
    for (let turn = opened++; turn < count; turn = opened++) {
      const connection = crowd.use(await RawConnection.open(port));
      await connection.send(starts[turn % starts.length] ?? "");
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, open));
  return Math.min(opened, count);
}

/** Sends a request each from so many addresses, with a key that nobody has; resolves to how many were refused. */
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
  return rawRequest("GET /v1/pets", {
    authorization: `Bearer ${createApiKey("staging")}`,
    "x-real-ip": address,
  });
}
