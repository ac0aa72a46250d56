import { existsSync } from "node:fs";
import { assertEquals, assertGreater } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { IN_HASTE, type ServerProcess } from "./process.ts";
import { assertAlive, RawConnection, rawRequest } from "./raw_connection.ts";
import { TemporaryStore } from "./temporary_store.ts";

const ACCESS_LOG = "json";
/** Enough requests for their log lines to overflow a pipe and the server's buffer. */
const REQUESTS = 6_000;
const AT_ONCE = 100;

Deno.test("server responds while nobody reads its log, and writes or counts every line before it exits 0", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG });

  await sendMany(server, REQUESTS);
  await assertAlive(server);
  server.signal("SIGTERM");
  // Once the write-ahead log is gone, the KV is closed, and only the server's own log remains to be written.
  while (existsSync(`${store.kvPath}-wal`)) await pause(5);
  server.stdout.resume();
  const { code, stdout } = await server.ended();

  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const dropped = records.reduce((sum, record) => sum + (record.dropped ?? 0), 0);
  assertEquals(code, 0);
  assertGreater(dropped, 0);
  assertEquals(records.filter(({ route }) => route === "/health").length + dropped, REQUESTS + 1);
});

Deno.test("server exits 1 if nobody reads its log when it stops", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG }, IN_HASTE);
  await sendMany(server, REQUESTS / 6); // Enough to overflow the pipe.

  assertEquals((await server.stop()).code, 1);
});

/** Sends `count` requests while nobody reads the log. */
async function sendMany(server: ServerProcess, count: number): Promise<void> {
  server.stdout.pause();
  using connection = await RawConnection.open(server.port);
  const request = rawRequest("GET /health", { "x-request-id": "x".repeat(64) });
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    await connection.send(request.repeat(AT_ONCE));
    for (let received = 0; received < AT_ONCE; received++) {
      assertEquals((await connection.receive())?.status, 200);
    }
  }
}
