import { DatabaseSync } from "node:sqlite";
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { FileBackend, openFileState } from "../../src/engine/file.ts";
import { VersionedCache } from "../../src/engine/cache.ts";
import { Store } from "../../src/engine/store.ts";
import { nameOf, raiseVersion, type VersionRow, Versions } from "../../src/engine/versions.ts";
import { calmNetwork, fail, FakeKv, hang, onFile } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { setImmediate } from "node:timers/promises";
import { batched, type BatchOptions } from "../../src/engine/batch.ts";

/** Two watched rows, one of which another process changes, in virtual time. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly versions: Versions;
  readonly row: VersionRow;
  readonly none: VersionRow;
  /** How long a read takes, in ms. */
  latency = 0;
  isBroken = false;
  reads = 0;

  constructor(maxStalenessMs?: number) {
    const read = async () => {
      this.reads++;
      await pause(this.latency);
      if (this.isBroken) await fail();
    };
    const store = new Store(onFile(this.kv.connect({ ...calmNetwork(), read }), { clock: () => 0 }));
    this.versions = new Versions(store, maxStalenessMs);
    this.none = this.versions.watch(["none"]);
    this.row = this.versions.watch(["row"]);
  }

  /** Changes the row in another process, and returns its version. */
  async change(): Promise<string> {
    await this.kv.connect().atomic().set(["row"], 1).commit();
    return this.kv.rows.get('["row"]')?.versionstamp ?? "";
  }

  /** Checks the versions, which may take up to `ms`. */
  async check(ms: number): Promise<void> {
    await this.time.until(Promise.resolve(this.versions.check()), ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.time[Symbol.asyncDispose]();
  }
}

Deno.test("nameOf() gives keys names of their own, whatever the types of their parts", () => {
  const keys = [
    ["a", 7],
    ["a", 7n],
    ["a", "7"],
    ["a", "7n"],
    ["a", true],
    ["a", "true"],
    ["a", -7n],
    ["a,7"],
    ["a"],
  ];

  assertEquals(new Set(keys.map(nameOf)).size, keys.length);
});

Deno.test("Versions.check() updates every watched row, with one read for simultaneous calls", async () => {
  await using fixture = new Fixture();
  const { versions, row, none } = fixture;
  for (let round = 1; round <= 3; round++) {
    const version = await fixture.change();

    await fixture.time.until(Promise.all(Array.from({ length: 50 }, () => versions.check())), 10);

    assertEquals([row.version, none.version, fixture.reads], [version, "", round]);
  }
});

Deno.test("Versions.check() waits for a read that starts after the call", async () => {
  await using fixture = new Fixture();
  fixture.latency = 100;
  const early = fixture.versions.check();
  await fixture.time.advance(50);
  const late = [fixture.versions.check(), fixture.versions.check()];
  await fixture.time.until(Promise.resolve(early), 100);
  const version = await fixture.change();

  await fixture.time.until(Promise.all(late), 200);

  assertEquals([fixture.row.version, fixture.reads], [version, 2]);
});

Deno.test("Versions.check() and raiseVersion() never lower a known version", async () => {
  await using fixture = new Fixture();
  const version = await fixture.change();
  raiseVersion(fixture.row, `${version}1`);

  await fixture.check(10);
  raiseVersion(fixture.row, version);

  assertEquals(fixture.row.version, `${version}1`);
});

Deno.test("Versions.check() returns at once after a recent read and reads again in the background", async () => {
  await using fixture = new Fixture(1_000);
  const { versions, row, time } = fixture;
  fixture.latency = 200;
  await fixture.check(300);
  const version = await fixture.change();

  await time.advance(300);
  assertEquals([versions.check(), fixture.reads, row.version], [undefined, 1, ""]);
  await time.advance(1);
  assertEquals([versions.check(), versions.check()], [undefined, undefined]);
  await time.advance(201);
  assertEquals([fixture.reads, row.version], [2, version]);
  await time.advance(798);
  assertEquals(versions.check(), undefined);
  await time.advance(1_500);
  assert(versions.check() instanceof Promise);
  await time.advance(300);
});

Deno.test("Versions.check() runs one read at a time in the background, however many calls arrive", async () => {
  await using fixture = new Fixture(1_000);
  const { versions, time } = fixture;
  fixture.latency = 200;
  await fixture.check(300);

  for (let ms = 0; ms < 5_000; ms += 10) {
    assertEquals(versions.check(), undefined);
    await time.advance(10);
  }

  // The first read, then one every 510 ms, started by the first call after half the permitted staleness.
  assertEquals(fixture.reads, 11);
  await time.advance(500);
});

