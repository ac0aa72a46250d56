import { assertEquals, assertGreater } from "@std/assert";
import { assertAlive } from "./expectations.ts";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import type { ServerProcess } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

const REQUESTS = 10_000;
const AT_ONCE = 100;

Deno.test("server answers, counts what it drops and exits 0 when nobody reads its log", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG: "json" });

  await sendMany(server);
  await assertAlive(server);
  server.stdout.resume();
  // What comes now finds room, and is written after the notice of what was dropped.
  await server.wrote("stdout", /"dropped":/);
  const { code, stdout } = await server.stop();

  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const dropped = records.reduce((sum, record) => sum + (record.dropped ?? 0), 0);
  const written = records.filter(({ route }) => route === "/health");
  assertEquals(code, 0);
  assertGreater(dropped, 0);
  assertEquals(written.length + dropped, REQUESTS + 1);
});

Deno.test("server exits 0 when it is stopped while nobody reads its log", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ ACCESS_LOG: "json" });
  await sendMany(server);

  assertEquals((await server.stop()).code, 0);
});

/** Sends more requests, while nobody reads, than a pipe and the server's memory have room for in the log. */
async function sendMany(server: ServerProcess): Promise<void> {
  server.stdout.pause();
  using connection = await RawConnection.open(server.port);
  const request = rawRequest("GET /health", { "x-request-id": "x".repeat(64) });
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    await connection.send(request.repeat(AT_ONCE));
    for (let received = 0; received < AT_ONCE; received++) {
      assertEquals((await connection.receive())?.status, 200);
    }
  }
}
