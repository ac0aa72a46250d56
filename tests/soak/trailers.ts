import { exchange, jsonHeaders, RawConnection, rawRequest } from "../server/raw_connection.ts";
import { ServedStore } from "../server/temporary_store.ts";
import { residentMemory } from "../support/memory.ts";
import { atMost, type Effort, exactly, type Finding, type Note } from "./part.ts";

const MIB = 1_048_576;
const CHUNKED = { "transfer-encoding": "chunked" };
const TRAILERS = `x-a: ${"b".repeat(1_017)}\r\n`.repeat(1_024);

/** Sends requests in chunks whose trailers never end. */
export async function trailers({ trailers }: Pick<Effort, "trailers">, note: Note): Promise<Finding[]> {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const before = await residentMemory(server.pid);
  let most = before;
  using connection = await RawConnection.open(server.port);
  await connection.send(rawRequest("POST /v1/pets", { ...jsonHeaders(key), ...CHUNKED }, "2\r\n{}\r\n0\r\n"));
  const answering = connection.receive();
  let sent = 0;
  for (let isOpen = true; sent < trailers && isOpen; sent++) {
    isOpen = await connection.send(TRAILERS);
    if (sent % 8 === 0) most = Math.max(most, await residentMemory(server.pid));
  }
  const answer = await answering;
  most = Math.max(most, await residentMemory(server.pid));
  note(`trailers: ${sent} MiB sent until the connection was closed`);
  const health = await exchange(server, rawRequest("GET /health"));

  return [
    exactly("answer to endless trailers", answer?.status ?? 0, 411),
    atMost("memory meanwhile, more than before", (most - before) / MIB, 32, " MiB"),
    exactly("/health afterwards", health.status, 200),
  ];
}
