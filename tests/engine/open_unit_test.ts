import { assertEquals, assertGreaterOrEqual, assertNotEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { OpenError, type OpenOptions, openStore } from "../../src/engine/open.ts";
import { encodeJson } from "../../src/engine/row.ts";

const CREATE: OpenOptions = { clock: Date.now, create: true };
const FIND: OpenOptions = { clock: Date.now, create: false };

/** A temporary folder. */
class Folder implements AsyncDisposable {
  readonly path: string = Deno.makeTempDirSync();

  /** The names of its entries. */
  async names(): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(this.path))).map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

Deno.test("openStore() creates the file, and with `makesFolder` a folder that only its owner can use", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/new/folder/things.kv`;

  const store = await openStore(path, { ...CREATE, makesFolder: true });
  await store.commit((operation) => operation.set(["row"], 1));
  await store.close();

  for (const made of ["new", "new/folder"]) {
    const { mode } = await Deno.stat(`${folder.path}/${made}`);
    if (Deno.build.os !== "windows") assertEquals((mode ?? 0) & 0o777, 0o700);
  }
  const again = await openStore(path, FIND);
  assertEquals((await again.get(["row"]))?.value, 1);
  await again.close();
});

Deno.test({
  name: "openStore() creates files that only their owner can read, and keeps the mode of one that exists",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using folder = new Folder();
    const path = `${folder.path}/things.kv`;
    const modes = async () => {
      const store = await openStore(path, CREATE);
      await store.commit((operation) => operation.set(["row"], 1));
      const stats = (await folder.names()).map((name) => Deno.statSync(`${folder.path}/${name}`));
      await store.close();
      return stats.map(({ mode }) => (mode ?? 0) & 0o777);
    };

    assertEquals(await modes(), [0o600, 0o600, 0o600]);
    await Deno.chmod(path, 0o640);
    assertEquals(await modes(), [0o640, 0o640, 0o640]);
  },
});

Deno.test("openStore() creates nothing without `create`, and no folder without `makesFolder`", async () => {
  await using folder = new Folder();
  for (const path of [`${folder.path}/things.kv`, `${folder.path}/new/things.kv`]) {
    await assertRejects(() => openStore(path, FIND), OpenError, "there is no such file");
  }
  const mistyped = `${folder.path}/mistyped/things.kv`;
  const { message } = await assertRejects(() => openStore(mistyped, CREATE), OpenError);
  const reason =
    `there is no folder ${folder.path}/mistyped/, and only the folder of the default KV_PATH is created`;
  assertEquals(message, `The KV ${mistyped} cannot be used: ${reason}.`);
  assertEquals(await folder.names(), []);

  using kv = await Deno.openKv(`${folder.path}/empty.kv`);
  for (const path of [`${folder.path}/empty.kv`, ":memory:"]) {
    await assertRejects(() => openStore(path, FIND), OpenError, `${path} cannot be used: it is empty`);
  }
  assertEquals(await Array.fromAsync(kv.list({ prefix: [] })), []);
});

Deno.test("openStore() opens a separate in-memory store each time, with maxChecks checks per commit", async () => {
  const [one, other] = [await openStore(":memory:", CREATE), await openStore(":memory:", CREATE)];

  const { ok } = await one.commit((operation) => {
    for (let row = 0; row < one.maxChecks; row++) operation.check({ key: [row], versionstamp: null });
    operation.set(["row"], 1);
  });

  assertEquals([ok, one.maxChecks], [true, 99]);
  assertEquals(await other.get(["row"]), null);
  await Promise.all([one.close(), other.close()]);
});

Deno.test("Store.close() leaves a single file, without a write-ahead log", async () => {
  await using folder = new Folder();
  const store = await openStore(`${folder.path}/things.kv`, CREATE);
  await store.commit((operation) => operation.set(["row"], encodeJson({})));
  assertNotEquals(store.dataVersion, undefined);

  await store.close();

  assertEquals(await folder.names(), ["things.kv"]);
});

Deno.test("Store.fileSize includes the write-ahead log, and is undefined for a store in memory", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/things.kv`;
  const store = await openStore(path, CREATE);
  const memory = await openStore(":memory:", CREATE);
  const before = store.fileSize ?? NaN;
  await store.commit((operation) => operation.set(["row"], new Uint8Array(60_000)));

  const size = store.fileSize ?? NaN;
  const { size: logSize } = await Deno.stat(`${path}-wal`);

  {
    using database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const { size: mainSize } = await Deno.stat(path);
  assertEquals([size, store.fileSize], [mainSize + logSize, mainSize]);
  assertGreaterOrEqual(size - before, 120_000);
  assertEquals(memory.fileSize, undefined);
  await Promise.all([store.close(), memory.close()]);
});

Deno.test("openStore() explains in one line why a file cannot be used", async () => {
  await using folder = new Folder();
  const [file, empty, foreign] = [`${folder.path}/file`, `${folder.path}/empty`, `${folder.path}/foreign.kv`];
  await Deno.writeTextFile(file, "This is no database. ".repeat(1_000));
  await Deno.writeTextFile(empty, "");
  const pipe = `${folder.path}/pipe`;
  await new Deno.Command("mkfifo", { args: [pipe] }).output();
  {
    using kv = await Deno.openKv(foreign);
    await kv.set(["schema"], encodeJson({ version: 9 }));
  }

  for (
    const [path, options, reason] of [
      [folder.path, CREATE, `The KV ${folder.path} cannot be used`],
      [file, FIND, `The KV ${file} cannot be used`],
      [empty, FIND, "it is empty"],
      [pipe, CREATE, "it is not a file"],
      [`${file}/things.kv`, CREATE, `there is no folder ${file}/`],
      [`${file}/things.kv`, { ...CREATE, makesFolder: true }, `the folder ${file}/ cannot be created`],
      [`${file}/things.kv`, FIND, "cannot be used"],
      [foreign, CREATE, "its rows have version 9"],
    ] as const
  ) {
    const { message } = await assertRejects(() => openStore(path, options), OpenError, reason);
    assertEquals(message.includes("\n"), false, message);
  }
  assertEquals(await Deno.readTextFile(empty), "");
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
  assertEquals(await folder.names(), ["photos.db"]);
});

Deno.test("openStore() rejects a file that stays locked, because it may be another program's database", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/photos.db`;
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE photos (name TEXT); BEGIN EXCLUSIVE");

  await assertRejects(() => openStore(path, CREATE), OpenError, "database is locked");

  database.close();
  assertEquals(await folder.names(), ["photos.db"]);
});

Deno.test("openStore() never shows the password in a server's URL, however it is encoded", async () => {
  const options = { ...FIND, patience: { ms: 0, onWait() {} } };
  for (const password of ["secret", "se cret"]) {
    const opening = openStore(`http://user:${password}@127.0.0.1:1/`, options);
    const { message } = await assertRejects(() => opening, OpenError, "The KV 127.0.0.1:1 cannot be used");
    assertEquals(/se.*cret/.test(message), false, message);
  }
});
