import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { call, outcome } from "../support/client.ts";
import { addItem, LIST } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

Deno.test("server refuses writes once its KV file is removed, until a restart", async () => {
  await using served = await ServedStore.start();
  const { server, key, store } = served;
  assertEquals((await addItem(server, key)).status, 201);

  await Deno.remove(store.kvPath);
  await server.wrote(
    "stderr",
    /"route":"store".*"reason":"The KV file was removed or renamed; restart the service"/,
  );

  assertEquals(outcome(await addItem(server, key)), "503 store_unavailable");
  assertEquals((await call(server, key, LIST)).status, 200);
  // It probes the store once a second.
  while ((await call(server, undefined, "GET /ready")).status === 200) await pause(50);
  assertEquals(outcome(await call(server, undefined, "GET /ready")), "503 store_unavailable");
  assertEquals((await server.stop()).code, 0);
  await using restarted = await store.serve();
  assertEquals((await call(restarted, undefined, "GET /ready")).status, 200);
});
