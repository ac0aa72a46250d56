import { assertEquals, assertGreater } from "@std/assert";
import { dayTotalKey, sweepDayTotals } from "../../src/accounts/day_totals.ts";
import { dayOf, reset, UNUSED } from "../../src/accounts/usage.ts";
import { encodeJson } from "../../src/kv/row.ts";
import type { Lease } from "../../src/leases/places.ts";
import { OtherProcesses } from "../../src/leases/other_processes.ts";
import { planFor } from "../../src/leases/usage_plan.ts";
import { NotedService } from "../access/noted_service.ts";
import { call } from "../access/replies.ts";
import { Harness, NOON } from "../harness.ts";
import { FakeKv } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";

const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;

Deno.test("createApp() lowers a day's total by what it leased of it and gives back when another process has ended it", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  await using holder = new NotedService(time, kv);
  await using other = new NotedService(time, kv);
  const { account: { id }, apiKey: key } = await holder.createAccount();
  holder.now = MIDNIGHT - 1;
  for (let count = 0; count < 3; count++) await call(holder, key);
  const leased = (await holder.accounts.find(id))?.usage.leased ?? 0;
  const days = async () => {
    const asked = other.fetch("GET /v1/account/usage?days=2", { key });
    return (await (await time.until(asked, 1_000)).json()).map(({ admitted }: { admitted: number }) =>
      admitted
    );
  };

  other.now = MIDNIGHT;
  const before = await days();
  holder.now = MIDNIGHT;
  await time.advance(3_000);

  assertGreater(leased, 1);
  assertEquals(before, [1, 2 + leased]);
  assertEquals(await days(), [2, 3]);
});

for (const [who, behind] of [["", 0], [" with a clock that is behind", 1_000]] as const) {
  Deno.test(`createApp() keeps what the day before came to when an operator${who} resets an account`, async () => {
    await using service = await Harness.open();
    const { account: { id }, apiKey: key } = await service.createAccount("free");
    const days = async () => await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();
    service.now = MIDNIGHT - 1;
    for (let count = 0; count < 7; count++) await call(service, key);
    await service.app.settle();
    service.now = MIDNIGHT;
    if (behind > 0) await days();

    await service.accounts.changeUsage(id, (usage) => reset(usage, service.now - behind));

    assertEquals((await days()).map(({ admitted }: { admitted: number }) => admitted), [1, 7]);
  });
}

Deno.test("planFor() tells by how much leases make the total of an ended day too high, and of no others", () => {
  const usage = { ...UNUSED, epoch: 1, minute: MIDNIGHT };
  const late = { epoch: 1, minute: MIDNIGHT - 60_000, size: 5, left: 3 };
  const others = [{ ...late, left: 0 }, { ...late, epoch: 0 }, { ...late, minute: MIDNIGHT }];
  const overcountOf = (...settled: Lease[]) => {
    const wish = { settled, strikes: 0, waiting: 0, ahead: 0, others: new OtherProcesses() };
    return planFor(usage, { minute: 60, day: 1_000 }, wish, MIDNIGHT).overcount;
  };

  assertEquals(overcountOf(...others), undefined);
  assertEquals(overcountOf(...others, late, { ...late, left: 2 }), { day: dayOf(MIDNIGHT) - 1, admitted: 5 });
});

Deno.test("sweepDayTotals() removes the totals of days that are more than 90 days past", async () => {
  await using service = await Harness.open();
  const days = [-91, -90, -1].map((ago) => dayOf(NOON) + ago);
  for (const day of days) {
    for (const id of ["acct_a", "acct_b"]) {
      await service.kv.set(dayTotalKey(day, id), encodeJson({ admitted: 1, refused: 0 }));
    }
  }

  assertEquals(await sweepDayTotals(service.store, NOON), false);

  const rows = await Array.fromAsync(service.kv.list({ prefix: ["usage_days"] }));
  assertEquals(rows.map(({ key: [, day] }) => day), days.slice(1).flatMap((day) => [day, day]));
});
