// Limits and bans as clients see them, and what they cost: KV operations for each request.
import { assert, assertEquals, assertLessOrEqual, assertMatch } from "@std/assert";
import { apiKeyKey } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { pause } from "../../src/base/time.ts";
import { type Limits, reset } from "../../src/limits/usage.ts";
import { call, callAtOnce, getBanned, remainders, type Reply, tally, upTo } from "../support/client.ts";
import { slowly } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";
import { jumpAhead, NOON } from "../support/time.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;
const FIVE: Limits = { minute: 5, day: 1_000 };

/** Asserts the limit in all responses, and Retry-After in refusals. */
function assertAll(replies: readonly Reply[], limit: number, reset: number, wait: number): void {
  for (const reply of replies) {
    const expected = [limit, reset / 1_000, reply.status === 429 ? wait : undefined];
    assertEquals([reply.limit, reply.reset, reply.retryAfter], expected);
  }
}

Deno.test.each([[60, 1], [300, 2]])(
  "service admits exactly %i requests of 40 more that arrive at once (processes: %i)",
  async (minute, processes) => {
    await using one = await Harness.open();
    await using other = one.beside();
    const { account: { id }, apiKey } = await one.createAccount({ minute, day: 1_000 });

    const replies = await callAtOnce(minute + 40, [one, other].slice(0, processes), apiKey);

    assertEquals(tally(replies), { 200: minute, "429 rate_limit_minute": 40 });
    assertAll(replies, minute, NOON + MINUTE, 60);
    if (processes === 1) assertEquals(remainders(replies), upTo(minute));
    await one.app.settle();
    const { used, usedToday } = await one.accounts.usage(id);
    assertEquals([used, usedToday], [minute, minute]);
  },
);

for (
  const [window, limits, code, end, next] of [
    ["minute", { minute: 50, day: 1_000 }, "429 rate_limit_minute", NOON + MINUTE, NOON + 2 * MINUTE],
    ["day", { minute: 60, day: 50 }, "429 rate_limit_day", MIDNIGHT, MIDNIGHT + DAY],
  ] as const
) {
  Deno.test(`service admits requests again from the next UTC ${window}`, async () => {
    await using service = await Harness.open();
    const { apiKey } = await service.createAccount(limits);
    await callAtOnce(50, [service], apiKey);

    service.now = end - 1;
    const late = await callAtOnce(3, [service], apiKey);
    assertEquals(tally(late), { [code]: 3 });
    assertAll(late, 50, end, 1);

    service.now = end;
    const replies = await callAtOnce(90, [service], apiKey);
    assertEquals(tally(replies), { 200: 50, [code]: 40 });
    assertEquals(remainders(replies), upTo(50));
    assertAll(replies, 50, next, (next - end) / 1_000);
  });
}

/** Permits used on the days until today, as the account sees them. */
async function admitted(service: Harness, key: string): Promise<number[]> {
  const days = await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();
  return days.map(({ admitted }: { admitted: number }) => admitted);
}

Deno.test("service reports the total of a past day without unused leased permits", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  service.now = MIDNIGHT - 1;
  for (let count = 0; count < 30; count++) await call(service, key);
  service.now = MIDNIGHT;

  assertEquals(await admitted(service, key), [1, 30]);
});

Deno.test.each([["", 0], [" whose clock is behind", 1_000]])(
  "service keeps the previous day's total when an operator%s resets an account",
  async (_, behind) => {
    await using service = await Harness.open();
    const { account: { id }, apiKey: key } = await service.createAccount("free");
    service.now = MIDNIGHT - 1;
    for (let count = 0; count < 7; count++) await call(service, key);
    await service.app.settle();
    service.now = MIDNIGHT;
    if (behind > 0) await admitted(service, key);

    await service.accounts.changeUsage(id, (usage) => reset(usage, service.now - behind));

    assertEquals(await admitted(service, key), [1, 7]);
  },
);

Deno.test("service counts toward a ban only requests that arrived five seconds after a refusal of the minute", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount({ minute: 2, day: 9 });
  await callAtOnce(3, [service], apiKey);

  await time.advance(5_000);
  assertEquals(tally(await callAtOnce(20, [service], apiKey)), { "429 rate_limit_minute": 20 });
  service.disturbance = { read: () => pause(100), commit: slowly };
  const early = callAtOnce(20, [service], apiKey); // They get their responses later than that.
  await time.advance(1);
  const late = callAtOnce(11, [service], apiKey);
  const replies = await time.until(Promise.all([early, late]), 1_000);

  assertEquals(replies.map(tally), [
    { "429 rate_limit_minute": 20 },
    { "429 rate_limit_minute": 9, "429 key_banned": 2 },
  ]);
  service.disturbance = {};
  await time.until(service.app.settle(), 1_000);
  const { strikes, refused, refusedToday } = await service.accounts.usage(id);
  assertEquals([strikes, refused, refusedToday], [10, 51, 51]);
});

Deno.test("service counts refusals of two processes together, and bans once in both", async () => {
  await using one = await Harness.open();
  await using other = one.beside();
  const { account: { id }, apiKey } = await one.createAccount(FIVE);

  const codes = [];
  while (codes.at(-1) !== "key_banned") {
    codes.push((await call(codes.length % 3 === 0 ? other : one, apiKey)).code);
    if (codes.length === 10) jumpAhead(5_001);
    assert(codes.length < 100);
  }

  assert(codes.filter((code) => code === "rate_limit_minute").length >= 24);
  await call(other, apiKey);
  await other.app.settle(); // It sees the ban when it writes its refusals.
  for (const service of [one, other]) {
    const { code, retryAfter } = (await callAtOnce(10, [service], apiKey)).at(-1) ?? {};
    assertEquals([code, retryAfter], ["key_banned", 300]);
  }
  const usage = await one.accounts.usage(id);
  assertEquals([usage.bans, usage.bannedUntil], [1, NOON + 5 * MINUTE]);
});

