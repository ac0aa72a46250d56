import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { call } from "../support/client.ts";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import { LIST } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

const HEALTH = rawRequest("GET /health");

Deno.test("server logs one line when it runs out of open files, and accepts connections again later", async () => {
  await using served = await ServedStore.start({ process: { openFiles: 128 } });
  const { server, key } = served;
  using first = await RawConnection.open(server.port);
  await first.send(HEALTH);
  assertEquals((await first.receive())?.status, 200);
  {
    using crowd = new DisposableStack();
    while (await canOpen(server.port, crowd));
    await first.send(rawRequest(LIST, { authorization: `Bearer ${key}` }));
    assertEquals((await first.receive())?.status, 200, server.stderr.text);
  }

  using later = new DisposableStack();
  while (!await canOpen(server.port, later)) await pause(50);
  assertEquals((await call(server, key, LIST)).status, 200);
  const { code, errorLines } = await server.stop();

  assertEquals(code, 0);
  assertEquals(errorLines.slice(2).map((line) => JSON.parse(line).route), ["accept"]);
});

/** Opens a connection. Until it responds, it might only be in the listener's queue. */
async function canOpen(port: number, connections: DisposableStack): Promise<boolean> {
  try {
    const connection = connections.use(await RawConnection.open(port));
    await connection.send(HEALTH);
    return await connection.receive() !== undefined;
  } catch (error) {
    // When a listener is closed, connections in its queue are reset, some before Deno has read their address.
    const { ConnectionRefused, ConnectionReset, NotConnected } = Deno.errors;
    if ([ConnectionRefused, ConnectionReset, NotConnected].some((kind) => error instanceof kind)) {
      return false;
    }
    throw error;
  }
}
