import { assert, assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { outcome } from "../support/client.ts";
import { DenoProcess, type ServerProcess, type Variables } from "./process.ts";
import { addItem, idIn, listIds } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

const CLIENTS = 16;
const CREATES = 500;

/** Starts `deno task backup FILE` or `deno task restore FILE`. */
function start(
  command: "backup" | "restore",
  file: string,
  kvPath: string,
  variables: Variables = {},
): DenoProcess {
  return new DenoProcess(["-P=backup", "src/process/cli.ts", command, file], {
    KV_PATH: kvPath,
    ...variables,
  });
}

/** Adds items until `isEnough`. Stores the ids of acknowledged ones. */
async function addUntil(
  isEnough: () => boolean,
  { server, key, acknowledged }: {
    readonly server: ServerProcess;
    readonly key: string;
    readonly acknowledged: Set<number>;
  },
): Promise<void> {
  async function client(): Promise<void> {
    while (!isEnough()) {
      const answer = await addItem(server, key);
      assertEquals(outcome(answer), "201");
      acknowledged.add(idIn(answer.json));
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client));
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
    await addUntil(() => {
      if (acknowledged.size >= CREATES && backup === undefined) {
        early = new Set(acknowledged);
        backup = start("backup", file, store.kvPath);
        backup.ended().finally(() => isDone = true);
      }
      return isDone;
    }, { server, key, acknowledged });
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

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`backup leaves no files behind when ${signal} stops it`, async () => {
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

    backup.signal(signal);
    const { code, stdout, errorLines } = await backup.ended();

    lock.close();
    assertEquals([code, stdout, errorLines.length], [1, "", 1]);
    assertMatch(errorLines.join(), new RegExp(`was not backed up: it was stopped by ${signal}\\.$`));
    const names = await Array.fromAsync(Deno.readDir(store.folder), ({ name }) => name);
    assertEquals(names, ["store.kv"]);
  });
}

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

Deno.test("backup and restore read only variables that they are permitted to read", async () => {
  await using store = await TemporaryStore.create();
  const [file, audit] = [`${store.folder}/backup`, `${store.folder}/audit`];
  const variables = { DENO_AUDIT_PERMISSIONS: audit };

  const codes = [
    (await start("backup", file, store.kvPath, variables).ended()).code,
    (await start("restore", file, `${store.folder}/restored.kv`, variables).ended()).code,
  ];

  assertEquals(codes, [0, 0]);
  const lines = (await Deno.readTextFile(audit)).trimEnd().split("\n").map((line) => JSON.parse(line));
  const asked = lines.filter(({ permission }) => permission === "env").map(({ value }) => value);
  assertEquals(new Set(asked), new Set(["SERVICE_URL", "KV_PATH"]));
});
