import { ACCESS } from "../../src/resource/access.ts";
import { assert, assertEquals } from "@std/assert";
import { pardon, reset } from "../../src/limits/usage.ts";
import { call, callAtOnce, getBanned, type Reply, tally } from "../support/client.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import { carryOut, type Commit, slowly } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { SAMPLES } from "../support/operations.ts";
import { HAMMER, PLANS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const HOUR = 3_600_000;

/** Conditions of an account on the Free plan, and how to bring each about. */
const CONDITIONS:
  readonly (readonly [condition: string, prepare: (service: Harness, key: string) => Promise<unknown>])[] = [
    ["in use", (service, key) => callAtOnce(12, [service], key)],
    ["leased", async (service, key) => {
      // Time stands still, so the rate is very high.
      for (let count = 0; count < 12; count++) await call(service, key);
    }],
    ["exhausted", (service, key) => callAtOnce(70, [service], key)],
    ["banned", (service, key) => getBanned(service, key)],
  ];

/** The next response in each condition: remaining requests, or the error code. */
type Outcomes = readonly [inUse: string, leased: string, exhausted: string, banned: string];

const ENDED: Outcomes = ["invalid_api_key", "invalid_api_key", "invalid_api_key", "invalid_api_key"];
const SUSPENDED: Outcomes = [
  "account_suspended",
  "account_suspended",
  "account_suspended",
  "account_suspended",
];
const SAME: Outcomes = ["47 of 60", "47 of 60", "rate_limit_minute", "key_banned"];
const ONE_LESS: Outcomes = ["46 of 60", "46 of 60", "rate_limit_minute", "key_banned"];
const HIGHER: Outcomes = ["287 of 300", "287 of 300", "239 of 300", "key_banned"];
const LOWER: Outcomes = ["7 of 20", "7 of 20", "rate_limit_minute", "key_banned"];
const PARDONED: Outcomes = ["47 of 60", "47 of 60", "rate_limit_minute", "rate_limit_minute"];
const RESET: Outcomes = ["59 of 60", "59 of 60", "59 of 60", "key_banned"];

type Apply = (accounts: RemoteAccounts, id: string) => Promise<object | null>;

/** A change, the next response to the old key, and then to a new one. */
const changes: readonly (readonly [what: string, apply: Apply, expected: Outcomes, withNewKey?: Outcomes])[] =
  [
    ["closed", (accounts, id) => accounts.close(id), ENDED],
    ["suspended", (accounts, id) => accounts.suspend(id, NOON), SUSPENDED],
    ["suspended and resumed", async (accounts, id) => {
      await accounts.suspend(id, NOON);
      return await accounts.suspend(id, null);
    }, SAME],
    ["suspended and closed", async (accounts, id) => {
      await accounts.suspend(id, NOON);
      return await accounts.close(id);
    }, ENDED],
    ["given a new key", (accounts, id) => accounts.rotate(id), ENDED, SAME],
    ["given a new key with a grace", (accounts, id) => accounts.rotate(id, HOUR), SAME, ONE_LESS],
    ["moved to a higher plan", (accounts, id) => accounts.change(id, { limits: PLANS.limits.pro }), HIGHER],
    [
      "moved to a lower plan",
      (accounts, id) => accounts.change(id, { limits: { minute: 20, day: 99 } }),
      LOWER,
    ],
    ["unbanned", (accounts, id) => accounts.changeUsage(id, pardon), PARDONED],
    ["reset", (accounts, id) => accounts.changeUsage(id, (usage) => reset(usage, NOON)), RESET],
  ];

function outcomeOf({ code, remaining, limit }: Reply): string {
  return code || `${remaining} of ${limit}`;
}

for (const [what, apply, expected, withNewKey] of changes) {
  CONDITIONS.forEach(([condition, prepare], index) => {
    Deno.test(`service notices at the next request that an account (${condition}) was ${what} in another process`, async () => {
      await using service = await RecordingService.open();
      await using other = service.beside();
      const { account: { id }, apiKey } = await service.createAccount("free");
      await prepare(service, apiKey);
      const leased = (await other.accounts.usage(id)).leased;
      assertEquals(leased > 0, condition === "leased");

      const changed = await apply(other.accounts, id);
      const newKey = changed !== null && "apiKey" in changed ? String(changed.apiKey) : undefined;

      assertEquals(outcomeOf(await service.time.until(call(service, apiKey), 1_000)), expected[index]);
      assertEquals(newKey !== undefined, withNewKey !== undefined);
      if (newKey !== undefined) assertEquals(outcomeOf(await call(service, newKey)), withNewKey?.[index]);
    });
  });
}

for (const { operation, target, request } of SAMPLES) {
  if (operation.access !== ACCESS.key) continue;
  Deno.test(`service does not carry out ${target} if another process has closed the leased account`, async () => {
    await using service = await RecordingService.open();
    await using other = service.beside();
    const { time } = service;
    const { account: { id }, apiKey } = await service.createAccount("free");
    await time.until(service.fetch("POST /v1/things", { key: apiKey, json: HAMMER }), 1_000);
    for (let count = 0; count < 12; count++) await call(service, apiKey);
    await other.accounts.close(id);
    const stored = () =>
      [...service.fake.rows.values()].filter(({ key: [table] }) => table !== "usage" && table !== "commits");
    const before = stored();

    const { code } = await time.until(call(service, apiKey, target, request), 1_000);

    assertEquals(code, "invalid_api_key");
    assertEquals(stored(), before);
  });
}

Deno.test("service loses no request if the account changes while many are in flight", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 500, day: 1_000 });

  const replies = await Promise.all(Array.from({ length: 8 }, async (_, round) => {
    await other.accounts.change(id, { name: `${round}` });
    return await callAtOnce(50, [service], apiKey);
  }));

  assertEquals(tally(replies.flat()), { 200: 400 });
  assertEquals((await call(service, apiKey)).remaining, 99);
});

