import { assertEquals, assertRejects } from "@std/assert";
import { type Build, CommitInDoubt, type CommitResult } from "../../../src/engine/backend.ts";
import { StoreUnavailable } from "../../../src/engine/deadline.ts";
import { RemoteBackend } from "../../../src/engine/remote/remote.ts";
import { DAY, HOUR, pause } from "../../../src/base/time.ts";
import { calmNetwork, fail, FakeKv, hang, type Network } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";
import { testBackend } from "../backend_rules.ts";
import { onServer } from "./server.ts";

type Apply = Parameters<Network["commit"]>[0];

const ROW = ["row"];
const setRow: Build = (operation) => operation.set(ROW, 1);
const addOne: Build = (operation) => operation.sum(["count"], 1n);
const refuse: Build = (operation, stamp) =>
  setRow(operation.check({ key: ROW, versionstamp: "none such" }), stamp);

testBackend("RemoteBackend", onServer);

/** A backend on a server whose network a test can disturb, in virtual time. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly network: Network = calmNetwork();
  readonly backend: RemoteBackend;
  /** Whether the KV responds after a missed deadline. */
  reopens = true;
  /** The clock of the process, in ms since the epoch. */
  clock = 100 * DAY;
  /** Commits that have not arrived. */
  readonly held: Apply[] = [];

  constructor() {
    const open = () => [this.kv.connect(this.network)];
    const reopen = () => this.reopens ? Promise.resolve(open()) : hang();
    this.backend = new RemoteBackend(open(), { clock: () => this.clock, deadline: 250, reopen });
  }

  /** A fixture that has opened a lane. */
  static async warm(): Promise<Fixture> {
    const fixture = new Fixture();
    await fixture.commit(() => {});
    return fixture;
  }

  commit(build: Build, checks: readonly Deno.AtomicCheck[] = []): Promise<CommitResult> {
    return this.backend.commit(build, checks);
  }

  commitMany(count: number, build: Build): Promise<CommitResult>[] {
    return Array.from({ length: count }, () => this.commit(build));
  }

  /** Sets the fates of the next commits. Later ones arrive. */
  setFates(...fates: readonly (keyof typeof FATES)[]): void {
    const left = [...fates];
    this.network.commit = (apply) => FATES[left.shift() ?? "arrives"](apply, this);
  }

  /** Makes a commit that ends in doubt. */
  async giveUp(build: Build = setRow): Promise<CommitInDoubt> {
    return await assertRejects(() => this.time.until(this.commit(build), 1_000), CommitInDoubt);
  }

  /** Commits as another process. */
  async commitAsOther(build: Build): Promise<void> {
    const kv = this.kv.connect();
    const operation = kv.atomic();
    build(operation, kv.commitVersionstamp());
    await operation.commit();
  }

  /** Removes every marker as another process. */
  removeMarkers(): Promise<void> {
    const markers = [...this.kv.rows.values()].filter(({ key: [table] }) => table === "commits");
    return this.commitAsOther((operation) => markers.forEach(({ key }) => operation.delete(key)));
  }

  /** Version of the row; undefined if it does not exist. */
  get version(): string | undefined {
    return this.kv.rows.get(JSON.stringify(ROW))?.versionstamp;
  }

  /** Number of markers. */
  get markers(): number {
    return [...this.kv.rows.values()].filter(({ key: [table] }) => table === "commits").length;
  }

  /** Lets the commits arrive that have not. Returns whether they apply. */
  release(): boolean[] {
    return this.held.map((apply) => apply().ok);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.time[Symbol.asyncDispose]();
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
  "is refused": () => Promise.resolve({ ok: false } as const),
} as const;

/** Checks that rows do not exist. */
function checksOf(count: number): Deno.AtomicCheck[] {
  return Array.from({ length: count }, (_, row) => ({ key: ["rows", row], versionstamp: null }));
}

