import { assertEquals, assertRejects } from "@std/assert";
import { DAY } from "../../src/base/time.ts";
import type { Backend, BackendOptions } from "../../src/engine/backend.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { calmNetwork, fail, FakeKv, hang, type Network } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

const NOW = 100 * DAY;

/** Tests of what every backend does. */
export function testBackend(name: string, open: (kv: Deno.Kv, options: BackendOptions) => Backend): void {
  function backendOn(kv: FakeKv, network: Network): Backend {
    return open(kv.connect(network), { clock: () => NOW, deadline: 250 });
  }

  Deno.test(`${name}.commit() applies everything, or nothing and returns the checked rows`, async () => {
    const kv = new FakeKv();
    const backend = backendOn(kv, calmNetwork());
    const keys = Array.from({ length: 25 }, (_, row) => ["rows", row]);

    const applied = await backend.commit((operation) => {
      for (const key of keys.slice(0, 20)) operation.set(key, key[1]);
    }, [{ key: ["row"], versionstamp: null }]);
    const checks = keys.toReversed().map((key) => ({ key, versionstamp: null }));
    const refused = await backend.commit((operation) => operation.set(["row"], 1), checks);

    const versionstamp = applied.ok ? applied.versionstamp : "";
    const rows = keys.map((key) => Number(key[1]) < 20 ? { key, value: key[1], versionstamp } : null);
    assertEquals(refused, { ok: false, rows: rows.toReversed() });
    assertEquals(kv.value("row"), undefined);
  });

  Deno.test(`${name}.commit() sends nothing and is not in doubt if it cannot be built`, async () => {
    const kv = new FakeKv();
    const build = () => {
      throw new RangeError("not built");
    };

    await assertRejects(() => backendOn(kv, calmNetwork()).commit(build, []), RangeError, "not built");

    assertEquals([...kv.rows.values()].filter(({ key: [table] }) => table !== "commits"), []);
  });

  Deno.test(`${name}.probe() writes one row of the backend, and fails while commits hang or fail`, async () => {
    await using time = new VirtualTime();
    const [kv, network] = [new FakeKv(), calmNetwork()];
    const backend = backendOn(kv, network);
    for (let count = 0; count < 3; count++) await backend.probe();
    assertEquals([...kv.rows.values()].map(({ key }) => key[0]), ["commits"]);

    for (const commit of [fail, hang]) {
      network.commit = commit;
      await assertRejects(() => time.until(backend.probe(), 500), StoreUnavailable);
    }
  });

  Deno.test(`${name}.sweep() removes some of the others' markers over a day old, and none that is set again`, async () => {
    const [kv, network] = [new FakeKv(), calmNetwork()];
    const backend = backendOn(kv, network);
    const setMarker = (lane: number, at: number) =>
      kv.connect().atomic().set(["commits", "other", lane], encodeJson({ commit: 1, at })).commit();
    const last = 600 + backend.maxChecks + 1;
    for (let lane = 0; lane <= last; lane++) await setMarker(lane, lane < 600 ? NOW - DAY : NOW - DAY - 1);

    const more = [await backend.sweep()];
    network.commit = async (apply) => {
      network.commit = calmNetwork().commit;
      await setMarker(last, NOW);
      return apply();
    };
    more.push(await backend.sweep(), await backend.sweep());

    assertEquals(more, [true, true, false]);
    const left = [...kv.rows.values()].filter(({ key }) => key[1] === "other").map(({ key }) => key[2]);
    assertEquals(left, [...Array.from({ length: 600 }, (_, lane) => lane), last]);
  });
}
