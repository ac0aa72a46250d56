import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { pause } from "../../src/base/time.ts";
import { type Build, CommitInDoubt } from "../../src/engine/backend.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../src/engine/deadline.ts";
import { FileBackend } from "../../src/engine/file.ts";
import { OpenError, type OpenOptions, openStore } from "../../src/engine/open.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { calmNetwork, fail, FakeKv, locked, type Network, onFile } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { testBackend } from "./backend_rules.ts";

const DEADLINE = 100;
const ROW = ["row"];
const CHECK = [{ key: ROW, versionstamp: null }];
const setRow: Build = (operation) => operation.set(ROW, 1);

testBackend("FileBackend", onFile);

/** A file whose handles tests can disturb, in virtual time. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  /** What happens to commits, and to reads. */
  readonly network: Network = calmNetwork();
  readonly closed: string[] = [];
  readonly backend: FileBackend;

  constructor() {
    const open = (name: string) =>
      Object.assign(this.kv.connect(this.network), { close: () => void this.closed.push(name) });
    const options = { clock: () => 0, deadline: DEADLINE, reader: open("reader") };
    this.backend = new FileBackend(open("writer"), options);
  }

  /** Makes a commit that ends in doubt. `end` lets it end. */
  async giveUp(): Promise<{ doubt: CommitInDoubt; end: (how: "applies" | "fails") => void }> {
    const { promise, resolve } = Promise.withResolvers<"applies" | "fails">();
    this.network.commit = async (apply) => await promise === "applies" ? apply() : await fail();
    const commit = this.backend.commit(setRow, CHECK);
    const doubt = await assertRejects(() => this.time.until(commit, DEADLINE), CommitInDoubt);
    this.network.commit = calmNetwork().commit;
    return { doubt, end: resolve };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.time[Symbol.asyncDispose]();
  }
}

Deno.test("FileBackend.commit() builds a commit again while another process has locked the file", async () => {
  await using fixture = new Fixture();
  const { backend, network, time, kv } = fixture;
  let builds = 0;
  network.commit = (apply) => builds < 3 ? locked() : Promise.resolve(apply());

  const { ok } = await time.until(backend.commit((...to) => (builds++, setRow(...to)), CHECK), 1_000);
  network.commit = locked;
  const late = backend.commit((operation) => operation.set(["late"], 1), []);

  await assertRejects(() => time.until(late, 20_000), StoreUnavailable, "locked");
  assertEquals([ok, builds, kv.value("late")], [true, 3, undefined]);
});

for (const [how, ok] of [["applies", true], ["fails", false]] as const) {
  Deno.test(`CommitInDoubt.findOut() on a file waits until its commit ${how}`, async () => {
    await using fixture = new Fixture();
    const { kv, time } = fixture;
    const { doubt, end } = await fixture.giveUp();
    const finding = doubt.findOut(() => true);
    await time.advance(3_000);
    end(how);

    const result = await time.until(finding, 1_000);

    const { versionstamp = "" } = kv.rows.get(JSON.stringify(ROW)) ?? {};
    assertEquals(result, ok ? { ok, versionstamp } : { ok, rows: [] });
    assertEquals(await doubt.findOut(() => false), result);
  });
}

Deno.test("CommitInDoubt.findOut() asks at least once, and again for ten seconds while a caller may wait", async () => {
  await using time = new VirtualTime();
  let start = 0;
  for (
    const [mayWait, ms] of [
      [() => false, 0],
      [() => time.now - start < 700, 1_000],
      [() => true, 10_000],
    ] as const
  ) {
    start = time.now;
    const asked: number[] = [];
    const doubt = new CommitInDoubt(() => (asked.push(time.now - start), fail()), undefined);

    const error = await assertRejects(() => time.until(doubt.findOut(mayWait), 60_000), CommitInDoubt);

    assertEquals([error === doubt, asked], [true, Array.from({ length: ms / 500 + 1 }, (_, at) => at * 500)]);
  }
});

Deno.test("FileBackend delays writes while one hangs, but not reads, and sends no more at their deadline", async () => {
  await using fixture = new Fixture();
  const { backend, time, kv } = fixture;
  const { end } = await fixture.giveUp();

  const late = backend.commit((operation) => operation.set(["late"], 1), []);
  assertEquals(await backend.getMany([ROW]), [null]);
  const error = await assertRejects(() => time.until(late, DEADLINE), DeadlineExceeded);
  const delayed = backend.commit((operation) => operation.set(["delayed"], 1), []);
  await time.advance(DEADLINE / 2);
  end("applies");

  assertEquals([error instanceof CommitInDoubt, (await time.until(delayed, 0)).ok], [false, true]);
  assertEquals([kv.value(...ROW), kv.value("late"), kv.value("delayed")], [1, undefined, 1]);
});