Deno.test("RemoteBackend.commit() reads contested rows while it is under way", async () => {
  await using fixture = await Fixture.warm();
  const { time, network } = fixture;
  await fixture.commit(setRow);
  const { version = "" } = fixture;
  await fixture.commit(setRow);
  network.read = () => pause(10);
  network.commit = async (apply) => (await pause(20), apply());

  const result = await time.until(
    fixture.commit(() => {}, [{ key: ROW, versionstamp: version }, ...checksOf(2)]),
    100,
  );

  const row = { key: ROW, value: 1, versionstamp: fixture.version ?? "" };
  assertEquals([result, time.now], [{ ok: false, rows: [row, null, null] }, 20]);
});

Deno.test("RemoteBackend.commit() is not deceived by an early read if a row appears before its commit and is gone again", async () => {
  await using fixture = await Fixture.warm();
  const { time, network } = fixture;
  network.read = () => pause(10);
  network.commit = async (apply) => {
    await fixture.commitAsOther((operation) => operation.set(ROW, 7));
    await pause(20);
    await fixture.commitAsOther((operation) => operation.delete(ROW));
    apply();
    return apply(); // The reply was lost, so the client repeats the commit.
  };

  const checks = [{ key: ROW, versionstamp: null }, ...checksOf(2)];

  assertEquals((await time.until(fixture.commit(setRow, checks), 100)).ok, true);
});

Deno.test("RemoteBackend.commit() returns the true result despite a wrong reply or an earlier marker", async () => {
  await using fixture = await Fixture.warm();

  fixture.setFates("arrives twice", "is refused");
  assertEquals(await fixture.commit(setRow), { ok: true, versionstamp: fixture.version ?? "" });
  const before = fixture.version;
  assertEquals(await fixture.commit(setRow), { ok: false, rows: [] });
  assertEquals(fixture.version, before);
});

Deno.test("RemoteBackend.commit() frees the lane of a commit that cannot be built, and is not in doubt without a lane", async () => {
  await using fixture = await Fixture.warm();
  const notBuilt = () => {
    throw new RangeError("not built");
  };
  await assertRejects(() => fixture.commit(notBuilt), RangeError);
  assertEquals([(await fixture.commit(setRow)).ok, fixture.markers], [true, 1]);
  fixture.network.read = hang;
  fixture.reopens = false;
  await fixture.giveUp(refuse);

  const error = await assertRejects(() => fixture.commit(setRow), StoreUnavailable);

  assertEquals(error.name, "StoreUnavailable");
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
    [["never arrives", "is refused"], false],
  ] as const,
)("CommitInDoubt.findOut() returns the final result (the commit, then its fences: %j)", async (fates, ok) => {
  await using fixture = await Fixture.warm();
  fixture.setFates(...fates);
  const doubt = await fixture.giveUp();

  const result = await fixture.time.until(doubt.findOut(() => true), 10_000);

  const { version } = fixture;
  assertEquals(result, ok ? { ok, versionstamp: version ?? "" } : { ok, rows: [] });
  assertEquals(version !== undefined, ok);
  assertEquals(await doubt.findOut(() => false), result);
  assertEquals(fixture.release(), fixture.held.map(() => false));
  assertEquals((await fixture.commit(refuse)).ok, false);
  assertEquals([fixture.version, fixture.markers], [version, 1]);
});

Deno.test("CommitInDoubt.findOut() does not know the result if KV refuses the fence for no reason", async () => {
  await using fixture = await Fixture.warm();
  fixture.setFates("never arrives", "is refused");
  const doubt = await fixture.giveUp();

  await assertRejects(() => doubt.findOut(() => false), CommitInDoubt);

  assertEquals([fixture.release(), (await doubt.findOut(() => false)).ok], [[true], true]);
});

Deno.test("RemoteBackend.commit() fences every commit in doubt and reuses its lane instead of opening one", async () => {
  await using fixture = new Fixture();
  await Promise.all(fixture.commitMany(2, () => {}));
  fixture.setFates("never arrives", "never arrives");
  await fixture.time.until(Promise.allSettled(fixture.commitMany(2, setRow)), 1_000);

  const results = [await fixture.commit(() => {}), ...await Promise.all(fixture.commitMany(3, () => {}))];

  assertEquals(results.map(({ ok }) => ok), Array(4).fill(true));
  assertEquals(fixture.release(), [false, false]);
  assertEquals([fixture.version, fixture.markers], [undefined, 2]);
});

