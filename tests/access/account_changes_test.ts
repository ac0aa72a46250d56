import { assert, assertEquals } from "@std/assert";
import type { Account } from "../../src/access/account.ts";
import type { AccountState, AccountStore } from "../../src/access/account_store.ts";
import type { Issued } from "../../src/access/issue.ts";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { pardon, reset } from "../../src/access/usage.ts";
import { Harness, NOON } from "../harness.ts";
import { FakeKv } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";
import { NotedService } from "./noted_service.ts";
import { call, callAtOnce, OtherProcess, type Reply, tally } from "./replies.ts";

const HOUR = 3_600_000;

/** What brings an account of the Free plan into a condition. */
const CONDITIONS:
  readonly (readonly [condition: string, prepare: (service: Harness, key: string) => Promise<unknown>])[] = [
    ["in use", (service, key) => callAtOnce(12, [service], key)],
    ["leased", async (service, key) => {
      // Time stands still, so these come very fast.
      for (let count = 0; count < 12; count++) await call(service, key);
    }],
    ["exhausted", (service, key) => callAtOnce(70, [service], key)],
    ["banned", (service, key) => callAtOnce(121, [service], key)],
  ];

/** What is said next in each condition: what remains, or the code of the error. */
type Told = readonly [inUse: string, leased: string, exhausted: string, banned: string];

const ENDED: Told = ["invalid_api_key", "invalid_api_key", "invalid_api_key", "invalid_api_key"];
const SAME: Told = ["47 of 60", "47 of 60", "rate_limit_minute", "key_banned"];
const ONE_LESS: Told = ["46 of 60", "46 of 60", "rate_limit_minute", "key_banned"];
const HIGHER: Told = ["287 of 300", "287 of 300", "239 of 300", "key_banned"];
const LOWER: Told = ["7 of 20", "7 of 20", "rate_limit_minute", "key_banned"];
const PARDONED: Told = ["47 of 60", "47 of 60", "rate_limit_minute", "rate_limit_minute"];
const RESET: Told = ["59 of 60", "59 of 60", "59 of 60", "key_banned"];

type Apply = (accounts: AccountStore, id: string) => Promise<Issued | Account | AccountState | null>;

/** A change, what is said next to the key there was, and to a new one after that. */
const changes: readonly (readonly [what: string, apply: Apply, told: Told, toNewKey?: Told])[] = [
  ["closed", (accounts, id) => accounts.change(id, { closedAt: NOON }), ENDED],
  ["given a new key", (accounts, id) => accounts.rotate(id, 0, NOON), ENDED, SAME],
  ["given a new key with a grace", (accounts, id) => accounts.rotate(id, HOUR, NOON), SAME, ONE_LESS],
  ["moved to a higher plan", (accounts, id) => accounts.change(id, { limits: PLAN_LIMITS.pro }), HIGHER],
  [
    "moved to a lower plan",
    (accounts, id) => accounts.change(id, { limits: { minute: 20, day: 99 } }),
    LOWER,
  ],
  ["unbanned", (accounts, id) => accounts.changeUsage(id, pardon), PARDONED],
  ["reset", (accounts, id) => accounts.changeUsage(id, (usage) => reset(usage, NOON)), RESET],
];

function told({ code, remaining, limit }: Reply): string {
  return code || `${remaining} of ${limit}`;
}

for (const [what, apply, expected, toNewKey] of changes) {
  CONDITIONS.forEach(([condition, prepare], index) => {
    Deno.test(`createApp() notices at the next request that an account, ${condition}, was ${what} elsewhere`, async () => {
      using time = new VirtualTime();
      const kv = new FakeKv();
      await using service = new NotedService(time, kv);
      await using other = new NotedService(time, kv);
      const { account: { id }, apiKey } = await service.createAccount("free");
      await prepare(service, apiKey);
      const leased = (await other.accounts.find(id))?.usage.leased ?? 0;
      assertEquals(leased > 0, condition === "leased");

      const changed = await apply(other.accounts, id);

      assertEquals(told(await time.until(call(service, apiKey), 1_000)), expected[index]);
      assert(changed);
      assertEquals("apiKey" in changed, toNewKey !== undefined);
      if ("apiKey" in changed) assertEquals(told(await call(service, changed.apiKey)), toNewKey?.[index]);
    });
  });
}

Deno.test("createApp() loses no request when its account is changed while many are under way", async () => {
  await using service = await Harness.open();
  await using other = new OtherProcess(service.kv);
  const { account: { id }, apiKey } = await service.createAccount({ minute: 500, day: 1_000 });

  const replies = await Promise.all(Array.from({ length: 8 }, async (_, round) => {
    await other.accounts.change(id, { name: `${round}` });
    return await callAtOnce(50, [service], apiKey);
  }));

  assertEquals(tally(replies.flat()), { 200: 400 });
  assertEquals((await call(service, apiKey)).remaining, 99);
});
