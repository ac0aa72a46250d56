import { assertEquals, assertRejects } from "@std/assert";
import { DAY, pause } from "../../src/base/time.ts";
import { type Build, CommitInDoubt } from "../../src/engine/backend.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../src/engine/deadline.ts";
import { FileBackend } from "../../src/engine/file.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { calmNetwork, fail, FakeKv, hang, locked, type Network } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

const DEADLINE = 100;
const ROW = ["row"];
const CHECK = [{ key: ROW, versionstamp: null }];
const setRow: Build = (operation) => operation.set(ROW, 1);

/** A file whose handles tests can disturb, in virtual time. */
class Fixture implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  /** What happens to commits, and to reads. */
  readonly network: Network = calmNetwork();
  readonly closed: string[] = [];
  readonly backend: FileBackend;
  clock: number = 10 * DAY;

  constructor() {
    const open = (name: string) =>
      Object.assign(this.kv.connect(this.network), { close: () => void this.closed.push(name) });
    const options = { clock: () => this.clock, deadline: DEADLINE };
    this.backend = new FileBackend(open("writer"), { ...options, reader: open("reader") });
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

Deno.test("FileBackend.commit() applies everything, or nothing and returns the checked rows, and writes no marker", async () => {
  using fixture = new Fixture();
  const { backend, kv } = fixture;
  const keys = Array.from({ length: 25 }, (_, row) => ["rows", row]);

  const applied = await backend.commit((operation) => {
    for (const key of keys.slice(0, 20)) operation.set(key, key[1]);
  }, CHECK);
  const refused = await backend.commit(setRow, keys.toReversed().map((key) => ({ key, versionstamp: null })));

  const versionstamp = applied.ok ? applied.versionstamp : "";
  const rows = keys.map((key) => Number(key[1]) < 20 ? { key, value: key[1], versionstamp } : null);
  assertEquals(refused, { ok: false, rows: rows.toReversed() });
  assertEquals(kv.rows.size, 20);
});

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

Deno.test("FileBackend.commit() is not in doubt if SQLite refuses it, or if it was not sent", async () => {
  using fixture = new Fixture();
  const { backend, network } = fixture;
  const notBuilt = () =>
    backend.commit(() => {
      throw new RangeError("not built");
    }, []);
  await assertRejects(notBuilt, RangeError, "not built");
  network.commit = fail;

  const error = await assertRejects(() => backend.commit(setRow, []), StoreUnavailable);

  assertEquals(error.name, "StoreUnavailable");
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

Deno.test("CommitInDoubt.findOut() on a file gives up when its caller does, at the latest after ten seconds", async () => {
  using fixture = new Fixture();
  const { time } = fixture;
  const { doubt } = await fixture.giveUp();
  for (const [mayWait, ms] of [[() => false, 500], [() => true, 10_500]] as const) {
    const start = time.now;
    await assertRejects(() => time.until(doubt.findOut(mayWait), 60_000), CommitInDoubt);
    assertEquals(time.now - start, ms);
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

  const second = backend.getMany([ROW]);

  await assertRejects(() => time.until(second, DEADLINE), DeadlineExceeded);
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

Deno.test("FileBackend.sweep() removes markers of other releases once they are a day old, and none that is set again", async () => {
  using fixture = new Fixture();
  const { backend, kv } = fixture;
  const lanes = Array.from({ length: 600 }, (_, lane) => lane);
  const marker = (lane: number, age: number) =>
    [["commits", "other", lane], encodeJson({ commit: 1, at: fixture.clock - age })] as const;
  await backend.commit((operation) => {
    for (const lane of lanes) operation.set(...marker(lane, lane < 550 ? DAY : DAY + 1));
  }, []);
  await backend.probe();
  fixture.network.commit = async (apply) => {
    fixture.network.commit = calmNetwork().commit;
    await kv.connect(calmNetwork()).atomic().set(...marker(550, 0)).commit();
    return apply();
  };

  const sweep = async () => [await backend.sweep(), kv.rows.size];

  assertEquals([await sweep(), await sweep()], [[true, 601], [false, 552]]);
  const left = [...kv.rows.values()].map(({ key }) => key[2]);
  assertEquals(left, [...lanes.slice(0, 551), undefined]);
});

/** Fails as SQLite does when a disk of this size has no room for a commit. */
function fits(bytes: number): Network["commit"] {
  return (apply, values) => {
    const sizes = values.map((value) => value instanceof Uint8Array ? value.length : 0);
    if (sizes.every((size) => size <= bytes)) return Promise.resolve(apply());
    return Promise.reject(new TypeError("database or disk is full"));
  };
}

Deno.test("FileBackend.probe() writes little, but after a write had no room, as much as the largest row", async () => {
  using fixture = new Fixture();
  const { backend, network, time } = fixture;
  const sizes: number[] = [];
  network.commit = (apply, values) => {
    for (const value of values) if (value instanceof Uint8Array) sizes.push(value.length);
    return fits(50_000)(apply, values);
  };
  for (let count = 0; count < 3; count++) await backend.probe();
  const large = backend.commit((operation) => operation.set(ROW, new Uint8Array(60_000)), []);
  await assertRejects(() => large, StoreUnavailable);

  for (let second = 0; second < 15; second++) {
    await assertRejects(() => backend.probe(), StoreUnavailable);
    // That there is room for a small row says nothing about larger ones.
    await backend.commit((operation) => operation.set(ROW, new Uint8Array(10)), []);
    await time.advance(1_000);
  }
  network.commit = calmNetwork().commit;
  await time.advance(10_000);
  for (let count = 0; count < 2; count++) await backend.probe();

  const probes = sizes.filter((size) => size !== 10 && size !== 60_000);
  assertEquals(probes.map((size) => size > 60_000), [false, false, false, true, true]);
});

Deno.test("FileBackend.probe() fails while commits hang or fail", async () => {
  using fixture = new Fixture();
  const { backend, network, time } = fixture;
  for (const commit of [fail, hang]) {
    network.commit = commit;
    await time.advance(10_000);
    await assertRejects(() => time.until(backend.probe(), DEADLINE), StoreUnavailable);
  }
});
