import { assertEquals, assertGreater } from "@std/assert";
import { TemporaryStore } from "../support/temporary_store.ts";

const OPERATOR_TOKEN = "0123456789-abcdef~0123456789+abcdef=";

Deno.test("server reports the size of its KV file without permission to access files", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ OPERATOR_TOKEN });

  const response = await fetch(`${server.origin}/metrics`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  const text = await response.text();

  assertEquals(response.status, 200);
  assertGreater(Number(/^animal_store_kv_file_bytes (\d+)$/m.exec(text)?.[1]), 0);
});
