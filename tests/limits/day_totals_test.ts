import { dayOf } from "../../src/base/time.ts";
import { assertEquals } from "@std/assert";
import { dayTotalKey, sweepDayTotals } from "../../src/limits/usage_days.ts";
import { reset } from "../../src/limits/usage.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { call } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;

Deno.test("service reports the total of a past day without unused leased permits", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  service.now = MIDNIGHT - 1;
  for (let count = 0; count < 30; count++) await call(service, key);
  service.now = MIDNIGHT;

  const days = await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();

  assertEquals(days.map(({ admitted }: { admitted: number }) => admitted), [1, 30]);
});

for (const [clock, behind] of [["", 0], [" whose clock is behind", 1_000]] as const) {
  Deno.test(`service keeps the previous day's total when an operator${clock} resets an account`, async () => {
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

Deno.test("sweepDayTotals() removes totals that are more than 90 days old", async () => {
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
