// Processes on one KV file: servers, a backup and a rebuild.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { pause } from "../../src/base/time.ts";
import { outcome, upTo } from "../support/client.ts";
import { DenoProcess } from "./process.ts";
import { addItem, idIn, listIds, SHIPPED } from "./shipped.ts";
import { ServedStore, TemporaryStore } from "./temporary_store.ts";

Deno.test("servers that create a KV file together see each other's items at once", async () => {
  await using store = await TemporaryStore.empty();
  const starting = [store.serve(), store.serve()] as const;
  await using one = await starting[0];
  await using other = await starting[1];
  const { key } = await store.createAccount();

  for (const _ of upTo(20)) {
    const id = idIn((await addItem(one, key)).json);
    assert((await listIds(other, key)).includes(id));
  }
});

/** Starts `deno task backup FILE` or `deno task restore FILE`. */
function start(command: "backup" | "restore", file: string, kvPath: string): DenoProcess {
  return new DenoProcess(["-P=backup", "src/process/cli.ts", command, file], { KV_PATH: kvPath });
}

Deno.test("backup of a running server can be restored, and assigns no id again", async () => {
  await using served = await ServedStore.start();
  const { server, store, key } = served;
  const [file, restored] = [`${store.folder}/backup`, `${store.folder}/restored/store.kv`];
  const ids = [idIn((await addItem(server, key)).json), idIn((await addItem(server, key)).json)];

  const { code, stdout, errorLines } = await start("backup", file, store.kvPath).ended();
  assertEquals([code, stdout, errorLines], [0, "", [`Backed up ${store.kvPath} to ${file}.`]]);
  await addItem(server, key);
  const again = await start("restore", file, restored).ended();
  assertEquals([again.code, again.errorLines.at(-1)], [0, `Restored ${restored} from ${file}.`]);

  await using next = await store.serve({ KV_PATH: restored });
  assertEquals(await listIds(next, key), ids);
  assert(!ids.includes(idIn((await addItem(next, key)).json)));
});

/** Locks a file; false if KV, which closes it some time after `close()`, still has it open. */
function hasLocked(database: DatabaseSync): boolean {
  try {
    database.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes("locked")) return false;
    throw error;
  }
}

Deno.test("backup leaves no files behind when SIGTERM stops it", async () => {
  await using store = await TemporaryStore.create();
  // While this lock is held, readers of the file wait.
  const lock = new DatabaseSync(store.kvPath);
  while (!hasLocked(lock)) await pause(10);
  const changes = Deno.watchFs(store.folder);
  await using backup = start("backup", `${store.folder}/backup`, store.kvPath);
  let hasBegun = false;
  // Stop watching if the backup ends before it begins to write.
  backup.ended().then(() => hasBegun || changes.close());
  for await (const { paths } of changes) {
    hasBegun = paths.some((path) => path.endsWith(".unfinished"));
    if (hasBegun) break;
  }
  assert(hasBegun, "The backup created no folder that ends with .unfinished");

  backup.signal("SIGTERM");
  const { code, stdout, errorLines } = await backup.ended();

  lock.close();
  assertEquals([code, stdout, errorLines.length], [1, "", 1]);
  assertMatch(errorLines.join(), /was not backed up: it was stopped by SIGTERM\.$/);
  const names = await Array.fromAsync(Deno.readDir(store.folder), ({ name }) => name);
  assertEquals(names, ["store.kv"]);
});

Deno.test("the guide's script deletes old backups and what killed ones left, and nothing else", async () => {
  await using store = await TemporaryStore.empty();
  const { folder } = store;
  const guide = await Deno.readTextFile(new URL("../../src/operator/README.md", import.meta.url));
  const [line = ""] = /^find .+$/m.exec(guide) ?? [];
  for (const days of [0, 31]) {
    const at = Date.now() / 1_000 - days * 86_400;
    const killed = `${folder}/${days}.unfinished`;
    await Deno.mkdir(killed);
    const files = [`${folder}/${days}.kv`, `${folder}/${days}.txt`, `${killed}/file`];
    for (const path of files) await Deno.writeTextFile(path, "");
    for (const path of [...files, killed]) await Deno.utime(path, at, at);
  }

  const args = ["-euc", line.replace(/\/\S+/, folder)];
  const { code, stderr } = await new Deno.Command("sh", { args }).output();

  assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  assertEquals(names.sort(), ["0.kv", "0.txt", "0.unfinished", "31.txt"]);
});

Deno.test("server returns 503, and exits 1 with the reason, after items rebuild has rewritten rows", async () => {
  await using served = await ServedStore.start();
  const { server, key, store } = served;
  assertEquals((await addItem(server, key)).status, 201);

  const { code, errorLines } = await store.run("items", SHIPPED.name, "rebuild");

  const done = `Rebuilt ${SHIPPED.name}: 1 items. Now start the release that declares them so.`;
  assertEquals([code, errorLines], [0, [done]]);
  assertEquals(outcome(await addItem(server, key)), "503 store_unavailable");
  const ended = await server.ended();
  assertEquals(ended.code, 1);
  const at = ended.records.findIndex(({ route }) => route === "schema");
  assertMatch(`${ended.records[at]?.["reason"]}`, /have been rewritten since this process started/);
  const { event, reason } = ended.records[at + 1] ?? {};
  assertEquals([event, reason], ["stop", "schema"]);
});