Deno.test("Versions.check() ignores failed background reads until the last good read is too old", async () => {
  await using fixture = new Fixture(1_000);
  const { versions, time } = fixture;
  await fixture.check(10);
  fixture.isBroken = true;

  await time.advance(600);
  for (let count = 0; count < 3; count++) {
    assertEquals(versions.check(), undefined);
    await time.advance(100);
  }
  assertEquals(fixture.reads, 4);
  await time.advance(200);
  await assertRejects(() => fixture.check(10), StoreUnavailable);
});

Deno.test("Versions.check() reads the rows of a file only if there was a commit since the last read began", async () => {
  const fake = new FakeKv();
  const kv = fake.connect();
  const getMany = kv.getMany.bind(kv);
  let reads = 0;
  let meanwhile: (() => unknown) | undefined;
  kv.getMany = async (...given) => {
    reads++;
    const entries = await getMany(...given);
    await meanwhile?.();
    meanwhile = undefined;
    return entries;
  };
  const state = {
    version: () => fake.repetitions.length,
    size: () => 0,
    versionsOf: () => undefined,
    close: () => {},
  };
  const versions = new Versions(new Store(new FileBackend(kv, { clock: () => 0, state })));
  const row = versions.watch(["row"]);
  const set = (...key: string[]) => fake.connect().atomic().set(key, 1).commit();
  const versionOf = (key: string) => fake.rows.get(JSON.stringify([key]))?.versionstamp ?? "";
  /** Checks versions twice. Returns the number of reads. */
  const readsOfTwo = async () => {
    reads = 0;
    for (let count = 0; count < 2; count++) await versions.check();
    return reads;
  };

  assertEquals([await readsOfTwo(), row.version], [1, ""]);
  await set("row");
  assertEquals([await readsOfTwo(), row.version], [1, versionOf("row")]);
  await set("other");
  assertEquals(await readsOfTwo(), 1);
  const other = versions.watch(["other"]);
  assertEquals([await readsOfTwo(), other.version], [1, versionOf("other")]);

  await set("late");
  const late: VersionRow[] = [];
  meanwhile = () => late.push(versions.watch(["late"]));
  assertEquals([await readsOfTwo(), late[0]?.version], [2, versionOf("late")]);
  await set("other");
  meanwhile = () => set("row");
  assertEquals([await readsOfTwo(), row.version], [2, versionOf("row")]);
});

Deno.test("openFileState() returns a state that never waits for a lock on the file, or undefined", async () => {
  const path = await Deno.makeTempFile();
  using database = new DatabaseSync(path);
  database.exec("CREATE TABLE kv (k)");
  const { prepare } = DatabaseSync.prototype;
  let wait: unknown;
  DatabaseSync.prototype.prepare = function (sql) {
    wait = prepare.call(this, "PRAGMA busy_timeout").get()?.timeout;
    return prepare.call(this, sql);
  };
  const state = await openFileState(path);
  DatabaseSync.prototype.prepare = prepare;
  const numbers = () => [typeof state?.version(), typeof state?.size()];

  assertEquals([wait, numbers()], [0, ["number", "number"]]);
  const before = state?.version();
  assertEquals(state?.version(), before);
  database.exec("INSERT INTO kv VALUES (1)");
  assertNotEquals(state?.version(), before);
  database.exec("BEGIN EXCLUSIVE");
  assertEquals(numbers(), ["undefined", "undefined"]);
  database.exec("COMMIT");
  assertEquals(numbers(), ["number", "number"]);

  state?.close();
  await Deno.remove(path);
  assertEquals(await openFileState(path), undefined);
});

Deno.test("openFileState() reads the versionstamps of rows as KV does, if its tables are those of KV", async () => {
  const path = await Deno.makeTempFile();
  const keys = [["row"], ["rows", "Zo\u00eb"], ["none"]];
  const kv = await Deno.openKv(path);
  const state = await openFileState(path);
  const stamps = async () => (await kv.getMany(keys)).map(({ versionstamp }) => versionstamp);

  for (let count = 0; count < 20; count++) {
    assertEquals(state?.versionsOf(keys), await stamps());
    await kv.set(keys[count % 2] ?? [], count);
  }
  assertEquals(state?.versionsOf([["row", 1]]), undefined);
  assertEquals(state?.versionsOf([["row\0"]]), undefined);
  state?.close();
  kv.close();
  using database = new DatabaseSync(path);
  for (const change of ["UPDATE migration_state SET version = version + 1", "DROP TABLE kv"]) {
    database.exec(change);
    const other = await openFileState(path);
    assertEquals([typeof other?.version(), other?.versionsOf([])], ["number", undefined]);
    other?.close();
  }
  await Deno.remove(path);
});

/** A version row, and a cache of values that depend on it. */
function cached(): [VersionRow, VersionedCache<string, string>] {
  const row = { key: ["versions", "things"], version: "1" };
  return [row, new VersionedCache(row, 100)];
}

