import { assertEquals, assertMatch } from "@std/assert";
import { runServer, type Variables } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

const BAD_VARIABLES: readonly [name: string, value: string, line: RegExp][] = [
  ["PORT", "x", /^PORT must be an integer from 0 to 65535\.$/],
  ["PORT", "65536", /^PORT must be an integer from 0 to 65535\.$/],
  ["PORT", "-1", /^PORT must be an integer from 0 to 65535\.$/],
  ["PORT", "8000.5", /^PORT must be an integer from 0 to 65535\.$/],
  ["HOST", "300.1.2.3", /^Cannot listen on 300\.1\.2\.3:0: .+\.$/],
  ["ENVIRONMENT", "live", /^ENVIRONMENT must be one of production, staging\.$/],
  ["ACCESS_LOG", "yes", /^ACCESS_LOG must be one of off, json\.$/],
  ["CLIENT_ADDRESS_HEADER", "a b", /^CLIENT_ADDRESS_HEADER must be the name of an HTTP header\.$/],
];

for (const [name, value, line] of BAD_VARIABLES) {
  Deno.test(`server refuses to start with one line when ${name} is ${value}`, async () => {
    await assertRefused({ KV_PATH: ":memory:", [name]: value }, line);
  });
}

Deno.test("server refuses to start with one line when another process has its port", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();

  const line = new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${server.port}: .+\\.$`);
  await assertRefused({ KV_PATH: store.kvPath, PORT: `${server.port}` }, line);

  const response = await fetch(`${server.origin}/ready`);
  assertEquals(response.status, 200);
  await response.body?.cancel();
});

Deno.test("server refuses to start with one line when the KV path is a folder", async () => {
  await using store = await TemporaryStore.create();
  await assertRefused({ KV_PATH: store.folder }, /^The KV .+ cannot be used: .+\.$/);
});

Deno.test("server refuses to start with one line when the KV file is not a database", async () => {
  await using store = await TemporaryStore.create();
  await Deno.writeTextFile(store.kvPath, "This is a letter to the editor.\n".repeat(1_000));
  await assertRefused({ KV_PATH: store.kvPath }, /^The KV .+ cannot be used: file is not a database\.$/);
});

Deno.test("server refuses to start with one line when the KV file cannot be opened", async () => {
  await using store = await TemporaryStore.create();
  await Deno.symlink(store.kvPath, store.kvPath);
  await assertRefused({ KV_PATH: store.kvPath }, /^The KV .+ cannot be used: .+\.$/);
});

Deno.test("server refuses to start with one line when the KV file may not be read", async (t) => {
  await using store = await TemporaryStore.create();
  await Deno.writeTextFile(store.kvPath, "");
  await Deno.chmod(store.kvPath, 0);
  await t.step({
    name: "as a user whom file modes bind",
    ignore: await mayRead(store.kvPath),
    fn: () => assertRefused({ KV_PATH: store.kvPath }, /^The KV .+ cannot be used: .+\.$/),
  });
});

Deno.test("server refuses to start with one line when the KV file's folder cannot be made", async () => {
  await using store = await TemporaryStore.create();
  await Deno.writeTextFile(`${store.folder}/file`, "");
  await assertRefused(
    { KV_PATH: `${store.folder}/file/folder/animals.kv` },
    /^The folder .+\/file\/folder\/ cannot be made: .+\.$/,
  );
});

async function assertRefused(variables: Variables, line: RegExp): Promise<void> {
  const { code, stdout, errorLines } = await runServer(variables);
  assertEquals(code, 1);
  assertEquals(stdout, "");
  assertEquals(errorLines.length, 1, errorLines.join("\n"));
  assertMatch(errorLines.join("\n"), line);
}

async function mayRead(path: string): Promise<boolean> {
  try {
    await Deno.readFile(path);
    return true;
  } catch {
    return false;
  }
}
