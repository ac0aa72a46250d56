import { assertEquals, assertRejects } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { type Build, CommitInDoubt } from "../../src/engine/backend.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../src/engine/deadline.ts";
import { FileBackend } from "../../src/engine/file.ts";
import { calmNetwork, fail, FakeKv, locked, type Network, onFile } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";
import { testBackend } from "./backend_rules.ts";

const DEADLINE = 100;
const ROW = ["row"];
const CHECK = [{ key: ROW, versionstamp: null }];
const setRow: Build = (operation) => operation.set(ROW, 1);

testBackend("FileBackend", onFile);

/** A file whose handles tests can disturb, in virtual time. */
class Fixture implements Disposable {
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

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
  }
}

Deno.test("FileBackend.commit() builds a commit again while another process has locked the file", async () => {
  using fixture = new Fixture();
  const { backend, network, time, kv } = fixture;
  let builds = 0;
  network.commit = (apply) => builds < 3 ? locked() : Promise.resolve(apply());

  const { ok } = await time.until(backend.commit((operation) => (builds++, setRow(operation)), CHECK), 1_000);
  network.commit = locked;
  const late = backend.commit((operation) => operation.set(["late"], 1), []);

  await assertRejects(() => time.until(late, 20_000), StoreUnavailable, "locked");
  assertEquals([ok, builds, kv.value("late")], [true, 3, undefined]);
});

for (const [how, ok] of [["applies", true], ["fails", false]] as const) {
  Deno.test(`CommitInDoubt.findOut() on a file waits until its commit ${how}`, async () => {
    using fixture = new Fixture();
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
  using time = new VirtualTime();
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
  using fixture = new Fixture();
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
  using fixture = new Fixture();
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
  using fixture = new Fixture();
  const { backend, time, network } = fixture;
  network.read = () => pause(DEADLINE + 60);
  const first = assertRejects(() => backend.getMany([ROW]), DeadlineExceeded);
  await time.advance(DEADLINE);
  await first;

  await assertRejects(() => time.until(backend.getMany([ROW]), DEADLINE), DeadlineExceeded);
});

Deno.test("FileBackend.close() closes its handles, except one on which an operation hangs", async () => {
  using fixture = new Fixture();
  const { end } = await fixture.giveUp();

  await fixture.backend.close();
  assertEquals(fixture.closed, ["reader"]);
  end("applies");
  await fixture.time.advance(0);
  await fixture.backend.close();

  assertEquals(fixture.closed, ["reader", "reader", "writer"]);
});

Deno.test("FileBackend.probe() writes little, but after a write had no room, as much as the largest row", async () => {
  using fixture = new Fixture();
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
