import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Build, CommitInDoubt, type CommitResult } from "../../../src/engine/backend.ts";
import { Connection } from "../../../src/engine/remote/connection.ts";
import { Markers } from "../../../src/engine/remote/markers.ts";
import { StoreUnavailable } from "../../../src/engine/deadline.ts";
import { HOUR, pause } from "../../../src/base/time.ts";
import { calmNetwork, fail, FakeKv, hang, locked, type Network } from "../../support/fake_kv.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

type Apply = Parameters<Network["commit"]>[0];

const ROW = ["row"];
const setRow: Build = (operation) => operation.set(ROW, 1);
const refuse: Build = (operation) => setRow(operation.check({ key: ROW, versionstamp: "none such" }));

/** Markers on a KV whose network a test can disturb, in virtual time. */
class Fixture implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly network: Network = calmNetwork();
  readonly markers: Markers;
  /** Whether the KV responds after a missed deadline. */
  reopens = true;
  /** The clock of the process, in ms since the epoch. */
  clock = 0;
  /** Commits that have not arrived. */
  readonly held: Apply[] = [];

  constructor() {
    const open = () => [this.kv.connect(this.network)];
    const reopen = () => this.reopens ? Promise.resolve(open()) : hang();
    const connection = new Connection(open(), { deadline: 250, reopen });
    this.markers = new Markers(connection, () => this.clock);
  }

  /** A fixture that has opened a lane. */
  static async warm(): Promise<Fixture> {
    const fixture = new Fixture();
    await fixture.commit(() => {});
    return fixture;
  }

  commit(build: Build, checks?: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    return this.markers.commit(build, checks);
  }

  /** Sets the fates of the next commits. Later ones arrive. */
  setFates(...fates: readonly (keyof typeof FATES)[]): void {
    const left = [...fates];
    this.network.commit = (apply) => FATES[left.shift() ?? "arrives"](apply, this);
  }

  /** Makes a commit that ends in doubt. */
  async giveUp(build: Build): Promise<CommitInDoubt> {
    return await assertRejects(() => this.time.until(this.commit(build), 1_000), CommitInDoubt);
  }

  /** Commits as another process. */
  async commitAsOther(build: Build): Promise<void> {
    const operation = this.kv.connect(calmNetwork()).atomic();
    build(operation);
    await operation.commit();
  }

  /** Removes every marker as another process. */
  async removeMarkers(): Promise<void> {
    const markers = [...this.kv.rows.values()].filter(({ key: [table] }) => table === "commits");
    await this.commitAsOther((operation) => markers.forEach(({ key }) => operation.delete(key)));
  }

  /** Version of the row; undefined if it does not exist. */
  get version(): string | undefined {
    return this.kv.rows.get(JSON.stringify(ROW))?.versionstamp;
  }

  /** Number of markers. */
  get count(): number {
    return [...this.kv.rows.values()].filter(({ key: [table] }) => table === "commits").length;
  }

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
  }
}

/** What the network does to a commit. */
const FATES = {
  "arrives": (apply: Apply) => Promise.resolve(apply()),
  "arrives twice": (apply: Apply) => (apply(), Promise.resolve(apply())),
  "is never answered": (apply: Apply) => (apply(), hang()),
  "never arrives": (apply: Apply, { held }: Fixture) => (held.push(apply), hang()),
  "arrives with the next": (apply: Apply, fixture: Fixture) => {
    const { commit } = fixture.network;
    fixture.network.commit = (...next) => (apply(), (fixture.network.commit = commit)(...next));
    return hang();
  },
} as const;

Deno.test("Markers.commit() applies everything, or applies nothing and returns the checked rows", async () => {
  using fixture = await Fixture.warm();
  const keys = Array.from({ length: 25 }, (_, row) => ["rows", row]);

  const applied = await fixture.commit((operation) => {
    for (const key of keys.slice(0, 20)) operation.set(key, key[1]);
  });
  const checks = keys.toReversed().map((key) => ({ key, versionstamp: null }));
  const refused = await fixture.commit(setRow, checks);

  assert(applied.ok && !refused.ok);
  assertEquals(fixture.version, undefined);
  const { versionstamp } = applied;
  const rows = keys.map((key) => Number(key[1]) < 20 ? { key, value: key[1], versionstamp } : null);
  assertEquals(refused.rows, rows.toReversed());
});

