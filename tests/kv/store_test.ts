import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { Store } from "../../src/kv/store.ts";
import { carryOut, type Disturbance, disturbed, hang, locked } from "./disturbed_kv.ts";

async function openStore(disturbance: Disturbance = {}): Promise<Store> {
  return new Store(disturbed(await Deno.openKv(":memory:"), disturbance), { maxChecks: 100, deadline: 250 });
}

Deno.test("Store.get() gives a row, and null when there is none", async () => {
  using store = await openStore();
  const versionstamp = await store.commit("test", (operation) => operation.set(["row"], 1n));
  assert(versionstamp);

  assertEquals(await store.get(["row"]), { key: ["row"], value: 1n, versionstamp });
  assertEquals(await store.get(["other"]), null);
});

Deno.test("Store.getMany() keeps the order of keys when they are more than one read takes", async () => {
  using store = await openStore();
  await store.commit("test", (operation) => {
    for (let row = 0; row < 35; row += 2) operation.set(["row", row], row);
  });

  const keys = Array.from({ length: 35 }, (_, row) => ["row", 34 - row]);
  const values = (await store.getMany<number>(keys)).map((entry) => entry && entry.value);

  assertEquals(values, keys.map((_, index) => index % 2 === 0 ? 34 - index : null));
  assertEquals(await store.getMany([]), []);
});

Deno.test("Store.list() gives the first rows, up to the limit", async () => {
  using store = await openStore();
  await store.commit("test", (operation) => {
    for (let row = 1; row <= 600; row++) operation.set(["row", row], row);
  });

  const rows = await store.list<number>({ prefix: ["row"] }, 550);

  assertEquals(rows.map(({ value }) => value), Array.from({ length: 550 }, (_, index) => index + 1));
});

Deno.test("Store.commit() stores nothing when a check fails", async () => {
  using store = await openStore();
  await store.commit("test", (operation) => operation.set(["row"], 1));

  const versionstamp = await store.commit("test", (operation) => {
    operation.check({ key: ["row"], versionstamp: null }).set(["row"], 2).set(["other"], 2);
  });

  assertEquals(versionstamp, undefined);
  assertEquals((await store.get(["row"]))?.value, 1);
  assertEquals(await store.get(["other"]), null);
});

Deno.test("Store.commit() resolves to the versionstamp of the rows when only its reply was lost", async () => {
  using store = await openStore({
    commit: async ({ apply }) => {
      await apply();
      return { ok: false };
    },
  });

  const versionstamp = await store.commit("test", (operation) => operation.set(["row"], 1));

  assertEquals(versionstamp, (await store.get(["row"]))?.versionstamp);
  assert(versionstamp);
});

Deno.test("Store.commit() is not taken in by the mark of an earlier commit when it was not applied", async () => {
  let lost = false;
  using store = await openStore({
    commit: (commit) => lost ? Promise.resolve({ ok: false }) : carryOut(commit),
  });
  await store.commit("test", (operation) => operation.set(["row"], 1));

  lost = true;

  assertEquals(await store.commit("test", (operation) => operation.set(["row"], 2)), undefined);
});

Deno.test("Store.commit() is tried again until another process no longer locks the file", async () => {
  let tries = 0;
  using store = await openStore({ commit: (commit) => ++tries < 4 ? locked() : carryOut(commit) });

  const versionstamp = await store.commit("test", (operation) => operation.set(["row"], 1));

  assertEquals([tries, (await store.get(["row"]))?.versionstamp], [4, versionstamp]);
});

Deno.test("Store refuses at once, without asking KV, while too many operations hang", async () => {
  const hanging = Promise.withResolvers<void>();
  let asked = 0;
  const kv = disturbed(await Deno.openKv(":memory:"), { read: () => (asked++, hanging.promise) });
  using store = new Store(kv, { maxChecks: 100, deadline: 100 });

  const first = await Promise.allSettled(Array.from({ length: 16 }, () => store.get(["row"])));
  await assertRejects(() => store.get(["row"]), StoreUnavailable, "still hang");
  assertEquals([first.every(({ status }) => status === "rejected"), asked], [true, 16]);

  hanging.resolve();
  await eventually(() => store.get(["row"]));
});

const failures: Record<string, Disturbance> = {
  "never answers": { read: hang, commit: hang },
  "fails": {
    read: () => Promise.reject(new TypeError("disk I/O error")),
    commit: () => Promise.reject(new TypeError("disk I/O error")),
  },
};

for (const [what, disturbance] of Object.entries(failures)) {
  Deno.test(`Store rejects with StoreUnavailable from every method when KV ${what}`, async () => {
    const store = await openStore(disturbance);

    await assertRejects(() => store.get(["row"]), StoreUnavailable);
    await assertRejects(() => store.getMany([["row"]]), StoreUnavailable);
    await assertRejects(() => store.list({ prefix: [] }, 1), StoreUnavailable);
    await assertRejects(() => store.commit("test", () => {}), StoreUnavailable);
    await assertRejects(() => store.probe(), StoreUnavailable);
    await store.close();
  });
}

Deno.test("Store.probe() rejects when KV reads but does not write", async () => {
  using store = await openStore({ commit: hang });

  assertEquals(await store.get(["row"]), null);

  await assertRejects(() => store.probe(), StoreUnavailable);
});

Deno.test("Store.probe() rejects when KV writes but does not read", async () => {
  using store = await openStore({ read: hang });

  assert(await store.commit("test", (operation) => operation.set(["row"], 1)));

  await assertRejects(() => store.probe(), StoreUnavailable);
});

Deno.test("Store.close() leaves none of its marks, and what was committed", async () => {
  const path = await Deno.makeTempFile();
  const store = new Store(await Deno.openKv(path), { maxChecks: 100 });
  for (const slot of ["a", "b", "c"]) {
    await store.commit(slot, (operation) => operation.set(["row", slot], slot));
  }
  const keysOf = async (kv: Deno.Kv) =>
    (await Array.fromAsync(kv.list({ prefix: [] }))).map(({ key }) => key.join("/"));
  {
    using kv = await Deno.openKv(path);
    assertGreater((await keysOf(kv)).length, 3);
  }

  await store.close();

  using kv = await Deno.openKv(path);
  assertEquals(await keysOf(kv), ["row/a", "row/b", "row/c"]);
  await Deno.remove(path);
});

/** Repeats what is refused until it is not. */
async function eventually(call: () => Promise<unknown>): Promise<void> {
  for (let refused = true; refused;) {
    refused = await call().then(() => false, () => true);
    await new Promise((resolve) => setTimeout(resolve));
  }
}