Deno.test("service retries a charge for up to five seconds while the account keeps changing", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  let changes = 0;
  const commit = async (commit: Commit) => {
    if (++changes !== 20) await other.accounts.change(id, { name: `${changes}` });
    return await carryOut(commit);
  };
  service.disturbance = { commit };

  const { status, remaining } = await time.until(call(service, apiKey), 4_000);
  assertEquals([status, remaining, changes], [200, 59, 20]);
  service.expectsErrors = true;
  const timedOut = await time.until(call(service, apiKey), 6_000);
  service.disturbance = {};

  assertEquals([timedOut.status, timedOut.code], [503, "store_unavailable"]);
  assertEquals((await time.until(call(service, apiKey), 1_000)).remaining, 58);
});

Deno.test("service charges an account in one commit while another account changes", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { apiKey } = await service.createAccount();
  const { account: { id } } = await service.createAccount();
  await time.until(call(service, apiKey), 1_000);
  await time.advance(60_000);
  service.now += 60_000;
  service.disturbance = {
    commit: async (commit) => {
      await other.accounts.change(id, { name: "changed" });
      return await carryOut(commit);
    },
  };
  service.forget();

  assertEquals((await time.until(call(service, apiKey), 1_000)).status, 200);
  assertEquals(service.commits.length, 1);
});

/** Delays replies of commits that have applied until they are released. */
function holdReplies(
  service: RecordingService,
): { readonly release: () => void; readonly count: () => number } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  const commit = async (commit: Commit) => {
    const result = await carryOut(commit);
    count++;
    await promise;
    return result;
  };
  service.disturbance = { commit };
  const release = () => {
    service.disturbance = {};
    resolve();
  };
  return { release, count: () => count };
}

Deno.test("service never exceeds a plan that is lowered while a lease is being taken", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount({ minute: 1_000, day: 10_000 });
  service.disturbance = { commit: slowly };
  const callNext = async () => {
    await time.until(call(service, apiKey), 1_000);
    await time.advance(1);
  };
  for (let count = 0; count < 300; count++) await callNext();
  const held = holdReplies(service);
  // The lease is renewed before its last permits are handed out.
  for (let count = 0; count < 1_000 && held.count() === 0; count++) await callNext();
  assert(held.count() > 0);
  const leased = (await other.accounts.usage(id)).leased;
  await other.accounts.change(id, { limits: { minute: 60, day: 1_000 } });

  const replies = callAtOnce(3, [service], apiKey);
  await time.advance(10);
  held.release();

  assert(leased > 0);
  assertEquals(tally(await time.until(replies, 1_000)), { "429 rate_limit_minute": 3 });
  assertEquals(tally(await time.until(callAtOnce(3, [service], apiKey), 1_000)), {
    "429 rate_limit_minute": 3,
  });
});

Deno.test("service refuses a revoked key even if its account is read while a request waits", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  const { apiKey: stranger } = await service.createAccount("free");
  await call(service, apiKey);
  await time.advance(5_000);
  const held = holdReplies(service);
  const before = call(service, apiKey);
  await time.advance(1);
  await other.accounts.close(id);

  const after = call(service, apiKey);
  call(service, stranger); // Its check of versions shows that an account has changed.
  await time.advance(1);
  const again = call(service, apiKey);

  assertEquals((await time.until(again, 1_000)).code, "invalid_api_key");
  held.release();
  assertEquals((await time.until(before, 1_000)).status, 200);
  assertEquals((await time.until(after, 1_000)).code, "invalid_api_key");
});
