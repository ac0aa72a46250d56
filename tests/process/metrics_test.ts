import { assertEquals, assertGreater } from "@std/assert";
import { TemporaryStore } from "../support/temporary_store.ts";

const OPERATOR_TOKEN = "0123456789-abcdef~0123456789+abcdef=";

Deno.test("server tells of the size of its file, though it has given up every permission to touch files", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ OPERATOR_TOKEN });

  const response = await fetch(`${server.origin}/metrics`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  const text = await response.text();

  assertEquals(response.status, 200);
  assertGreater(Number(/^animal_store_kv_file_bytes (\d+)$/m.exec(text)?.[1]), 0);
});
