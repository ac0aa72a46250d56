import { assert, assertEquals } from "@std/assert";
import type { NewAccount } from "../../src/access/account_store.ts";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { Harness, NOON } from "../harness.ts";
import { call, OtherProcess } from "./replies.ts";

const HOUR = 3_600_000;
const NEW: NewAccount = {
  name: "Zoë",
  plan: "pro",
  limits: PLAN_LIMITS.pro,
  environment: "staging",
  signedUp: true,
};

Deno.test("create() makes no account when the change along with it cannot be made", async () => {
  await using service = await Harness.open();

  const missing = { checks: [{ key: ["schema"], versionstamp: "00000000000000000001" }], sets: [] };
  const issued = await service.accounts.create(NEW, NOON, () => missing);

  assertEquals(issued, null);
  assertEquals(await Array.fromAsync(service.accounts.list()), []);
});

Deno.test("AccountStore loses neither changes nor requests when they come at once", async () => {
  await using service = await Harness.open();
  await using other = new OtherProcess(service.kv);
  const { account: { id }, apiKey } = await service.createAccount("free");

  const [, , rotated] = await Promise.all([
    service.accounts.change(id, { plan: "pro", limits: PLAN_LIMITS.pro }),
    other.accounts.changeUsage(id, (usage) => ({ ...usage, bans: 7 })),
    other.accounts.rotate(id, HOUR, NOON),
    call(service, apiKey),
  ]);

  const state = await service.accounts.find(id);
  assertEquals([state?.account.plan, state?.account.keyHash], ["pro", rotated?.account.keyHash]);
  assertEquals([state?.usage.bans, state?.usage.used], [7, 1]);
});

Deno.test("remove() removes an account with its rows, if the condition allows it and nothing changes meanwhile", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  await service.accounts.rotate(id, HOUR, NOON);

  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used > 0), false);
  assertEquals(await service.accounts.remove("acct_none", () => true), false);
  assert(await service.accounts.find(id));
  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used === 0), true);

  for (const table of ["accounts", "usage", "api_keys", "usage_days"]) {
    assertEquals(await Array.fromAsync(service.kv.list({ prefix: [table] })), []);
  }
  assertEquals((await call(service, apiKey)).code, "invalid_api_key");
});
