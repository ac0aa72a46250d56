import { assert, assertEquals, assertMatch } from "@std/assert";
import type { AccountState } from "../../src/accounts/account_store.ts";
import type { Account } from "../../src/accounts/account.ts";
import { sweepCounts, sweepSignUps } from "../../src/accounts/sign_up.ts";
import { call, type HarnessRequest } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { PLANS } from "../support/things.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ONE = "POST /v1/accounts";

/** A function that removes accounts of a service. */
function removerOf({ accounts }: Harness): Parameters<typeof sweepSignUps>[1] {
  return (id, condition) => accounts.remove(id, condition);
}

/** Signs up. Returns the response with its body. */
async function signUp(
  service: Harness,
  request: HarnessRequest = { json: { name: "Zoë" } },
): Promise<{ status: number; headers: Headers; body: Record<string, string> }> {
  const response = await service.fetch(ONE, request);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** Number of rows in a table. */
async function countRows(service: Harness, table: string): Promise<number> {
  return (await Array.fromAsync(service.kv.list({ prefix: [table] }))).length;
}

Deno.test("createAccount() creates an account on the Free plan and returns its key", async () => {
  await using service = await Harness.open();

  const { status, headers, body } = await signUp(service);

  assertEquals(status, 201);
  assertEquals(headers.get("cache-control"), "no-store");
  const { id = "", apiKey = "", ...rest } = body;
  assertMatch(id, /^acct_[0-9A-Za-z]{16}$/);
  assertEquals(rest, { name: "Zoë", plan: "free" });
  const { limit, remaining } = await call(service, apiKey);
  assertEquals([limit, remaining], [60, 59]);
  const account = (await service.accounts.find(id))?.holder;
  assertEquals([account?.environment, account?.signedUp, account?.createdAt], ["staging", true, NOON]);
});

Deno.test("createAccount() allows an address five accounts per hour, and returns how many are left", async () => {
  await using service = await Harness.open();
  service.now = NOON + 1_000;

  for (const remaining of [4, 3, 2, 1, 0]) {
    const { status, headers } = await signUp(service);
    assertEquals([status, headers.get("x-ratelimit-limit")], [201, "5"]);
    assertEquals(headers.get("x-ratelimit-remaining"), `${remaining}`);
    assertEquals(headers.get("x-ratelimit-reset"), `${(NOON + HOUR) / 1_000}`);
    assertEquals(headers.get("ratelimit-policy"), '"hour";q=5;w=3600');
    assertEquals(headers.get("ratelimit"), `"hour";r=${remaining};t=3599`);
  }

  const { status, headers, body } = await signUp(service);
  const message = "At most 5 accounts can be created in an hour from one address. Try again in 3599 s.";
  assertEquals([status, body.code, body.message], [429, "sign_up_limit", message]);
  assertEquals([headers.get("retry-after"), headers.get("x-ratelimit-remaining")], ["3599", "0"]);
  assertEquals(await countRows(service, "accounts"), 5);

  service.address = "198.51.100.7";
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
  service.address = "192.0.2.1";
  service.now = NOON + HOUR - 1;
  assertEquals((await signUp(service)).headers.get("retry-after"), "1");
  service.now = NOON + HOUR;
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
});

Deno.test("createAccount() creates exactly five accounts for 30 simultaneous requests to two processes", async () => {
  await using one = await Harness.open();
  await using other = one.beside();

  const replies = await Promise.all(
    Array.from({ length: 30 }, (_, index) => signUp(index % 2 ? one : other)),
  );

  const made = replies.filter(({ status }) => status === 201);
  assertEquals(made.map(({ headers }) => headers.get("x-ratelimit-remaining")).sort(), [
    "0",
    "1",
    "2",
    "3",
    "4",
  ]);
  assertEquals(replies.filter(({ body }) => body.code === "sign_up_limit").length, 25);
  assertEquals(await countRows(one, "accounts"), 5);
});

Deno.test("createAccount() creates at most 1,000 accounts per day in total", async () => {
  await using service = await Harness.open();
  const midnight = NOON + DAY / 2;
  const day = ["sign_ups_by_day", NOON / DAY - 0.5];
  await signUp(service);
  assert((await service.kv.get(day)).versionstamp);
  await service.kv.set(day, new TextEncoder().encode("999"));

  assertEquals((await signUp(service)).status, 201);
  const { status, headers, body } = await signUp(service);

  const message = "At most 1,000 accounts can be created in a day. Try again in 43200 s.";
  assertEquals([status, body.code, body.message], [429, "sign_up_limit", message]);
  const names = ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
  const values = names.map((name) => Number(headers.get(name)));
  assertEquals(values, [43_200, 1_000, 0, midnight / 1_000]);
  assertEquals(headers.get("ratelimit"), '"day";r=0;t=43200');
  assertEquals(headers.get("ratelimit-policy"), '"day";q=1000;w=86400');
  service.now = midnight;
  assertEquals((await signUp(service)).status, 201);
});

Deno.test("createAccount() counts failed attempts as requests of the address, not as sign-ups", async () => {
  await using service = await Harness.open();

  for (let count = 0; count < 59; count++) {
    const { status, headers } = await signUp(service, { json: {} });
    assertEquals([status, headers.get("x-ratelimit-remaining")], [400, `${59 - count}`]);
  }

  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
  const { status, body } = await signUp(service);
  assertEquals([status, body.code], [429, "rate_limit_minute"]);
});

Deno.test("createAccount() creates nothing if sign-up is closed, or for an Idempotency-Key", async () => {
  await using open = await Harness.open();
  await using closed = await Harness.open({ signUpIsOpen: false });

  const repeatable = await signUp(open, { json: { name: "a" }, headers: { "idempotency-key": "1" } });
  const { status, headers, body } = await signUp(closed);

  assertEquals([repeatable.status, repeatable.body.code], [400, "invalid_request"]);
  assertEquals([status, body.code, headers.get("x-ratelimit-remaining")], [403, "sign_up_closed", "59"]);
  assertEquals([await countRows(open, "accounts"), await countRows(closed, "accounts")], [0, 0]);
});

Deno.test("sweepSignUps() removes accounts that signed up over 30 days ago and never sent a request", async () => {
  await using service = await Harness.open();
  const [idle, used] = [(await signUp(service)).body, (await signUp(service)).body];
  await call(service, used.apiKey);
  const { account: made } = await service.createAccount();
  service.now = NOON + 1;
  const late = (await signUp(service)).body;
  const sweep = (now: number) => sweepSignUps(service.store, removerOf(service), PLANS, now);
  const left = async () => (await service.accounts.list()).map(({ holder }) => holder.id);

  assertEquals(await sweep(NOON + 30 * DAY), false);
  assertEquals((await left()).length, 4);
  assertEquals(await sweep(NOON + 30 * DAY + 1), false);

  assertEquals(await left(), [used.id, made.id, late.id].sort());
  assertEquals((await call(service, idle.apiKey)).code, "invalid_api_key");
  assertEquals(await countRows(service, "sign_ups"), 1);
});

Deno.test.each<[what: string, change: Partial<Account>, status: number]>([
  ["moved to another plan", { plan: "pro", limits: PLANS.limits.pro }, 200],
  ["suspended", { suspendedAt: NOON }, 403],
])("sweepSignUps() keeps an account that an operator has %s", async (_, change, status) => {
  await using service = await Harness.open();
  const { id = "", apiKey } = (await signUp(service)).body;
  await service.accounts.change(id, change);

  assertEquals(await sweepSignUps(service.store, removerOf(service), PLANS, NOON + 30 * DAY + 1), false);

  assertEquals((await call(service, apiKey)).status, status);
  assertEquals(await countRows(service, "sign_ups"), 0);
});

Deno.test("sweepSignUps() works in steps, and keeps an account that sends a request during the sweep", async () => {
  await using service = await Harness.open();
  const made = [];
  for (let number = 0; number < 45; number++) {
    service.address = `${number}`;
    made.push((await signUp(service)).body);
  }
  // Sign-ups of the same time are in order of their IDs.
  const last = made.toSorted((a, b) => (a.id ?? "") < (b.id ?? "") ? -1 : 1).at(-1);
  const remove = async (id: string, condition: (state: AccountState) => boolean) => {
    if (id === last?.id) await call(service, last.apiKey);
    return await service.accounts.remove(id, condition);
  };
  const sweep = () => sweepSignUps(service.store, remove, PLANS, NOON + 30 * DAY + 1);

  const steps: unknown[] = [];
  for (let step = 0; step < 3; step++) steps.push([await sweep(), await countRows(service, "accounts")]);

  assertEquals(steps, [[true, 25], [true, 5], [false, 1]]);
  assertEquals((await call(service, last?.apiKey)).status, 200);
});

Deno.test("sweepCounts() removes the counts of hours and days before the previous one", async () => {
  await using service = await Harness.open();
  for (const now of [NOON, NOON + HOUR, NOON + DAY]) {
    service.now = now;
    assertEquals((await signUp(service)).status, 201);
  }
  const counts =
    async () => [await countRows(service, "sign_ups_by_hour"), await countRows(service, "sign_ups_by_day")];

  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR - 1), false);
  assertEquals(await counts(), [3, 2]);
  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR), false);
  assertEquals(await counts(), [2, 2]);
  await sweepCounts(service.store, NOON + 2 * DAY);
  assertEquals(await counts(), [0, 1]);
});

Deno.test("createAccount() enforces the hourly limit even if a process with a fast clock sweeps", async () => {
  await using behind = await Harness.open();
  const midnight = NOON + DAY / 2;
  behind.now = midnight - 1;
  for (let count = 0; count < 5; count++) assertEquals((await signUp(behind)).status, 201);

  await sweepCounts(behind.store, midnight);

  assertEquals((await signUp(behind)).body.code, "sign_up_limit");
  assertEquals([await countRows(behind, "accounts"), await countRows(behind, "sign_ups_by_day")], [5, 1]);
});