/** What changes a contested row right after a commit is sent, in ms, and how many reads that commit then needs. */
const CHANGES: readonly (readonly [what: string, at: number, isThere: boolean, reads: number])[] = [
  ["before it is read", 5, true, 1],
  ["after it is read", 15, true, 2],
  ["before it is read, if it did not exist", 5, false, 2],
];

for (const [what, at, isThere, reads] of CHANGES) {
  Deno.test(`Markers.commit() needs ${reads} reads if a contested row changes ${what}`, async () => {
    using fixture = await Fixture.warm();
    const { time, network, kv } = fixture;
    if (isThere) await fixture.commit(setRow);
    const { versionstamp = null } = kv.rows.get(JSON.stringify(ROW)) ?? {};
    let count = 0;
    network.read = () => (count++, pause(10));
    network.commit = async (apply) => (await pause(20), apply());

    const commit = fixture.commit(() => {}, [{ key: ROW, versionstamp }, ...checksOf(2)]);
    await time.advance(at);
    const other = await kv.connect(calmNetwork()).atomic().set(ROW, 7).commit();
    const refused = await time.until(commit, 100);

    assert(other.ok && !refused.ok);
    assertEquals(refused.rows, [{ key: ROW, value: 7, versionstamp: other.versionstamp }, null, null]);
    assertEquals(count, reads);
  });
}

/** Checks that rows do not exist. */
function checksOf(count: number): Deno.AtomicCheck[] {
  return Array.from({ length: count }, (_, row) => ({ key: ["rows", row], versionstamp: null }));
}

Deno.test("Markers.commit() reads three rows or more early, if they fit into one snapshot with its marker", async () => {
  using fixture = await Fixture.warm();
  const reads: number[] = [];
  for (const count of [2, 3, 9, 10]) {
    fixture.network.read = () => Promise.resolve(void reads.push(count));
    await fixture.commit(() => {}, checksOf(count));
  }

  assertEquals(reads, [3, 9]);
});

Deno.test("Markers.commit() is not deceived by an early read if a row appears before its commit and is gone again", async () => {
  using fixture = await Fixture.warm();
  const { time, network, kv } = fixture;
  const other = kv.connect(calmNetwork());
  network.read = () => pause(10);
  network.commit = async (apply) => {
    await other.atomic().set(ROW, 7).commit();
    await pause(20);
    await other.atomic().delete(ROW).commit();
    apply();
    return apply(); // The reply was lost, so the client repeats the commit.
  };

  const checks = [{ key: ROW, versionstamp: null }, ...checksOf(2)];
  const result = await time.until(fixture.commit(setRow, checks), 100);

  assertEquals(result.ok, true);
});

Deno.test("Markers.commit() returns the true result despite a wrong reply or an earlier marker", async () => {
  using fixture = await Fixture.warm();

  fixture.setFates("arrives twice");
  assertEquals(await fixture.commit(setRow), { ok: true, versionstamp: fixture.version ?? "" });
  const before = fixture.version;
  fixture.network.commit = () => Promise.resolve({ ok: false });
  assertEquals(await fixture.commit(setRow), { ok: false, rows: [] });
  assertEquals(fixture.version, before);
});

Deno.test("Markers.commit() is not in doubt about an unsent commit and keeps its lane", async () => {
  using fixture = await Fixture.warm();
  const build = () => {
    throw new RangeError("not built");
  };
  await assertRejects(() => fixture.commit(build), RangeError, "not built");
  fixture.network.commit = locked;
  let builds = 0;
  const locking = fixture.commit(() => builds++ > 0 && build());
  await assertRejects(() => fixture.time.until(locking, 1_000), RangeError, "not built");
  fixture.network.commit = calmNetwork().commit;
  fixture.network.read = hang;
  fixture.reopens = false;
  await fixture.giveUp(refuse);

  const error = await assertRejects(() => fixture.commit(setRow), StoreUnavailable);

  assertEquals(error.name, "StoreUnavailable");
});

Deno.test("Markers.commit() says that the file is locked if that does not end", async () => {
  using fixture = await Fixture.warm();
  fixture.network.commit = locked;

  const error = await assertRejects(
    () => fixture.time.until(fixture.commit(setRow), 10_000),
    StoreUnavailable,
  );

  assertEquals(error.logReason, "Another process has locked the file");
});

