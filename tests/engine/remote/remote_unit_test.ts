import { assert, assertEquals, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../../src/engine/deadline.ts";
import { encodeJson } from "../../../src/engine/row.ts";
import { Store } from "../../../src/engine/store.ts";
import { DAY } from "../../../src/base/time.ts";
import { carryOut, type Disturbance, disturbed, fail, FakeKv } from "../../support/fake_kv.ts";
import { onServer } from "./server.ts";

/** A store on a server that tests can disturb. */
class Fixture {
  readonly fake: FakeKv = new FakeKv();
  readonly kv: Deno.Kv = this.fake.connect();
  now: number = 100 * DAY;
  disturbance: Disturbance = {};
  readonly store: Store = this.open();

  /** Another process. */
  open(): Store {
    const kv = disturbed(this.fake.connect(), {
      commit: (commit) => (this.disturbance.commit ?? carryOut)(commit),
    });
    return new Store(onServer(kv, { clock: () => this.now }));
  }

  /** Processes and numbers of the remaining markers. */
  get marks(): Deno.KvKeyPart[][] {
    const keys = [...this.fake.rows.values()].map(({ key }) => key);
    return keys.filter(([table]) => table === "commits").map((key) => key.slice(1)).sort();
  }
}

Deno.test("RemoteBackend.sweep() removes day-old markers of killed processes, as many as one commit can check", async () => {
  const fixture = new Fixture();
  const { fake, store } = fixture;
  const setMark = (process: string, lane: number, at: number) =>
    fake.connect().atomic().set(["commits", process, lane], encodeJson({ commit: 1, at })).commit();
  for (let lane = 0; lane < 600; lane++) await setMark("living", lane, fixture.now);
  const ages = [...Array(11).fill(DAY + 1), DAY, -DAY];
  for (const [lane, age] of ages.entries()) await setMark("other", lane, fixture.now - age);

  assertEquals([await store.sweep(), await store.sweep(), await store.sweep()], [true, false, false]);

  const others = fixture.marks.filter(([process]) => process === "other");
  assertEquals(others, [["other", 11], ["other", 12]]);
});

Deno.test("RemoteBackend.sweep() keeps its own process's markers, even if the process was suspended for a day", async () => {
  const fixture = new Fixture();
  await fixture.store.commit(() => {});
  let isFirst = true;
  fixture.disturbance = {
    async commit({ apply }) {
      const result = await apply();
      if (!isFirst) return result;
      isFirst = false;
      fixture.now += DAY + 1;
      await fixture.store.sweep();
      // The reply was lost, so the client repeats the commit.
      return await apply();
    },
  };

  assertEquals((await fixture.store.commit((operation) => operation.sum(["n"], 1n))).ok, true);
  assertEquals(fixture.fake.value("n"), new Deno.KvU64(1n));
});

Deno.test("RemoteBackend.commit() works after another process has swept its markers", async () => {
  const fixture = new Fixture();
  const { store } = fixture;
  const other = fixture.open();
  await Promise.all([1, 2].map(() => store.commit(() => {})));
  const before = fixture.marks;
  fixture.now += 2 * DAY;
  await other.sweep();
  const after = new Set(fixture.marks.map(String));
  assert(before.some((mark) => !after.has(String(mark))));

  const rows = [1, 2].map((row) => store.commit((operation) => operation.set([row], row)));
  const results = await Promise.all(rows);

  assertEquals(results.map(({ ok }) => ok), [true, true]);
});

Deno.test("RemoteBackend.probe() fails while commits fail, and changes only a marker", async () => {
  const fixture = new Fixture();
  const { fake, store } = fixture;
  for (let count = 0; count < 3; count++) await store.probe();
  assertEquals([...fake.rows.values()].map(({ key }) => key[0]), ["commits"]);

  fixture.disturbance = { commit: fail };

  await assertRejects(() => store.probe(), StoreUnavailable);
});

Deno.test("RemoteBackend.close() removes its own markers and keeps all other rows", async () => {
  const { fake, store } = new Fixture();
  await store.commit((operation) => operation.set(["commits", "other", 1], 1));
  await Promise.all(["a", "b"].map((row) => store.commit((operation) => operation.set([row], row))));

  await store.close();

  assertEquals([...fake.rows.values()].map(({ key }) => key).sort(), [["a"], ["b"], ["commits", "other", 1]]);
});