Deno.test("VersionedCache.get() makes a value once for simultaneous calls and for each version", async () => {
  const [row, cache] = cached();
  let made = 0;
  const get = () => cache.get("key", (earlier) => Promise.resolve(`${++made} after ${earlier}`));

  assertEquals(await Promise.all([get(), get()]), Array(2).fill("1 after undefined"));
  assertEquals(get(), "1 after undefined");
  row.version = "2";
  assertEquals(await get(), "2 after 1 after undefined");
  assertEquals(get(), "2 after 1 after undefined");
});

Deno.test("VersionedCache.get() keeps a newer value while an older one is made, or fails", async () => {
  for (const settle of ["resolve", "reject"] as const) {
    const [row, cache] = cached();
    const [old, latest] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    const early = cache.get("key", () => old.promise);
    row.version = "2";
    const late = cache.get("key", () => latest.promise);

    latest.resolve("new");
    old[settle]("old");
    await Promise.allSettled([early]);

    assertEquals([await late, cache.get("key", hang)], ["new", "new"]);
  }
});

Deno.test("VersionedCache.get() does not cache a failure", async () => {
  const [, cache] = cached();
  const failing = [cache.get("key", fail), cache.get("key", hang)];
  for (const value of failing) await assertRejects(async () => await value, TypeError);

  assertEquals(await cache.get("key", () => Promise.resolve("whole")), "whole");
});

/** Doubles numbers in rounds, which end on demand. */
class Doubler {
  readonly rounds: (readonly number[])[] = [];
  /** Number of rounds that are running. */
  running = 0;
  readonly #results: Promise<number | string>[] = [];
  readonly #double: (number: number) => Promise<number>;
  #gate = Promise.withResolvers<void>();

  constructor(options?: BatchOptions) {
    this.#double = batched(async (numbers: readonly number[]) => {
      this.rounds.push(numbers);
      this.running++;
      await this.#gate.promise;
      this.running--;
      if (numbers.includes(0)) throw new RangeError("round with 0");
      return (index) => {
        const number = numbers[index] ?? 0;
        if (number < 0) throw new RangeError(`${number} is refused`);
        return number * 2;
      };
    }, options);
  }

  /** Calls it for these numbers at the same time. */
  async add(...numbers: number[]): Promise<void> {
    this.#results.push(...numbers.map((number) => this.#double(number).catch(String)));
    await setImmediate();
  }

  /** Ends the rounds that have started so far. */
  async endRounds(): Promise<void> {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
    await setImmediate();
  }

  /** The results of all calls, in order. */
  results(): Promise<(number | string)[]> {
    return Promise.all(this.#results);
  }
}

Deno.test("batched() joins calls that arrive during a round into the next, and runs one at a time", async () => {
  const doubler = new Doubler();
  await doubler.add(1, 2);
  await doubler.add(3, 4, 5);
  assertEquals([doubler.rounds, doubler.running], [[[1, 2]], 1]);

  await doubler.endRounds();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2], [3, 4, 5]], 1]);
  await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10]);
});

Deno.test("batched() rejects only the calls for a failed item, or a whole failed round, and continues", async () => {
  const doubler = new Doubler();
  for (const numbers of [[1, -2, 3], [1, 0], [4]]) {
    await doubler.add(...numbers);
    await doubler.endRounds();
  }

  const [refused, failed] = ["RangeError: -2 is refused", "RangeError: round with 0"];
  assertEquals(await doubler.results(), [2, refused, 6, failed, failed, 8]);
});

Deno.test("batched() gathers calls for a round, unless they have waited for another one", async () => {
  let gathered = 0;
  const doubler = new Doubler({ gather: () => (gathered++, setImmediate()) });
  for (const number of [1, 2, 3, 4]) await doubler.add(number);
  assertEquals([doubler.rounds, gathered], [[[1, 2]], 1]);

  await doubler.endRounds();
  assertEquals([doubler.rounds, gathered], [[[1, 2], [3, 4]], 1]);
  await doubler.endRounds();
  await doubler.add(5);
  assertEquals(gathered, 2);
  await setImmediate();
  await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10]);
});

Deno.test("batched() runs as many rounds at a time as it currently has lanes", async () => {
  let lanes = 2;
  const doubler = new Doubler({ lanes: () => lanes });
  for (const number of [1, 2, 3, 4]) await doubler.add(number);
  assertEquals([doubler.rounds, doubler.running], [[[1], [2]], 2]);

  await doubler.endRounds();
  assertEquals(doubler.rounds, [[1], [2], [3, 4]]);
  lanes = 1;
  for (const number of [5, 6]) await doubler.add(number);
  assertEquals(doubler.rounds.length, 3);

  for (const _ of [1, 2]) await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10, 12]);
  assertEquals(doubler.rounds, [[1], [2], [3, 4], [5, 6]]);
});
