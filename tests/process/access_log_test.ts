import { existsSync } from "node:fs";
import { assertEquals, assertGreater } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import type { ServerProcess } from "./process.ts";
import { assertAlive, RawConnection, rawRequest } from "./raw_connection.ts";
import { TemporaryStore } from "./temporary_store.ts";

/** Enough requests for their log lines to overflow a pipe and the server's buffer. */
const REQUESTS = 10_000;
/** Enough requests for their log lines to overflow a pipe, but not the server's buffer. */
const FEW_REQUESTS = 3_500;
const AT_ONCE = 100;

Deno.test("server responds while nobody reads its log, counts dropped lines, and exits 0", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG: "json" });

  await sendMany(server, REQUESTS);
  await assertAlive(server);
  server.stdout.resume();
  // The server reports dropped lines as soon as the pipe has room.
  await server.wrote("stdout", /"dropped":/);
  const { code, stdout } = await server.stop();

  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const dropped = records.reduce((sum, record) => sum + (record.dropped ?? 0), 0);
  const written = records.filter(({ route }) => route === "/health");
  assertEquals(code, 0);
  assertGreater(dropped, 0);
  assertEquals(written.length + dropped, REQUESTS + 1);
});

Deno.test("server exits 1 if nobody reads its log when it stops", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG: "json" });
  await sendMany(server, REQUESTS);

  assertEquals((await server.stop()).code, 1);
});

Deno.test("server writes the rest of its log before it exits", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG: "json" });
  await sendMany(server, FEW_REQUESTS);

  server.signal("SIGTERM");
  await untilClosed(store);
  server.stdout.resume();
  const { code, stdout } = await server.ended();

  assertEquals(code, 0);
  assertEquals(stdout.match(/"status":200/g)?.length, FEW_REQUESTS);
});

/** Waits until the server has closed its KV, and with it the write-ahead log. Only its own log remains to be written. */
async function untilClosed({ kvPath }: TemporaryStore): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (!existsSync(`${kvPath}-wal`)) return;
    await pause(5);
  }
  throw new Error("The server has not closed its KV");
}

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
