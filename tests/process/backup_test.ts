import { assert, assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { outcome } from "../support/client.ts";
import { DenoProcess } from "./process.ts";
import { addItem, idIn, listIds } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

const CLIENTS = 8;
const CREATES = 100;

/** Starts `deno task backup FILE` or `deno task restore FILE`. */
function start(command: "backup" | "restore", file: string, kvPath: string): DenoProcess {
  return new DenoProcess(["-P=backup", "src/process/cli.ts", command, file], { KV_PATH: kvPath });
}

Deno.test("backup of a busy server contains all writes acknowledged before it, and can be restored", async () => {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  const [file, restored] = [`${store.folder}/backup`, `${store.folder}/restored/store.kv`];
  const acknowledged = new Set<number>();
  let early: ReadonlySet<number> = new Set();
  {
    await using server = await store.serve();
    let backup: DenoProcess | undefined;
    let isDone = false;
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      while (!isDone) {
        const answer = await addItem(server, key);
        assertEquals(outcome(answer), "201");
        acknowledged.add(idIn(answer.json));
        if (acknowledged.size < CREATES || backup) continue;
        early = new Set(acknowledged);
        backup = start("backup", file, store.kvPath);
        backup.ended().finally(() => isDone = true);
      }
    }));
    const { code, stdout, errorLines } = await backup?.ended() ?? {};
    assertEquals([code, stdout, errorLines], [0, "", [`Backed up ${store.kvPath} to ${file}.`]]);
  }
  assertGreaterOrEqual(early.size, CREATES);

  const { code, errorLines } = await start("restore", file, restored).ended();
  assertEquals([code, errorLines.at(-1)], [0, `Restored ${restored} from ${file}.`]);

  await using server = await store.serve({ KV_PATH: restored });
  const ids = new Set(await listIds(server, key));
  assertEquals([early.difference(ids), ids.difference(acknowledged)], [new Set(), new Set()]);
  assert(!ids.has(idIn((await addItem(server, key)).json)));
});

Deno.test("backup leaves no files behind when SIGTERM stops it", async () => {
  await using store = await TemporaryStore.create();
  // While this lock is held, readers of the file wait.
  const lock = new DatabaseSync(store.kvPath);
  lock.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
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
    const [backup, other, killed] = ["kv", "txt", "unfinished"].map((end) => `${folder}/${days}.${end}`);
    assert(backup && other && killed);
    await Deno.mkdir(killed);
    const file = `${killed}/file`;
    for (const path of [backup, other, file]) await Deno.writeTextFile(path, "");
    for (const path of [backup, other, file, killed]) await Deno.utime(path, at, at);
  }

  const args = ["-euc", line.replace(/\/\S+/, folder)];
  const { code, stderr } = await new Deno.Command("sh", { args }).output();

  assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  assertEquals(names.sort(), ["0.kv", "0.txt", "0.unfinished", "31.txt"]);
});
