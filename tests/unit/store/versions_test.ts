import { DatabaseSync } from "node:sqlite";
import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { Connection } from "../../../src/kv/connection.ts";
import { pause, StoreUnavailable } from "../../../src/kv/deadline.ts";
import { openFileState } from "../../../src/kv/file.ts";
import { Store } from "../../../src/kv/store.ts";
import {
  noteVersion,
  Outdated,
  VersionCheck,
  type VersionRow,
  Versions,
} from "../../../src/store/versions.ts";
import { calmNetwork, disturbed, fail, FakeKv } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";

/** Two watched rows, one of which somebody else changes, under virtual time. */
class Fixture implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly versions: Versions;
  readonly row: VersionRow;
  readonly none: VersionRow;
  /** How long a read takes, in ms. */
  latency = 0;
  isBroken = false;
  reads = 0;
  /** Reads on their way, now and at most. */
  reading = 0;
  mostReading = 0;

  constructor(maxStalenessMs?: number) {
    const read = async () => {
      this.reads++;
      this.mostReading = Math.max(this.mostReading, ++this.reading);
      await pause(this.latency);
      this.reading--;
      if (this.isBroken) await fail();
    };
    const connection = new Connection([this.kv.connect({ ...calmNetwork(), read })]);
    const store = new Store(connection, { maxChecks: 10, clock: () => 0 });
    this.versions = new Versions(store, maxStalenessMs);
    this.none = this.versions.watch(["none"]);
    this.row = this.versions.watch(["row"]);
  }

  /** Somebody else's commit: gives the row's version. */
  async change(): Promise<string> {
    const result = await this.kv.connect().atomic().set(["row"], 1).commit();
    return result.ok ? result.versionstamp : "";
  }

  /** Looks, and lets so much time pass for it at most. */
  async look(ms: number): Promise<void> {
    await this.time.until(Promise.resolve(this.versions.check()), ms);
  }

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
  }
}

Deno.test("Versions.check() shows every watched row as it is then, by one read for all calls at once", async () => {
  using fixture = new Fixture();
  const { versions, row, none } = fixture;
  for (let round = 1; round <= 3; round++) {
    const version = await fixture.change();

    await fixture.time.until(Promise.all(Array.from({ length: 50 }, () => versions.check())), 10);

    assertEquals([row.version, none.version, fixture.reads], [version, "", round]);
  }
});

Deno.test("Versions.check() is not content with a read that started before", async () => {
  for (const latency of [0, 100]) {
    using fixture = new Fixture();
    fixture.latency = latency;
    for (let count = 0; count < 8; count++) await fixture.look(500);
    const reads = fixture.reads;
    fixture.latency = 100;
    const early = fixture.versions.check();
    await fixture.time.advance(50);
    const late = [fixture.versions.check(), fixture.versions.check()];
    await fixture.time.until(Promise.resolve(early), 100);
    const version = await fixture.change();
    await fixture.time.until(Promise.all(late), 200);

    assertEquals([fixture.row.version, fixture.reads - reads], [version, 2]);
  }
});

Deno.test.each([[1, 1], [100, 10]])(
  "Versions has reads of %i ms on their way up to %i at a time",
  async (latency, most) => {
    using fixture = new Fixture();
    fixture.latency = latency;
    for (let count = 0; count < 8; count++) await fixture.look(500);
    fixture.mostReading = 0;

    for (let count = 0; count < 100; count++) {
      fixture.versions.check();
      await fixture.time.advance(latency / 20);
    }

    assertEquals(fixture.mostReading, most);
    await fixture.time.advance(500);
  },
);

Deno.test("Versions.check() lowers no version that is known, and noteVersion() neither", async () => {
  using fixture = new Fixture();
  const version = await fixture.change();
  noteVersion(fixture.row, `${version}1`);

  await fixture.look(10);
  noteVersion(fixture.row, version);

  assertEquals(fixture.row.version, `${version}1`);
});

Deno.test("Versions.check() fails for all who wait when the read does, and for nobody after", async () => {
  using fixture = new Fixture();
  fixture.isBroken = true;
  const looks = [fixture.versions.check(), fixture.versions.check()].map((look) =>
    assertRejects(() => Promise.resolve(look), StoreUnavailable)
  );
  await fixture.time.until(Promise.all(looks), 10);
  fixture.isBroken = false;

  const version = await fixture.change();
  await fixture.look(10);

  assertEquals(fixture.row.version, version);
});

