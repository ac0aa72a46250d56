import { assertEquals } from "@std/assert";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import { LIST } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

const OPEN_FILES = 128;
const HEALTH = rawRequest("GET /health");
/** At 50 ms each, much longer than a server needs to listen again, or a clock to reach the next second. */
const TRIES = 300;

Deno.test("server logs one line when it runs out of open files, and accepts connections again later", async () => {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  await using server = await store.serve({}, { openFiles: OPEN_FILES });
  const { port } = server;
  using first = await RawConnection.open(port);
  // Until it responds, the connection might only be in the listener's queue.
  await first.send(HEALTH);
  assertEquals((await first.receive())?.status, 200);
  const list = rawRequest(LIST, { authorization: `Bearer ${key}` });

  for (const isPortTaken of [false, true]) {
    using crowd = new DisposableStack();
    await openUntilRefused(port, crowd);
    if (isPortTaken) crowd.use(Deno.listen({ hostname: "127.0.0.1", port }));
    await first.send(list);
    const answer = await first.receive();
    assertEquals(answer?.status, 200, `With isPortTaken ${isPortTaken}, the log is:\n${server.stderr.text}`);
    if (isPortTaken) await untilClockReaches(first, Date.parse(answer?.headers.get("date") ?? "") + 2_000);
  }
  using later = await openPatiently(port);
  await later.send(list);
  assertEquals((await later.receive())?.status, 200);
  const { code, errorLines } = await server.stop();

  assertEquals(code, 0);
  assertEquals(errorLines.slice(2).map((line) => JSON.parse(line).route), ["accept"]);
});

/** Opens connections until the server accepts no more. */
async function openUntilRefused(port: number, crowd: DisposableStack): Promise<void> {
  crowd.use(await openPatiently(port));
  for (let count = 0; count < 2 * OPEN_FILES; count++) {
    const connection = await tryToOpen(port);
    if (connection === undefined) return;
    crowd.use(connection);
    // Until it responds, the connection might only be in the listener's queue.
    await connection.send(HEALTH);
    if (await connection.receive() === undefined) return;
  }
  throw new Error("The server accepts more connections than it may have open files");
}

/** Waits until the server's Date header, which has whole seconds, shows at least this time. */
async function untilClockReaches(connection: RawConnection, time: number): Promise<void> {
  for (let count = 0; count < TRIES; count++) {
    await shortly();
    await connection.send(HEALTH);
    if (Date.parse((await connection.receive())?.headers.get("date") ?? "") >= time) return;
  }
  throw new Error("The server's clock did not advance");
}

/** Opens a connection as soon as the server accepts one. */
async function openPatiently(port: number): Promise<RawConnection> {
  for (let count = 0; count < TRIES; count++) {
    const connection = await tryToOpen(port);
    if (connection) return connection;
    await shortly();
  }
  throw new Error("The server did not accept connections again");
}

async function tryToOpen(port: number): Promise<RawConnection | undefined> {
  try {
    return await RawConnection.open(port);
  } catch (error) {
    // When a listener is closed, connections in its queue are reset, some before Deno has read their address.
    const { ConnectionRefused, ConnectionReset, NotConnected } = Deno.errors;
    if ([ConnectionRefused, ConnectionReset, NotConnected].some((kind) => error instanceof kind)) {
      return undefined;
    }
    throw error;
  }
}

function shortly(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}
