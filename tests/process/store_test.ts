// Processes on one KV file: servers, a backup and a rebuild.
import { assert, assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { decodeJson } from "../../src/engine/mod.ts";
import { outcome, upTo } from "../support/client.ts";
import { DenoProcess } from "./process.ts";
import { addItem, idIn, itemWith, LIST, listIds, SERVING, SHIPPED } from "./shipped.ts";
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

const COUNT = 15_000;
const REBUILD = ["items", SHIPPED.name, "rebuild"] as const;

/** Stores items of an account, without the rows that are derived from them. */
async function storeItems(kv: Deno.Kv, accountId: string): Promise<void> {
  const encode = (text: string) => new TextEncoder().encode(text);
  for (let id = 1; id <= COUNT;) {
    const operation = kv.atomic();
    for (const end = id + 500; id < end; id++) {
      operation.set([...SHIPPED.rows.items, id], encode(`${itemWith(id)}\n${accountId}`));
    }
    await operation.commit();
  }
  await kv.set(SHIPPED.rows.ids, encode(`{"next":${COUNT + 1}}`));
}

Deno.test("items rebuild changes nothing if it is killed; after it, a server that still runs stops, and others use the new rows", async () => {
  await using served = await ServedStore.start();
  const { server, key, account, store } = served;
  using kv = await Deno.openKv(store.kvPath);
  const schema = async () => decodeJson({ ...await kv.get(["schema"]), versionstamp: "" });
  await storeItems(kv, account.id);
  {
    const args = [...SERVING, "-P", "src/process/cli.ts", ...REBUILD];
    await using killed = new DenoProcess(args, { KV_PATH: store.kvPath });
    await killed.wrote("stderr", /^10000 items are done\.$/m);
  }
  assertEquals(await schema(), { version: 1 });
  assertEquals((await addItem(server, key)).status, 201);

  const { code, errorLines } = await store.run(...REBUILD);
  assertEquals([code, errorLines], [0, [
    "10000 items are done.",
    `Rebuilt ${SHIPPED.name}: ${COUNT + 1} items. Now start the release that declares them so.`,
  ]]);
  assertEquals(await schema(), { version: 2, revision: 1 });
  assertEquals((await addItem(server, key)).status, 503);
  const outcome = await server.ended();
  assertEquals(outcome.code, 1);
  assert(outcome.errorLines.some((line) => line.includes("have been rewritten since this process started")));

  await using next = await store.serve();
  const filters = SHIPPED.filters.slice(0, 1).map((name) => `&${name}=${JSON.parse(itemWith(1))[name]}`);
  for (const query of ["", ...filters]) {
    const list = await next.fetch(`${LIST}?limit=2&sort=-id${query}`, { key });
    assertEquals([list.status, await list.text()], [200, `[${itemWith(COUNT + 1)},${itemWith(COUNT)}]`]);
  }
});
