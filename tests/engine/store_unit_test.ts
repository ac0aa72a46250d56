import { assert, assertEquals, assertRejects } from "@std/assert";
import { Connection } from "../../src/engine/connection.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import { DAY, type Disturbance, fail, FlakyStore, hang } from "../support/fake_kv.ts";

Deno.test("Store reads one row, several in the order of the given keys, and a range up to a limit", async () => {
  using fixture = await FlakyStore.open();
  const { store } = fixture;
  const keys = Array.from({ length: 600 }, (_, row) => ["row", row]);
  const result = await store.commit((operation) => {
    for (const key of keys) operation.set(key, key[1]);
  });
  const versionstamp = result.ok ? result.versionstamp : "";
  const entry = (row: number) => ({ key: ["row", row], value: row, versionstamp });

  assertEquals(await store.get(["row", 7]), entry(7));
  assertEquals(await store.get(["row", -1]), null);
  assertEquals(await store.getMany([["row", 2], ["none"], ["row", 1]]), [entry(2), null, entry(1)]);
  assertEquals(await store.getMany([]), []);
  const rows = await store.list({ prefix: ["row"] }, 550);
  assertEquals(rows.map(({ value }) => value), keys.slice(0, 550).map(([, row]) => row));
});

Deno.test.each<[string, Disturbance]>([
  ["KV never responds", { read: hang, commit: hang }],
  ["KV fails", { read: fail, commit: fail }],
  ["only reads fail", { read: fail }],
  ["only commits fail", { commit: fail }],
])("Store rejects its operations and its probe with StoreUnavailable when %s", async (_, disturbance) => {
  using fixture = await FlakyStore.open(250);
  const { store } = fixture;
  await store.probe();
  fixture.disturbance = disturbance;
  const reads = [() => store.get(["a"]), () => store.getMany([["a"]]), () => store.list({ prefix: [] }, 1)];
  const calls = [
    () => store.probe(),
    ...disturbance.read ? [...reads, () => store.sweep()] : [],
    ...disturbance.commit ? [() => store.commit(() => {})] : [],
  ];

  for (const call of calls) await assertRejects(call, StoreUnavailable);
});

Deno.test("Store.sweep() removes day-old markers of killed processes, as many as one commit can check", async () => {
  using fixture = await FlakyStore.open();
  const { kv, store } = fixture;
  for (let lane = 0; lane < 600; lane++) {
    await kv.set(["commits", "living", lane], encodeJson({ commit: 1, at: fixture.now }));
  }
  const ages = [...Array(11).fill(DAY + 1), DAY, -DAY];
  for (const [lane, age] of ages.entries()) {
    await kv.set(["commits", "other", lane], encodeJson({ commit: 1, at: fixture.now - age }));
  }

  assertEquals([await store.sweep(), await store.sweep(), await store.sweep()], [true, false, false]);

  const others = (await fixture.marks()).filter(([process]) => process === "other");
  assertEquals(others, [["other", 11], ["other", 12]]);
});

Deno.test("Store.sweep() keeps its own process's markers, even if the process was suspended for a day", async () => {
  using flaky = await FlakyStore.open();
  await flaky.store.commit(() => {});
  let isFirst = true;
  flaky.disturbance = {
    async commit({ apply }) {
      const result = await apply();
      if (!isFirst) return result;
      isFirst = false;
      flaky.now += DAY + 1;
      await flaky.store.sweep();
      // The reply was lost, so the client repeats the commit.
      return await apply();
    },
  };

  assertEquals((await flaky.store.commit((operation) => operation.sum(["n"], 1n))).ok, true);
  assertEquals((await flaky.kv.get(["n"])).value, new Deno.KvU64(1n));
});

Deno.test("Store.sweep() keeps a marker that is set again during the sweep", async () => {
  using fixture = await FlakyStore.open();
  const { kv, store } = fixture;
  const mark: Deno.KvKey = ["commits", "other", 1];
  await store.commit(() => {});
  await kv.set(mark, encodeJson({ commit: 1, at: 0 }));
  const alive = encodeJson({ commit: 2, at: fixture.now });
  fixture.disturbance = { commit: async ({ apply }) => (await kv.set(mark, alive), await apply()) };

  await store.sweep();

  assertEquals((await kv.get(mark)).value, alive);
});

Deno.test("Store.commit() works after another process has swept its markers", async () => {
  using fixture = await FlakyStore.open();
  const { kv, store } = fixture;
  const other = new Store(new Connection([kv]), { maxChecks: 10, clock: () => fixture.now });
  await Promise.all([1, 2].map(() => store.commit(() => {})));
  const before = await fixture.marks();
  fixture.now += 2 * DAY;
  await other.sweep();
  const after = new Set((await fixture.marks()).map(String));
  assert(before.some((mark) => !after.has(String(mark))));

  const rows = [1, 2].map((row) => store.commit((operation) => operation.set([row], row)));
  const results = await Promise.all(rows);

  assertEquals(results.map(({ ok }) => ok), [true, true]);
});

Deno.test("Store.close() removes its own markers and keeps all other rows", async () => {
  const path = await Deno.makeTempFile();
  const { store } = new FlakyStore(await Deno.openKv(path));
  await store.commit((operation) => operation.set(["commits", "other", 1], 1));
  await Promise.all(["a", "b"].map((row) => store.commit((operation) => operation.set([row], row))));

  await store.close();

  using kv = await Deno.openKv(path);
  const keys = (await Array.fromAsync(kv.list({ prefix: [] }))).map(({ key }) => key);
  assertEquals(keys, [["a"], ["b"], ["commits", "other", 1]]);
  await Deno.remove(path);
});