Deno.test("service keeps a ban after a restart, does not extend it, and admits requests after its end", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount(FIVE);
  await getBanned(service, apiKey, 5);
  const usage = await service.accounts.usage(id);

  await using restarted = service.beside();
  for (let minute = 0; minute < 5; minute++) {
    restarted.now = NOON + minute * MINUTE;
    const replies = await callAtOnce(30, [restarted], apiKey);
    assertEquals(tally(replies), { "429 key_banned": 30 });
    assertAll(replies, 5, NOON + 5 * MINUTE, 300 - minute * 60);
  }
  assertEquals(await service.accounts.usage(id), usage);

  restarted.now = NOON + 5 * MINUTE;
  assertEquals((await call(restarted, apiKey)).remaining, 4);
  assertMatch(service.metrics.limits.bans.text(), / 1\n$/);
});

/** A request that is charged, but whose handler reads and writes nothing. */
const NOWHERE = "GET /v1/nowhere";
/** Tables with the rows of an account. */
const OF_ACCOUNTS: readonly Deno.KvKeyPart[] = ["accounts", "api_keys", "usage"];

Deno.test("service needs one check of versions and one commit per request at a low rate", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount("free");
  await call(service, apiKey, NOWHERE);

  for (let remaining = 58; remaining > 50; remaining--) {
    await service.time.advance(1_000);
    service.forget();

    assertEquals((await call(service, apiKey, NOWHERE)).remaining, remaining);
    service.assertCost({ reads: 1, commits: 1 });
  }
});

Deno.test("service reads no rows of an account for requests with an expired key", async () => {
  await using service = await RecordingService.open();
  const { account: { id }, apiKey } = await service.createAccount();
  const renewed = await service.accounts.rotate(id, 1_000);
  for (const key of [apiKey, renewed?.apiKey]) await call(service, key, NOWHERE);
  await service.time.advance(1_000);
  service.now += 2_000;
  service.forget();

  const reply = await call(service, apiKey, NOWHERE);

  assertEquals(reply.limit, 60);
  service.assertCost({ reads: 1, commits: 0 });
});

Deno.test("service reads an account once if its first 500 requests arrive at once, and then needs one check and one commit", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();

  for (const reads of [3, 1]) {
    service.forget();
    const replies = await callAtOnce(500, [service], apiKey, NOWHERE);
    assertEquals(tally(replies), { "404 not_found": 500 });
    service.assertCost({ reads, commits: 1 });
    await service.time.advance(1_000);
  }
});

Deno.test("service needs few commits at a high rate", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();

  for (let remaining = 999; remaining >= 500; remaining--) {
    assertEquals((await call(service, apiKey, NOWHERE)).remaining, remaining);
    await time.advance(1);
  }

  assertLessOrEqual(service.commits.length, 50);
  await time.advance(1_000);
  const usage = await service.accounts.usage(id);
  assertEquals([usage.used, usage.leased], [500, 0]);
});

Deno.test("service reads and writes no rows of exhausted, banned and closed accounts while others send requests", async () => {
  await using service = await RecordingService.open();
  const limits = ["free", { minute: 3, day: 9 }, FIVE, FIVE] as const;
  const issued = await Array.fromAsync(limits, (of) => service.createAccount(of));
  const [, exhausted, banned, closed] = issued;
  assert(exhausted && banned && closed);
  await callAtOnce(3, [service], exhausted.apiKey);
  await getBanned(service, banned.apiKey, 5);
  await service.accounts.close(closed.account.id);
  const callAll = () => Promise.all(issued.map(({ apiKey }) => call(service, apiKey)));
  await callAll();

  for (let count = 0; count < 3; count++) {
    await service.time.advance(1_000);
    service.forget();
    const codes = (await callAll()).map(({ code }) => code);

    assertEquals(codes, ["", "rate_limit_minute", "key_banned", "invalid_api_key"]);
    service.assertCost({ reads: 2, commits: 1 });
    assertEquals(service.reads.flat().filter(([table = ""]) => OF_ACCOUNTS.includes(table)), []);
    // A marker, and both rows of the active account.
    assertLessOrEqual(service.commits[0]?.checks ?? 0, 3);
  }
});

Deno.test("service reads nothing without a key that may be valid, and looks one up once, whatever precedes it", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  const typo = apiKey.slice(0, -1) + (apiKey.endsWith("0") ? "1" : "0");
  service.forget();

  for (const key of [undefined, typo, apiKey.slice(1), "x", KEYS.create("production")]) {
    assertEquals((await call(service, key)).status, 401);
  }
  service.assertCost({ reads: 0, commits: 0 });
  for (let count = 0; count < 3; count++) {
    const headers = { authorization: `Bearer${" ".repeat(50 + count)}${apiKey}` };
    assertEquals((await service.fetch(NOWHERE, { headers })).status, 404);
  }
  const lookUps = service.reads.flat().filter(([table]) => table === "api_keys");
  assertEquals(lookUps, [apiKeyKey(hashApiKey(apiKey))]);
});
