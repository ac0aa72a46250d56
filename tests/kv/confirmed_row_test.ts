import { assert, assertEquals, assertRejects } from "@std/assert";
import { ConfirmedRow } from "../../src/kv/confirmed_row.ts";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { Store } from "../../src/kv/store.ts";
import { carryOut, type Commit, type Disturbance, disturbed } from "./disturbed_kv.ts";

const KEY = ["row"];

/** A confirmed row on a KV that somebody else writes to as well. */
class Fixture implements Disposable {
  /** Comes before a read. */
  read: () => Promise<void> | void = () => {};
  /** Comes in place of a commit. */
  commit: NonNullable<Disturbance["commit"]> = carryOut;
  readonly row: ConfirmedRow<number>;
  reads = 0;
  readonly commits: Commit[] = [];
  readonly #kv: Deno.Kv;

  constructor(kv: Deno.Kv) {
    this.#kv = kv;
    const store = new Store(
      disturbed(kv, {
        read: () => (this.reads++, this.read()),
        commit: (commit) => (this.commits.push(commit), this.commit(commit)),
      }),
      { maxChecks: 10 },
    );
    this.row = new ConfirmedRow(store, KEY);
  }

  static async open(): Promise<Fixture> {
    return new Fixture(await Deno.openKv(":memory:"));
  }

  /** A fixture whose row was seen so often that commits confirm it. */
  static async steady(): Promise<Fixture> {
    const fixture = await Fixture.open();
    for (let count = 0; count < 20; count++) await fixture.row.get(fixture.row.moment);
    fixture.reads = 0;
    return fixture;
  }

  /** Changes the row behind its back. */
  async change(value: number): Promise<void> {
    await this.#kv.set(KEY, value);
  }

  /** Commits another row through this one, unless it is there already. */
  take(): Promise<string | undefined> {
    return this.row.commit("take", (operation) => {
      operation.check({ key: ["taken"], versionstamp: null }).set(["taken"], true);
    });
  }

  async isTaken(): Promise<boolean> {
    return (await this.#kv.get(["taken"])).versionstamp !== null;
  }

  [Symbol.dispose](): void {
    this.#kv.close();
  }
}

Deno.test("get() reads the row as it is after the moment, once for all who ask at once", async () => {
  using fixture = await Fixture.open();
  const { row } = fixture;

  assertEquals(await row.get(row.moment), null);
  for (let value = 1; value <= 40; value++) {
    await fixture.change(value);
    const { moment } = row;
    const entries = await Promise.all(Array.from({ length: 5 }, () => row.get(moment)));
    assertEquals(entries.map((entry) => entry?.value), new Array(5).fill(value));
    assertEquals((await row.get(moment))?.value, value);
  }

  assertEquals(fixture.reads, 41);
});

Deno.test("get() does not read what a commit has confirmed since the moment", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  const { moment } = row;

  await fixture.take();

  assertEquals(await row.get(moment), null);
  assertEquals(fixture.reads, 0);
  await row.get(row.moment);
  assertEquals(fixture.reads, 1);
});

Deno.test("get() reads after a commit while the row is not known to be steady", async () => {
  using fixture = await Fixture.open();
  const { row } = fixture;
  for (let value = 1; value <= 40; value++) {
    await fixture.change(value);
    for (let count = 0; count < 10; count++) await row.get(row.moment);
  }
  fixture.reads = 0;

  const { moment } = row;
  await fixture.take();
  await row.get(moment);

  assertEquals(fixture.reads, 1);
  assertEquals(fixture.commits.map(({ checks }) => checks), [1]);
});

Deno.test("commit() is not held up when the row has changed, and get() has the change", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  await fixture.change(7);
  const { moment } = row;

  await fixture.take();

  assert(await fixture.isTaken());
  assertEquals((await row.get(moment))?.value, 7);
  assertEquals(fixture.commits.map(({ checks }) => checks), [2, 1]);
});

Deno.test("commit() is refused when a check of its own fails, whether or not the row has changed", async () => {
  for (const changed of [false, true]) {
    using fixture = await Fixture.steady();
    assert(await fixture.take() !== undefined);
    if (changed) await fixture.change(7);

    fixture.commits.length = 0;

    assertEquals(await fixture.take(), undefined);

    assertEquals(fixture.commits.map(({ checks }) => checks), changed ? [2, 1] : [2]);
  }
});

Deno.test("commit() confirms the row when it applied and its reply was lost", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  const { moment } = row;
  fixture.commit = async ({ apply }) => (await apply(), await apply());

  await fixture.take();

  assert(await fixture.isTaken());
  fixture.reads = 0;
  assertEquals(await row.get(moment), null);
  assertEquals(fixture.reads, 0);
});

Deno.test("commit() confirms nothing when it fails", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  const { moment } = row;
  fixture.commit = () => Promise.reject(new TypeError("disk I/O error"));

  await assertRejects(() => fixture.take(), StoreUnavailable);

  fixture.commit = carryOut;
  await fixture.change(7);
  assertEquals((await row.get(moment))?.value, 7);
});

Deno.test("get() reads when a commit that was under way at the moment has confirmed the row", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  let moment = 0;
  fixture.commit = async ({ apply }) => {
    const result = await apply();
    await fixture.change(7);
    moment = row.moment;
    return result;
  };

  await fixture.take();

  assertEquals((await row.get(moment))?.value, 7);
});

Deno.test("get() keeps what a later commit has confirmed when an earlier read comes in after it", async () => {
  using fixture = await Fixture.steady();
  const { row } = fixture;
  const started = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  fixture.read = () => (started.resolve(), held.promise);
  const earlier = row.get(row.moment);
  await started.promise;
  const { moment } = row;

  await fixture.take();
  await fixture.change(7);
  held.resolve();

  assertEquals((await earlier)?.value, 7);
  assertEquals(await row.get(moment), null);
  assertEquals((await row.get(row.moment))?.value, 7);
});
