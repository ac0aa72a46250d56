import { assertEquals } from "@std/assert";
import { TemporaryStore } from "./temporary_store.ts";

Deno.test("server may not read or write files any more once it listens", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({}, { runtime: ["--preload", "tests/server/touch_files.ts"] });
  assertEquals(server.stdout.text, "write done, read done\n");

  server.signal("SIGUSR2");

  assertEquals(await server.wrote("stdout", /^.+\n(.+)\n/), "write NotCapable, read NotCapable");
});
