import { assertEquals, assertGreaterOrEqual } from "@std/assert";
import { METRIC } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

const METRICS_TOKEN = "0123456789-abcdef~0123456789+abcdef=";

Deno.test("server reports the size of its KV file and the write-ahead log without permission to access files", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ METRICS_TOKEN });

  const files = await Promise.all(["", "-wal"].map((end) => Deno.stat(store.kvPath + end)));
  const response = await fetch(`${server.origin}/metrics`, {
    headers: { authorization: `Bearer ${METRICS_TOKEN}` },
  });
  const text = await response.text();

  assertEquals(response.status, 200);
  const bytes = Number(new RegExp(`^${METRIC}_kv_file_bytes (\\d+)$`, "m").exec(text)?.[1]);
  assertGreaterOrEqual(bytes, files.reduce((sum, { size }) => sum + size, 0));
});