Deno.test("Versions.check() waits for nothing while a look is young enough, and takes another in the background", async () => {
  using fixture = new Fixture(1_000);
  const { versions, row, time } = fixture;
  fixture.latency = 200;
  await fixture.look(300);
  const version = await fixture.change();

  await time.advance(300);
  assertEquals([versions.check(), fixture.reads, row.version], [undefined, 1, ""]);
  await time.advance(1);
  assertEquals([versions.check(), versions.check()], [undefined, undefined]);
  await time.advance(201);
  assertEquals([fixture.reads, row.version], [2, version]);
  await time.advance(799);
  assertEquals(versions.check() === undefined, true);
  await time.advance(1_500);
  assertEquals(versions.check() instanceof Promise, true);
  await time.advance(300);
});

Deno.test("Versions.check() takes one look at a time in the background, however many ask meanwhile", async () => {
  using fixture = new Fixture(1_000);
  const { versions, time } = fixture;
  fixture.latency = 200;
  await fixture.look(300);

  for (let ms = 0; ms < 5_000; ms += 10) {
    assertEquals(versions.check(), undefined);
    await time.advance(10);
  }

  // One every 510 ms, when somebody asked after half of the time, and the first.
  assertEquals([fixture.reads, fixture.mostReading], [11, 1]);
  await time.advance(500);
});

Deno.test("Versions.check() fails only once no look is young enough, when reads fail in the background", async () => {
  using fixture = new Fixture(1_000);
  const { versions, time } = fixture;
  await fixture.look(10);
  fixture.isBroken = true;

  await time.advance(600);
  for (let count = 0; count < 3; count++) {
    assertEquals(versions.check(), undefined);
    await time.advance(100);
  }
  assertEquals(fixture.reads, 4);
  await time.advance(200);
  await assertRejects(() => fixture.look(10), StoreUnavailable);
});

Deno.test("Versions.confirm() is content with what held at that time or later, and else has the rows read", async () => {
  using fixture = new Fixture();
  const { versions, row, time } = fixture;
  const check = new VersionCheck(row);
  check.noteHeld(10);
  await fixture.change();

  await versions.confirm(check, 10);
  assertEquals(fixture.reads, 0);

  await time.until(assertRejects(() => versions.confirm(check, 11), Outdated), 1_000);
  assertEquals(fixture.reads, 1);
});

Deno.test("Versions.check() reads the rows of a file only when somebody has committed something", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/animals.kv`;
  const kv = await Deno.openKv(path);
  const other = await Deno.openKv(path);
  const file = await openFileState(path);
  assertEquals(typeof file?.version(), "number");
  assertEquals(await openFileState(`${folder}/none.kv`), undefined);
  let reads = 0;
  let onRead = () => {};
  const counted = disturbed(kv, { read: () => (reads++, onRead()) });
  const store = new Store(new Connection([counted], { file }), { maxChecks: 100, clock: () => 0 });
  const versions = new Versions(store);
  const row = versions.watch(["row"]);
  const changed = async (handle: Deno.Kv, key: string) => (await handle.set([key], 1)).versionstamp;

  await versions.check();
  await versions.check();
  assertEquals([row.version, reads], ["", 1]);
  for (const handle of [other, kv]) {
    const version = await changed(handle, "row");
    await versions.check();
    await versions.check();
    assertEquals(row.version, version);
  }
  await changed(other, "elsewhere");
  await versions.check();
  assertEquals(reads, 4);
  const late = versions.watch(["elsewhere"]);
  await versions.check();
  assertEquals([late.version > row.version, reads], [true, 5]);
  await changed(other, "last");
  let last: VersionRow | undefined;
  onRead = () => void (last ??= versions.watch(["last"]));
  await versions.check();
  await versions.check();
  assertEquals([(last?.version ?? "") > late.version, reads], [true, 7]);

  await store.close();
  assertEquals(file?.version(), undefined);
  other.close();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("openFileState() tells of a file without waiting for anybody who locks it", async () => {
  const path = await Deno.makeTempFile();
  using database = new DatabaseSync(path);
  database.exec("CREATE TABLE kv (k)");
  const file = await openFileState(path);
  assertEquals(typeof file?.version(), "number");

  database.exec("BEGIN EXCLUSIVE");
  const started = performance.now();
  assertEquals([file?.version(), file?.size()], [undefined, undefined]);
  assertLess(performance.now() - started, 1_000);

  database.exec("COMMIT");
  assertEquals([typeof file?.version(), typeof file?.size()], ["number", "number"]);
  file?.close();
  await Deno.remove(path);
});
