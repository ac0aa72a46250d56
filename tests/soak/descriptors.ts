import { jsonHeaders, RawConnection, rawRequest } from "../server/raw_connection.ts";
import { TemporaryStore } from "../server/temporary_store.ts";
import { atMost, exactly, type Finding, type Note, pause } from "./part.ts";

const OPEN_FILES = 256;
const CONNECTIONS = 400;
const PATIENCE = 10_000;
/** The service listens anew after a second without: it is to do so again and again, and say it once. */
const SIEGE = 8_000;

/** Opens more connections than the process may have open files. */
export async function descriptors(_: object, note: Note): Promise<Finding[]> {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  await using server = await store.serve({}, { openFiles: OPEN_FILES });
  const list = rawRequest("GET /v1/pets", jsonHeaders(key));
  using first = await RawConnection.open(server.port);
  const ask = async (connection: RawConnection) => {
    await connection.send(list);
    return (await connection.receive())?.status ?? 0;
  };
  let open = 0;
  let meanwhile: number;
  {
    using crowd = new DisposableStack();
    for (let tried = 0; tried < CONNECTIONS; tried++) {
      // Refused is who comes while the service pauses before it accepts connections again.
      const connection = await RawConnection.open(server.port).catch(() => pause(SIEGE / CONNECTIONS));
      if (connection) open++;
      if (connection) crowd.use(connection);
    }
    note(`descriptors: ${open} of ${CONNECTIONS} connections were accepted`);
    meanwhile = await ask(first);
  }
  const later = await servedAgain(server.port, ask);
  const { code, errorLines } = await server.stop();

  return [
    atMost(`connections accepted with ${OPEN_FILES} open files`, open, CONNECTIONS),
    exactly("a request on a connection from before", meanwhile, 200),
    exactly("a request once they are closed", later, 200),
    exactly("lines about it on standard error", errorLines.length - 2, 1),
    exactly("exit code", code, 0),
  ];
}

/** The status of the first answer on a connection of its own, or 0. */
async function servedAgain(
  port: number,
  ask: (connection: RawConnection) => Promise<number>,
): Promise<number> {
  for (const end = performance.now() + PATIENCE; performance.now() < end; await pause(50)) {
    try {
      using connection = await RawConnection.open(port);
      const status = await ask(connection);
      if (status !== 0) return status;
    } catch {
      // Not yet.
    }
  }
  return 0;
}
