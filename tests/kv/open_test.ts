import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { OpenError, openStore } from "../../src/kv/open.ts";

Deno.test("openStore() makes the folder of the file when it is missing", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/new/folder/animals.kv`;

  const store = await openStore(path);
  await store.commit("test", (operation) => operation.set(["row"], 1));
  await store.close();

  assert((await Deno.stat(path)).isFile);
  using again = await openStore(path);
  assertEquals((await again.get(["row"]))?.value, 1);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("openStore() opens a store of its own in memory", async () => {
  using one = await openStore(":memory:");
  using other = await openStore(":memory:");

  await one.commit("test", (operation) => operation.set(["row"], 1));

  assertEquals(await other.get(["row"]), null);
});

Deno.test("openStore() takes as many checks to a commit as it says", async () => {
  using store = await openStore(":memory:");

  const versionstamp = await store.commit("test", (operation) => {
    for (let row = 0; row < store.maxChecks; row++) operation.check({ key: [row], versionstamp: null });
  });

  assert(versionstamp);
});

Deno.test("openStore() says in one line why when the KV cannot be used", async (t) => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/file`, "This is no database. ".repeat(1_000));
  for (
    const [what, path] of [
      ["a folder", folder],
      ["not a database", `${folder}/file`],
      ["in a folder that is a file", `${folder}/file/animals.kv`],
      ["a server that is not there", "http://localhost:1/"],
    ] as const
  ) {
    await t.step(`the path is ${what}`, async () => {
      const { message } = await assertRejects(() => openStore(path), OpenError);

      assertStringIncludes(message, URL.canParse(path) ? "localhost:1" : path.replace("/animals.kv", ""));
      assertEquals(message.split("\n").length, 1);
    });
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("openStore() does not repeat the password in a URL", async () => {
  Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
  using _ = { [Symbol.dispose]: () => Deno.env.delete("DENO_KV_ACCESS_TOKEN") };

  const { message } = await assertRejects(() => openStore("http://user:password@localhost:1/"), OpenError);

  assertEquals(message.includes("password"), false);
});

Deno.test("openStore() keeps to one line when a server refuses with several", async () => {
  Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
  using _ = { [Symbol.dispose]: () => Deno.env.delete("DENO_KV_ACCESS_TOKEN") };
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("No.\nStack backtrace:\n  0: main", { status: 403 }),
  );

  const { message } = await assertRejects(
    () => openStore(`http://127.0.0.1:${server.addr.port}/`),
    OpenError,
  );

  assertStringIncludes(message, "403");
  assertEquals(message.split("\n").length, 1);
});
