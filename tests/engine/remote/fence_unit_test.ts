import { assert } from "@std/assert";
import { CommitInDoubt } from "../../../src/engine/backend.ts";
import { pause } from "../../../src/base/time.ts";
import { encodeJson } from "../../../src/engine/row.ts";
import { Store } from "../../../src/engine/store.ts";
import { carryOut, type Disturbance, disturbed, FakeKv } from "../../support/fake_kv.ts";
import { onServer } from "./server.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

Deno.test("CommitInDoubt.findOut() reports no failure if KV refuses the fence for no reason", async () => {
  using time = new VirtualTime();
  const fake = new FakeKv();
  let commit: Disturbance["commit"] = carryOut;
  const kv = disturbed(fake.connect(), { commit: (sent) => (commit ?? carryOut)(sent) });
  const store = new Store(onServer(kv, { clock: () => NOON }));
  await time.until(store.commit((operation) => operation.set(["first"], encodeJson(1))), 1_000);
  let sent = 0;
  commit = async (operation) => {
    if (++sent === 2) return { ok: false }; // KV refuses the fence, although its check holds.
    if (sent > 2) return await operation.apply();
    await pause(7_000);
    await operation.apply();
    return await new Promise<never>(() => {});
  };
  const error: unknown = await time.until(
    store.commit((operation) => operation.set(["late"], encodeJson(1))).catch((error) => error),
    6_000,
  );
  assert(error instanceof CommitInDoubt);

  const found = await time.until(error.findOut(() => false).then(({ ok }) => ok, () => "unknown"), 6_000);
  await time.advance(20_000);

  assert(
    found !== false || fake.value("late") === undefined,
    "findOut() reported that the commit never applies, but it did",
  );
});