Deno.test.each(
  [
    [["never arrives"], false],
    [["is never answered"], true],
    [["arrives with the next"], true],
    [["never arrives", "arrives twice"], false],
    [["is never answered", "arrives twice"], true],
    [["never arrives", "never arrives"], false],
    [["never arrives", "is never answered"], false],
    [["never arrives", "arrives with the next"], false],
    [["is never answered", "never arrives"], true],
    [["never arrives", "arrives with the next", "never arrives"], false],
  ] as const,
)("CommitInDoubt.findOut() returns the final result (the commit, then its fences: %j)", async (fates, ok) => {
  using fixture = await Fixture.warm();
  fixture.setFates(...fates);
  const doubt = await fixture.giveUp(setRow);

  const result = await fixture.time.until(doubt.findOut(() => true), 10_000);

  const { version } = fixture;
  assertEquals(result, ok ? { ok, versionstamp: version ?? "" } : { ok, rows: [] });
  assertEquals(version !== undefined, ok);
  assertEquals(await doubt.findOut(() => false), result);
  assertEquals(fixture.held.map((apply) => apply().ok), fixture.held.map(() => false));
  assertEquals((await fixture.commit(refuse)).ok, false);
  assertEquals([fixture.version, fixture.count], [version, 1]);
});

Deno.test("Markers.commit() fences every commit in doubt and reuses its lane instead of opening one", async () => {
  using fixture = new Fixture();
  const commitMany = (count: number, build: Build) =>
    Array.from({ length: count }, () => fixture.commit(build));
  await Promise.all(commitMany(2, () => {}));
  fixture.setFates("never arrives", "never arrives");
  await fixture.time.until(Promise.allSettled(commitMany(2, setRow)), 1_000);

  const results = [await fixture.commit(() => {}), ...await Promise.all(commitMany(3, () => {}))];

  assertEquals(results.map(({ ok }) => ok), Array(4).fill(true));
  assertEquals(fixture.held.map((apply) => apply().ok), [false, false]);
  assertEquals([fixture.version, fixture.count], [undefined, 2]);
});

for (const [fate, disturb] of Object.entries({ fails: fail, hangs: hang })) {
  Deno.test(`Markers.commit() abandons no marker when one read in ten ${fate}`, async () => {
    using fixture = new Fixture();
    let reads = 0;
    fixture.network.read = () => reads++ % 10 === 5 && reads < 150 ? disturb() : Promise.resolve();

    for (let commit = 0; commit < 200; commit++) {
      await fixture.time.until(fixture.commit(refuse).catch(() => {}), 1_000);
    }

    assertEquals(fixture.count, 1);
  });

  Deno.test(`Markers.commit() abandons no marker when every read ${fate} while it opens its first lane`, async () => {
    using fixture = new Fixture();
    fixture.network.read = disturb;
    for (let commit = 0; commit < 10; commit++) {
      await fixture.time.until(fixture.commit(setRow).catch(() => {}), 1_000);
    }
    fixture.network.read = calmNetwork().read;

    assertEquals((await fixture.commit(setRow)).ok, true);
    assertEquals(fixture.count, 1);
  });
}

Deno.test("Markers.commit() opens a lane for each simultaneous commit and reuses lanes", async () => {
  using fixture = new Fixture();
  for (const [atOnce, count] of [[1, 1], [1, 1], [3, 3], [2, 3], [3, 3]] as const) {
    await Promise.all(Array.from({ length: atOnce }, () => fixture.commit(setRow)));

    assertEquals(fixture.count, count);
  }
});

Deno.test("CommitInDoubt.findOut() retries for ten seconds while a caller may wait", async () => {
  using fixture = await Fixture.warm();
  const { time, network } = fixture;
  fixture.setFates("is never answered");
  const doubt = await fixture.giveUp(setRow);
  network.commit = fail;

  const start = time.now;

  const error = await assertRejects(() => time.until(doubt.findOut(() => true), 60_000), CommitInDoubt);
  assertEquals([error === doubt, time.now - start], [true, 10_000]);
  const mayWait = () => time.now < start + 10_700;
  await assertRejects(() => time.until(doubt.findOut(mayWait), 60_000), CommitInDoubt);
  assertEquals(time.now - start, 11_000);
  const found = doubt.findOut(() => true);
  await time.advance(9_400);
  network.commit = calmNetwork().commit;
  assertEquals((await time.until(found, 500)).ok, true);
});