Deno.test("RemoteBackend.commit() abandons no marker if a read fails while it opens a lane", async () => {
  await using fixture = new Fixture();
  fixture.network.read = fail;
  fixture.setFates("arrives twice");
  await assertRejects(() => fixture.commit(setRow), StoreUnavailable);
  fixture.network.read = calmNetwork().read;

  assertEquals([(await fixture.commit(setRow)).ok, fixture.markers], [true, 1]);
});

Deno.test.each([["sends", false, 0n], ["repeats", true, 1n]] as const)(
  "RemoteBackend.commit() stays in doubt if another process removes its marker before the client %s it",
  async (_, isRepeated, count) => {
    await using fixture = await Fixture.warm();
    const { network, time, kv } = fixture;
    network.commit = async (apply) => {
      network.commit = calmNetwork().commit;
      if (isRepeated) apply(); // The reply is lost.
      await fixture.removeMarkers();
      return apply();
    };

    const doubt = await fixture.giveUp(addOne);

    const start = time.now;
    await assertRejects(() => time.until(doubt.findOut(() => true), 60_000), CommitInDoubt);
    assertEquals(time.now - start, 0); // It will never be known.
    assertEquals(kv.value("count") ?? new Deno.KvU64(0n), new Deno.KvU64(count));
    assertEquals((await fixture.commit(addOne)).ok, true);
    assertEquals(kv.value("count"), new Deno.KvU64(count + 1n));
    assertEquals(fixture.markers, 1);
  },
);

Deno.test("CommitInDoubt.findOut() is not deceived if its lane was opened again by a late repetition", async () => {
  await using fixture = await Fixture.warm();
  const [open] = fixture.kv.repetitions;
  fixture.setFates("is never answered");
  const doubt = await fixture.giveUp();
  await fixture.removeMarkers();
  assertEquals(open?.().ok, true);

  await assertRejects(() => doubt.findOut(() => true), CommitInDoubt);
});

Deno.test.each([["later", 13], ["earlier", -13]])(
  "RemoteBackend.commit() opens its lane again if the clock is half a day %s than the marker",
  async (_, hours) => {
    await using fixture = await Fixture.warm();
    let reads = 0;
    fixture.network.read = () => Promise.resolve(void reads++);
    for (let count = 0; count < 4; count++) {
      fixture.clock += hours / 13 * 11 * HOUR;
      await fixture.commit(setRow);
    }
    assertEquals(reads, 0, "Its marker was never older than that");

    fixture.clock += hours * HOUR;
    assertEquals((await fixture.commit(setRow)).ok, true);
    await fixture.removeMarkers();
    fixture.clock += hours * HOUR;

    assertEquals((await fixture.commit(setRow)).ok, true);
    assertEquals((await fixture.commit(refuse)).ok, false);
    assertEquals(fixture.markers, 1);
  },
);

Deno.test("RemoteBackend.sweep() keeps its own process's markers, even if the process was suspended for a day", async () => {
  await using fixture = await Fixture.warm();
  fixture.network.commit = async (apply) => {
    fixture.network.commit = calmNetwork().commit;
    apply();
    fixture.clock += DAY + 1;
    await fixture.backend.sweep();
    return apply(); // The reply was lost, so the client repeats the commit.
  };

  assertEquals((await fixture.commit(addOne)).ok, true);
  assertEquals(fixture.kv.value("count"), new Deno.KvU64(1n));
});

Deno.test("RemoteBackend.close() removes its own markers, and no commit applies later", async () => {
  await using fixture = new Fixture();
  await Promise.all(fixture.commitMany(2, addOne));
  await fixture.commit((operation) => operation.set(["commits", "other", 1], 1));
  fixture.setFates("never arrives");
  await fixture.giveUp();

  await fixture.backend.close();
  for (const repeat of [...fixture.kv.repetitions]) repeat();

  assertEquals(fixture.release(), [false]);
  assertEquals([...fixture.kv.rows.values()].map(({ key }) => key), [["count"], ["commits", "other", 1]]);
  assertEquals(fixture.kv.value("count"), new Deno.KvU64(2n));
});
