import { assert, assertEquals, assertMatch } from "@std/assert";
import { sweepCounts, sweepSignUps } from "../../src/accounts/sign_up.ts";
import { DAY, HOUR } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { limitHeadersOf } from "../support/assertions.ts";
import { call, type HarnessRequest, upTo } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { PLANS } from "../support/things.ts";

/** When accounts that signed up at noon, and sent no request, are removed. */
const MONTH_LATER = NOON + 30 * DAY + 1;

/** Sweeps the sign-ups of a service. */
function sweep({ store, accounts }: Harness, now: number): Promise<boolean> {
  return sweepSignUps(store, (id, condition) => accounts.remove(id, condition), PLANS, now);
}

/** Signs up. Returns the response with its body. */
async function signUp(
  service: Harness,
  request: HarnessRequest = { json: { name: "Zoë" } },
): Promise<{ status: number; headers: Headers; body: Record<string, string> }> {
  const response = await service.fetch("POST /v1/accounts", request);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

Deno.test("createAccount() creates an account on the Free plan and returns its key", async () => {
  await using service = await Harness.open();

  const { status, headers, body } = await signUp(service);

  assertEquals(status, 201);
  assertEquals(headers.get("cache-control"), "no-store");
  const { id = "", apiKey = "", ...rest } = body;
  assertMatch(id, /^acct_[0-9A-Za-z]{16}$/);
  assertEquals(rest, { name: "Zoë", plan: "free" });
  assertEquals((await call(service, apiKey)).limit, 60);
  const account = (await service.accounts.find(id))?.holder;
  assertEquals([account?.environment, account?.signedUp, account?.createdAt], ["staging", true, NOON]);
});

Deno.test("createAccount() allows an address five accounts per hour, and returns how many are left", async () => {
  await using service = await Harness.open();
  service.now = NOON + 1_000;

  const limits = (remaining: number) => ({
    "ratelimit": `"hour";r=${remaining};t=3599`,
    "ratelimit-policy": '"hour";q=5;w=3600',
    "x-ratelimit-limit": "5",
    "x-ratelimit-remaining": `${remaining}`,
    "x-ratelimit-reset": `${(NOON + HOUR) / 1_000}`,
  });

  for (const remaining of [4, 3, 2, 1, 0]) {
    const made = await signUp(service);
    assertEquals([made.status, limitHeadersOf(made)], [201, limits(remaining)]);
  }

  const refused = await signUp(service);
  const message = "At most 5 accounts can be created in an hour from one address. Try again in 3599 s.";
  assertEquals([refused.status, refused.body.code, refused.body.message], [429, "sign_up_limit", message]);
  assertEquals(limitHeadersOf(refused), { ...limits(0), "retry-after": "3599" });
  assertEquals(await service.countRows("accounts"), 5);

  service.address = "198.51.100.7";
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
  service.address = "192.0.2.1";
  service.now = NOON + HOUR - 1;
  assertEquals((await signUp(service)).headers.get("retry-after"), "1");
  service.now = NOON + HOUR;
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
});

Deno.test("createAccount() creates at most 1,000 accounts per day in total", async () => {
  await using service = await Harness.open();
  const midnight = NOON + DAY / 2;
  const day = ["sign_ups_by_day", NOON / DAY - 0.5];
  await signUp(service);
  assert((await service.kv.get(day)).versionstamp);
  await service.kv.set(day, new TextEncoder().encode("999"));

  assertEquals((await signUp(service)).status, 201);
  const refused = await signUp(service);

  const message = "At most 1,000 accounts can be created in a day. Try again in 43200 s.";
  assertEquals([refused.status, refused.body.code, refused.body.message], [429, "sign_up_limit", message]);
  assertEquals(refused.headers.get("ratelimit-policy"), '"day";q=1000;w=86400');
  service.now = midnight;
  assertEquals((await signUp(service)).status, 201);
});

Deno.test("sweepSignUps() removes accounts that signed up over 30 days ago, sent no request, and were not changed", async () => {
  await using service = await Harness.open();
  const made = [];
  for (service.address of ["idle", "used", "moved", "suspended"]) made.push((await signUp(service)).body);
  const [idle, used, moved, suspended] = made.map(({ id = "", apiKey = "" }) => ({ id, apiKey }));
  assert(idle && used && moved && suspended);
  await call(service, used.apiKey);
  await service.accounts.change(moved.id, { plan: "pro", limits: PLANS.limits.pro });
  await service.accounts.suspend(suspended.id, NOON);
  const { account: { id: operators } } = await service.createAccount();
  service.now = NOON + 1;
  const { id: late } = (await signUp(service)).body;

  assertEquals(await sweep(service, MONTH_LATER - 1), false);
  assertEquals((await service.accounts.list()).length, 6);
  assertEquals(await sweep(service, MONTH_LATER), false);

  const left = (await service.accounts.list()).map(({ holder }) => holder.id);
  assertEquals(left, [used.id, moved.id, suspended.id, operators, late].sort());
  assertEquals((await call(service, idle.apiKey)).code, "invalid_api_key");
  assertEquals(await service.countRows("sign_ups"), 1);
});

Deno.test("sweepSignUps() works in steps of 20 sign-ups", async () => {
  await using service = await Harness.open();
  for (const number of upTo(40)) await service.kv.set(["sign_ups", NOON, `acct_${number}`], encodeJson({}));

  const steps: unknown[] = [];
  for (let step = 0; step < 3; step++) {
    steps.push([await sweep(service, MONTH_LATER), await service.countRows("sign_ups")]);
  }

  assertEquals(steps, [[true, 20], [true, 0], [false, 0]]);
});

Deno.test("sweepCounts() removes the counts of hours and days before the previous one", async () => {
  await using service = await Harness.open();
  for (const now of [NOON, NOON + HOUR, NOON + DAY]) {
    service.now = now;
    assertEquals((await signUp(service)).status, 201);
  }
  const counts =
    async () => [await service.countRows("sign_ups_by_hour"), await service.countRows("sign_ups_by_day")];

  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR - 1), false);
  assertEquals(await counts(), [3, 2]);
  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR), false);
  assertEquals(await counts(), [2, 2]);
  await sweepCounts(service.store, NOON + 2 * DAY);
  assertEquals(await counts(), [0, 1]);
});