Deno.test("Markers.clear() removes the process's markers, so that no commit in doubt applies later", async () => {
  using fixture = new Fixture();
  const reopen = () => Promise.resolve([fixture.kv.connect()]);
  const other = new Markers(new Connection(await reopen(), { reopen }), () => 0);
  await Promise.all([1, 2].map(() => fixture.commit(() => {})));
  await other.commit(() => {});
  fixture.setFates("never arrives");
  await fixture.giveUp(setRow);

  await fixture.markers.clear();

  assertEquals(fixture.count, 1);
  assertEquals(fixture.held.map((apply) => apply().ok), [false]);
});

Deno.test("Markers.clear() tries again if another process has locked the file", async () => {
  using fixture = await Fixture.warm();
  fixture.network.commit = () => {
    fixture.network.commit = calmNetwork().commit;
    return locked();
  };

  await fixture.time.until(fixture.markers.clear(), 1_000);

  assertEquals(fixture.count, 0);
});

for (const [what, isRepeated, count] of [["sends", false, 0n], ["repeats", true, 1n]] as const) {
  Deno.test(`Markers.commit() stays in doubt if another process removes its marker before the client ${what} it`, async () => {
    using fixture = await Fixture.warm();
    const { network, time, kv } = fixture;
    network.commit = async (apply) => {
      network.commit = calmNetwork().commit;
      if (isRepeated) apply(); // The reply is lost.
      await fixture.removeMarkers();
      return apply();
    };
    const add: Build = (operation) => operation.sum(["count"], 1n);

    const doubt = await assertRejects(() => time.until(fixture.commit(add), 1_000), CommitInDoubt);

    const start = time.now;
    await assertRejects(() => time.until(doubt.findOut(() => true), 60_000), CommitInDoubt);
    assertEquals(time.now - start, 0); // It will never be known.
    assertEquals(kv.value("count") ?? new Deno.KvU64(0n), new Deno.KvU64(count));
    assertEquals((await fixture.commit(add)).ok, true);
    assertEquals(kv.value("count"), new Deno.KvU64(count + 1n));
    assertEquals(fixture.count, 1);
  });
}

Deno.test("CommitInDoubt.findOut() is not deceived if its lane was opened again by a late repetition", async () => {
  using fixture = await Fixture.warm();
  const [open] = fixture.kv.repetitions;
  fixture.setFates("is never answered");
  const doubt = await fixture.giveUp(setRow);
  await fixture.removeMarkers();
  assertEquals(open?.().ok, true);

  await assertRejects(() => doubt.findOut(() => true), CommitInDoubt);
});

Deno.test("Markers.commit() uses a new lane at once if the fence of a commit in doubt finds no marker", async () => {
  using fixture = await Fixture.warm();
  fixture.setFates("never arrives");
  await fixture.giveUp(setRow);
  await fixture.removeMarkers();

  const result = await fixture.commit(refuse);

  assertEquals([result.ok, fixture.count, fixture.version], [false, 1, undefined]);
  assertEquals(fixture.held.map((apply) => apply().ok), [false]);
});

for (const [when, hours] of [["later", 13], ["earlier", -13]] as const) {
  Deno.test(`Markers.commit() opens its lane again if the clock is half a day ${when} than the marker`, async () => {
    using fixture = await Fixture.warm();
    fixture.clock += hours * HOUR;
    assertEquals((await fixture.commit(setRow)).ok, true);
    await fixture.removeMarkers();
    fixture.clock += hours * HOUR;

    assertEquals((await fixture.commit(setRow)).ok, true);
    assertEquals((await fixture.commit(refuse)).ok, false);

    assertEquals(fixture.count, 1);
  });
}

Deno.test("Markers.commit() reopens no lane whose marker is set more often than that", async () => {
  using fixture = new Fixture();
  fixture.clock = NOON;
  let reads = 0;
  fixture.network.read = () => Promise.resolve(void reads++);

  for (let count = 0; count < 4; count++) await fixture.commit(refuse);
  assertEquals(reads, 4);
  for (let count = 0; count < 4; count++) {
    fixture.clock += 11 * HOUR;
    await fixture.commit(setRow);
  }

  assertEquals(reads, 4);
});

Deno.test("Markers.commit() sends no commit that could apply again after Markers.clear()", async () => {
  using fixture = new Fixture();
  await Promise.all([1, 2].map(() => fixture.commit(setRow)));
  await fixture.commit(setRow);
  const { version } = fixture;

  await fixture.markers.clear();
  for (const repeat of [...fixture.kv.repetitions]) repeat();

  assertEquals(fixture.version, version);
});
