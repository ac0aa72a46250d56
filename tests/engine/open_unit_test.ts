import { assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { OpenError, type OpenOptions, openStore } from "../../src/engine/open.ts";
import { encodeJson } from "../../src/engine/row.ts";

const CREATE: OpenOptions = { clock: Date.now, create: true };
const FIND: OpenOptions = { clock: Date.now, create: false };

/** A temporary folder. */
class Folder implements AsyncDisposable {
  readonly path: string = Deno.makeTempDirSync();

  /** The names of its entries. */
  names(): string[] {
    return [...Deno.readDirSync(this.path)].map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** The permissions of a file or folder. */
function modeOf(path: string): number {
  return (Deno.statSync(path).mode ?? 0) & 0o777;
}

Deno.test({
  name:
    "openStore() creates files and, with `makesFolder`, folders that only their owner can use, and keeps a file's mode",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using folder = new Folder();
    const path = `${folder.path}/new/folder/things.kv`;
    const modes = async (options: OpenOptions) => {
      const store = await openStore(path, options);
      await store.commit((operation) => operation.set(["row"], 1));
      const modes = ["", "-wal", "-shm"].map((file) => modeOf(path + file));
      await store.close();
      return modes;
    };

    assertEquals(await modes({ ...CREATE, makesFolder: true }), [0o600, 0o600, 0o600]);
    for (const made of ["new", "new/folder"]) assertEquals(modeOf(`${folder.path}/${made}`), 0o700);
    await Deno.chmod(path, 0o640);
    assertEquals(await modes(FIND), [0o640, 0o640, 0o640]);
  },
});

Deno.test("Store.fileSize includes the write-ahead log", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/things.kv`;
  const store = await openStore(path, CREATE);
  const before = store.fileSize ?? NaN;
  await store.commit((operation) => operation.set(["row"], new Uint8Array(60_000)));

  const size = store.fileSize ?? NaN;
  const { size: logSize } = await Deno.stat(`${path}-wal`);

  {
    using database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const { size: mainSize } = await Deno.stat(path);
  assertEquals([size, store.fileSize, size - before > 120_000], [mainSize + logSize, mainSize, true]);
  await store.close();
});

Deno.test("openStore() opens a separate in-memory store each time, with maxChecks checks per commit", async () => {
  const [one, other] = [await openStore(":memory:", CREATE), await openStore(":memory:", CREATE)];

  const { ok } = await one.commit((operation) => {
    for (let row = 0; row < one.maxChecks; row++) operation.check({ key: [row], versionstamp: null });
    operation.set(["row"], 1);
  });

  assertEquals([ok, one.maxChecks, one.fileSize, await other.get(["row"])], [true, 99, undefined, null]);
  await Promise.all([one.close(), other.close()]);
});

Deno.test("openStore() explains in one line why a file cannot be used, and creates nothing", async () => {
  await using folder = new Folder();
  const at = (name: string) => `${folder.path}/${name}`;
  await Deno.writeTextFile(at("file"), "This is no database. ".repeat(1_000));
  await Deno.writeTextFile(at("empty"), "");
  await new Deno.Command("mkfifo", { args: [at("pipe")] }).output();
  {
    using kv = await Deno.openKv(at("foreign.kv"));
    await kv.set(["schema"], encodeJson({ version: 9 }));
  }
  const before = folder.names();
  const withFolder = { ...CREATE, makesFolder: true };

  for (
    const [path, options, reason] of [
      [folder.path, CREATE, "it is a folder."],
      [at("file"), FIND, ""],
      [at("empty"), FIND, "it is empty."],
      [":memory:", FIND, "it is empty, and only the service creates its first rows"],
      [at("pipe"), CREATE, "it is not a file."],
      [at("none.kv"), FIND, "there is no such file, and only the service creates it when it starts."],
      [at("new/none.kv"), FIND, "there is no such file, "],
      [
        at("new/none.kv"),
        CREATE,
        `there is no folder ${at("new/")}, and only the folder of the default KV_PATH is created.`,
      ],
      [at("file/none.kv"), CREATE, `there is no folder ${at("file/")}, `],
      [at("file/none.kv"), withFolder, `the folder ${at("file/")} cannot be created: `],
      [at("file/none.kv"), FIND, ""],
      [at("foreign.kv"), CREATE, "its rows have version 9, "],
    ] as const
  ) {
    const { message } = await assertRejects(() => openStore(path, options), OpenError);
    assertEquals(message.startsWith(`The KV ${path} cannot be used: ${reason}`), true, message);
    assertEquals(message.includes("\n"), false, message);
  }
  assertEquals(folder.names().filter((name) => !/-(wal|shm)$/.test(name)), before);
  assertEquals(await Deno.readTextFile(at("empty")), "");
});

Deno.test("openStore() leaves another program's database unchanged", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/photos.db`;
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE photos (name TEXT); CREATE TABLE kv (k TEXT, v TEXT)");
  database.close();
  const before = await Deno.readFile(path);

  for (const options of [CREATE, FIND]) {
    await assertRejects(() => openStore(path, options), OpenError, "it is the database of another program");
  }

  assertEquals(await Deno.readFile(path), before);
  assertEquals(folder.names(), ["photos.db"]);
});

Deno.test("openStore() rejects a file that stays locked, because it may be another program's database", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/photos.db`;
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE photos (name TEXT); BEGIN EXCLUSIVE");
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (sql) {
    this.exec("PRAGMA busy_timeout = 50"); // In place of five seconds.
    return prepare.call(this, sql);
  };

  await assertRejects(() => openStore(path, CREATE), OpenError, "database is locked");

  DatabaseSync.prototype.prepare = prepare;
  database.close();
  assertEquals(folder.names(), ["photos.db"]);
});
