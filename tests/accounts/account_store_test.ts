import { assert, assertEquals } from "@std/assert";
import { previousKeyExpiry } from "../../src/accounts/account.ts";
import { hasCalled, pardon } from "../../src/limits/usage.ts";
import { call } from "../support/client.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import { carryOut } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { PLANS } from "../support/things.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
Deno.test("AccountStore loses no simultaneous changes or requests", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { account: { id }, apiKey } = await service.createAccount("free");

  const [, , rotated] = await Promise.all([
    service.accounts.change(id, { plan: "pro", limits: PLANS.limits.pro }),
    other.accounts.changeUsage(id, (usage) => ({ ...usage, bans: 7 })),
    other.accounts.rotate(id, HOUR, NOON),
    call(service, apiKey),
  ]);

  await service.app.settle();
  const state = await service.accounts.find(id);
  assertEquals([state?.holder.plan, state?.holder.keyHash], ["pro", rotated?.account.keyHash]);
  assertEquals([state?.usage.bans, state?.usage.used], [7, 1]);
});

type Change = (accounts: RemoteAccounts, id: string) => Promise<unknown>;

Deno.test.each<readonly [what: string, change: Change]>([
  ["changeUsage()", (accounts, id) => accounts.changeUsage(id, pardon)],
  ["remove()", (accounts, id) => accounts.remove(id, ({ usage }) => !hasCalled(usage))],
])("%s loses no request that is charged between its read and its write", async (_, change) => {
  await using service = await RecordingService.open();
  await using operator = service.beside();
  const { account: { id }, apiKey } = await service.createAccount("free");
  operator.disturbance = {
    async commit(commit) {
      operator.disturbance = {};
      await call(service, apiKey);
      return await carryOut(commit);
    },
  };

  await service.time.until(change(operator.accounts, id), 1_000);

  assertEquals((await service.accounts.find(id))?.usage.used, 1);
});

Deno.test("remove() removes an account and its rows only if the condition holds", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  for (const now of [NOON - 90 * DAY, NOON]) {
    service.now = now;
    await call(service, apiKey);
  }
  await service.accounts.rotate(id, HOUR, NOON);
  await service.app.settle();
  const counts = () =>
    Promise.all(
      ["accounts", "usage", "api_keys", "usage_days"].map(async (table) =>
        (await Array.fromAsync(service.kv.list({ prefix: [table] }))).length
      ),
    );

  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used === 0), false);
  assertEquals(await service.accounts.remove("acct_none", () => true), null);
  assertEquals(await counts(), [1, 1, 2, 1]);
  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used > 0), true);

  assertEquals(await counts(), [0, 0, 0, 0]);
  assertEquals((await call(service, apiKey)).code, "invalid_api_key");
});

Deno.test("previousKeyExpiry() returns a time, or null once the key has expired or the account is closed", async () => {
  await using service = await Harness.open();
  const { account: { id } } = await service.createAccount();
  const issued = await service.accounts.rotate(id, HOUR, NOON);
  assert(issued);

  const expiries = [NOON, NOON + HOUR].map((now) => previousKeyExpiry(issued.account, now));
  const closed = previousKeyExpiry({ ...issued.account, closedAt: NOON }, NOON);

  assertEquals([...expiries, closed], ["2027-01-15T13:00:00.000Z", null, null]);
});
