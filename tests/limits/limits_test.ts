import { assertEquals, assertMatch } from "@std/assert";
import { DAY, dayOf, MINUTE } from "../../src/base/time.ts";
import { decodeJson, encodeJson } from "../../src/engine/row.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { type Holder, type Holders, unstored } from "../../src/limits/holder.ts";
import { encodeUsage, UNUSED, type Usage, usageKey } from "../../src/limits/usage.ts";
import { dayTotalKey, sweepDayTotals } from "../../src/limits/usage_days.ts";
import { sweepUsage } from "../../src/limits/usage_sweep.ts";
import { carryOut } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

/** Holders that are not stored. */
const ANYONE = unstored(() => ({ minute: 60, day: 1_000 }));

const MIDNIGHT = NOON + DAY / 2;

/** Sweeps the usage rows of holders at a time. Returns the IDs of those that stay. */
async function swept(service: Harness, now: number, holders: Holders<Holder> = ANYONE): Promise<string[]> {
  const { store } = service;
  await sweepUsage({ store, transactions: new Transactions(store, () => now), holders }, now);
  return (await Array.fromAsync(service.kv.list({ prefix: ["usage"] }))).map(({ key }) => String(key[1]));
}

Deno.test("sweepUsage() removes rows whose day and last ban are over, and stores the totals of their day", async () => {
  await using service = await Harness.open();
  const rows: Record<string, Partial<Usage>> = {
    banned: { minute: NOON, bannedUntil: MIDNIGHT + 6 * MINUTE - DAY },
    today: { minute: MIDNIGHT },
    unused: {},
    used: { minute: NOON, usedToday: 7, refusedToday: 3 },
  };
  for (const [id, usage] of Object.entries(rows)) {
    await service.kv.set(usageKey(id), encodeUsage({ ...UNUSED, ...usage }));
  }
  const stored = { ...ANYONE, key: (id: string) => ["holders", id] };

  assertEquals(await swept(service, MIDNIGHT + 9 * MINUTE, stored), Object.keys(rows));
  assertEquals(await swept(service, MIDNIGHT + 5 * MINUTE - 1), ["banned", "today", "used"]);
  assertEquals(await swept(service, MIDNIGHT + 5 * MINUTE), ["banned", "today"]);
  assertEquals(await swept(service, MIDNIGHT + 6 * MINUTE), ["today"]);
  const total = await service.store.get(dayTotalKey(dayOf(NOON), "used"));
  assertEquals(total && decodeJson(total), { admitted: 7, refused: 3 });
});

Deno.test("sweepUsage() keeps a row that another process uses again before it is removed", async () => {
  await using other = await Harness.open();
  const use = (minute: number) => other.kv.set(usageKey("ann"), encodeUsage({ ...UNUSED, minute }));
  const now = MIDNIGHT + DAY;
  await using service = other.beside({
    disturbance: { commit: async (commit) => (await use(now), await carryOut(commit)) },
  });
  await use(NOON);

  assertEquals(await swept(service, now), ["ann"]);
});

Deno.test("sweepDayTotals() removes totals that are more than 90 days old", async () => {
  await using service = await Harness.open();
  const days = [-91, -90, -1].map((ago) => dayOf(NOON) + ago);
  for (const day of days) {
    await service.kv.set(dayTotalKey(day, "acct_a"), encodeJson({ admitted: 1, refused: 0 }));
  }

  assertEquals(await sweepDayTotals(service.store, NOON), false);

  const rows = await Array.fromAsync(service.kv.list({ prefix: ["usage_days"] }));
  assertEquals(rows.map(({ key: [, day] }) => day), days.slice(1));
});

Deno.test("another project can limit its own tenants, which are stored in its own rows, and add its own metrics", async () => {
  const args = ["run", "--quiet", "--no-lock", "main.ts"];
  const cwd = new URL("project/", import.meta.url);

  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd }).output();

  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals([code, err], [0, ""]);
  const { counts, metrics } = JSON.parse(out ?? "");
  assertEquals(counts, [{ 200: 60, 429: 30 }, { 401: 3 }]);
  assertEquals([...metrics.matchAll(/^# TYPE (.*)$/gm)].map(([, family]) => family), [
    "tenants_requests_total counter",
    "tenants_kv_operation_duration_seconds histogram",
    "tenants_kv_failures_total counter",
    "tenants_kv_conflicts_total counter",
    "tenants_round_size histogram",
    "tenants_bans_total counter",
  ]);
  assertMatch(metrics, /^tenants_requests_total{status="200"} 60$/m);
  assertMatch(metrics, /^tenants_kv_operation_duration_seconds_count{operation="write"} [1-9]/m);
  assertMatch(metrics, /^tenants_round_size_count{round="\w+"} [1-9]/m);
});
