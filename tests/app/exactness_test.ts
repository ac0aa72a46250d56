// Limits and bans as clients see them, and what they cost: KV operations for each request.
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { apiKeyKey } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { pause } from "../../src/base/time.ts";
import { reset } from "../../src/limits/usage.ts";
import { call, callAtOnce, getBanned, remainders, tally, upTo } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const MIDNIGHT = NOON + 43_200_000;
const FIVE = { minute: 5, day: 1_000 };

Deno.test.each([[60, 1], [300, 2]])(
  "service admits exactly %i requests of 40 more that arrive at once (processes: %i)",
  async (minute, processes) => {
    await using one = await Harness.open();
    await using other = one.beside();
    const { account: { id }, apiKey } = await one.createAccount({ minute, day: 1_000 });

    const replies = await callAtOnce(minute + 40, [one, other].slice(0, processes), apiKey);

    assertEquals(tally(replies), { 200: minute, "429 rate_limit_minute": 40 });
    if (processes === 1) assertEquals(remainders(replies), upTo(minute));
    await one.app.close();
    const { used, usedToday } = await one.accounts.usage(id);
    assertEquals([used, usedToday], [minute, minute]);
  },
);

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
    await service.app.close();
    service.now = MIDNIGHT;
    if (behind > 0) await admitted(service, key);

    await service.accounts.changeUsage(id, (usage) => reset(usage, service.now - behind));

    assertEquals(await admitted(service, key), [1, 7]);
  },
);

Deno.test("service counts toward a ban only requests that arrived five seconds after a refusal", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount({ minute: 2, day: 9 });
  await callAtOnce(3, [service], apiKey);
  await time.advance(5_000);
  service.disturbance = { read: () => pause(100) };

  const late = await time.until(callAtOnce(20, [service], apiKey), 1_000);

  assertEquals(tally(late), { "429 rate_limit_minute": 20 });
  await time.until(service.app.close(), 1_000);
  assertEquals((await time.until(service.accounts.usage(id), 1_000)).strikes, 0);
});

/** A request that is charged, but whose handler reads and writes nothing. */
const NOWHERE = "GET /v1/nowhere";
/** Tables with the rows of an account. */
const OF_ACCOUNTS: readonly Deno.KvKeyPart[] = ["accounts", "api_keys", "usage"];

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