Deno.test("FileBackend delays reads until every one that hangs has ended", async () => {
  await using fixture = new Fixture();
  const { backend, time, network } = fixture;
  const sent: (() => void)[] = [];
  network.read = () => new Promise((resolve) => void sent.push(resolve));
  const hanging = [1, 2].map(() => assertRejects(() => backend.getMany([ROW]), DeadlineExceeded));
  await time.advance(DEADLINE);
  await Promise.all(hanging);

  sent[0]?.();
  await time.advance(0);
  const delayed = backend.getMany([ROW]);
  const before = sent.length;
  sent[1]?.();
  await time.advance(0);
  const after = sent.length;
  sent[2]?.();

  assertEquals([before, after, await delayed], [2, 3, [null]]);
});

Deno.test("FileBackend gives an operation that another one delayed only what is left of its deadline", async () => {
  await using fixture = new Fixture();
  const { backend, time, network } = fixture;
  network.read = () => pause(DEADLINE + 60);
  const first = assertRejects(() => backend.getMany([ROW]), DeadlineExceeded);
  await time.advance(DEADLINE);
  await first;

  await assertRejects(() => time.until(backend.getMany([ROW]), DEADLINE), DeadlineExceeded);
  await time.advance(DEADLINE + 60);
});

Deno.test("FileBackend.close() closes its handles, except one on which an operation hangs", async () => {
  await using fixture = new Fixture();
  const { end } = await fixture.giveUp();

  await fixture.backend.close();
  assertEquals(fixture.closed, ["reader"]);
  end("applies");
  await fixture.time.advance(0);
  await fixture.backend.close();

  assertEquals(fixture.closed, ["reader", "reader", "writer"]);
});

Deno.test("FileBackend.probe() writes little, but after a write had no room, as much as the largest row", async () => {
  await using fixture = new Fixture();
  const { backend, network, time } = fixture;
  const probes: number[] = [];
  let room = 50_000;
  // Fails as SQLite does on a disk with little room.
  network.commit = (apply, [value]) => {
    const size = value instanceof Uint8Array ? value.length : 0;
    if (size !== 10 && size !== 60_000) probes.push(size);
    if (size <= room) return Promise.resolve(apply());
    return Promise.reject(new TypeError("database or disk is full"));
  };
  const write = (bytes: number) =>
    backend.commit((operation) => operation.set(ROW, new Uint8Array(bytes)), []);
  for (let count = 0; count < 3; count++) await backend.probe();
  await assertRejects(() => write(60_000), StoreUnavailable);

  for (let second = 0; second < 15; second++) {
    await assertRejects(() => backend.probe(), StoreUnavailable);
    await write(10); // That there is room for a small row says nothing about larger ones.
    await time.advance(1_000);
  }
  room = Infinity;
  await time.advance(10_000);
  for (let count = 0; count < 2; count++) await backend.probe();

  assertEquals(probes.map((size) => size > 60_000), [false, false, false, true, true, true, false]);
});

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

Deno.test("FileBackend.open() closes its first handle if the second one cannot be opened", async () => {
  await using folder = new Folder();
  const opened: Deno.Kv[] = [];
  const property = Object.getOwnPropertyDescriptor(Deno, "openKv") ?? {};
  const { openKv } = Deno;
  const value = async (path: string) => {
    if (opened.length === 1) throw new TypeError("Too many open files");
    opened.push(await openKv(path));
    return opened[0];
  };
  Object.defineProperty(Deno, "openKv", { configurable: true, value });

  try {
    const path = `${folder.path}/things.kv`;
    await assertRejects(
      () => FileBackend.open(path, { clock: () => 0, create: true }),
      StoreUnavailable,
    );
  } finally {
    Object.defineProperty(Deno, "openKv", property);
  }

  assertThrows(() => opened[0]?.close(), Deno.errors.BadResource);
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
    using database = new DatabaseSync(path, { timeout: 60_000 });
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const { size: mainSize } = await Deno.stat(path);
  assertEquals([size, store.fileSize, size - before > 120_000], [mainSize + logSize, mainSize, true]);
  await store.close();
});

Deno.test("openStore() calls `onLost` if another file takes the place of the KV file", async () => {
  await using folder = new Folder();
  const path = `${folder.path}/things.kv`;
  const { promise: lost, resolve: onLost } = Promise.withResolvers<StoreUnavailable>();
  const store = await openStore(path, { ...CREATE, onLost });
  await Deno.copyFile(path, `${path}.new`);

  await Deno.rename(`${path}.new`, path);

  assertEquals((await lost).logReason.startsWith("The KV file was removed or replaced"), true);
  await assertRejects(() => store.probe(), StoreUnavailable, "was removed or replaced");
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
  await Deno.writeTextFile(at("moved.kv-wal"), "rows");
  await new Deno.Command("mkfifo", { args: [at("pipe")] }).output();
  {
    using kv = await Deno.openKv(at("foreign.kv"));
    await kv.set(["schema"], encodeJson({ version: 9 }));
  }
  const names = () => folder.names().filter((name) => name === "moved.kv-wal" || !/-(wal|shm)$/.test(name));
  const before = names();
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
      [
        at("moved.kv"),
        CREATE,
        `there is no such file, but ${at("moved.kv")}-wal, which has its newest rows: move the file back, `,
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
  assertEquals(names(), before);
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
