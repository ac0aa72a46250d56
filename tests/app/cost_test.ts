import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { apiKeyKey } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { call, callAtOnce, getBanned, tally, upTo } from "../support/client.ts";
import { slowly } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";

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

Deno.test("service keeps no lease of a commit that ends while it settles", async () => {
  const service = await RecordingService.open();
  using time = service.time;
  const { account: { id }, apiKey } = await service.createAccount({ minute: 1_000, day: 9_000 });
  const isRenewed = async () => {
    const before = service.commits.length;
    call(service, apiKey, NOWHERE);
    await time.advance(1);
    return service.commits.length > before;
  };
  for (let count = 0; count < 100; count++) await isRenewed();
  service.disturbance = { commit: slowly };
  let isUnderWay = false;
  for (let count = 0; count < 1_000 && !isUnderWay; count++) isUnderWay = await isRenewed();
  assert(isUnderWay);

  await time.until(service.app.settle(), 100);

  assertEquals((await service.accounts.find(id))?.usage.leased, 0);
});

Deno.test("service needs one check of versions and no commit if a window is full", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount("free");
  await callAtOnce(60, [service], apiKey);
  service.forget();

  for (let count = 0; count < 10; count++) {
    assertEquals((await call(service, apiKey)).code, "rate_limit_minute");
  }

  service.assertCost({ reads: 10, commits: 0 });
});

Deno.test("service reads and writes no rows of banned and closed accounts while others send requests", async () => {
  await using service = await RecordingService.open();
  const [active, banned, closed] = await Promise.all(upTo(3).map(() => service.createAccount("free")));
  assert(active && banned && closed);
  await getBanned(service, banned.apiKey);
  await service.accounts.close(closed.account.id);
  const callAll = () => Promise.all([active, banned, closed].map(({ apiKey }) => call(service, apiKey)));
  await callAll();

  for (let count = 0; count < 3; count++) {
    await service.time.advance(1_000);
    service.forget();
    const codes = (await callAll()).map(({ code }) => code);

    assertEquals(codes, ["", "key_banned", "invalid_api_key"]);
    service.assertCost({ reads: 2, commits: 1 });
    assertEquals(service.reads.flat().filter(([table = ""]) => OF_ACCOUNTS.includes(table)), []);
    // A marker, and both rows of the active account.
    assertLessOrEqual(service.commits[0]?.checks ?? 0, 3);
  }
});

Deno.test("service reads nothing for a mistyped key, a key for the other environment, or no key", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  const typo = apiKey.slice(0, -1) + (apiKey.endsWith("0") ? "1" : "0");
  service.forget();

  assertEquals((await call(service)).status, 401);
  for (const key of [typo, apiKey.slice(1), "x", KEYS.create("production")]) {
    assertEquals((await call(service, key)).status, 401);
  }

  service.assertCost({ reads: 0, commits: 0 });
});

Deno.test("service looks a key up once, however many spaces precede it", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  service.forget();

  for (let count = 0; count < 3; count++) {
    const headers = { authorization: `Bearer${" ".repeat(50 + count)}${apiKey}` };
    assertEquals((await service.fetch(NOWHERE, { headers })).status, 404);
  }

  const lookUps = service.reads.flat().filter(([table]) => table === "api_keys");
  assertEquals(lookUps, [apiKeyKey(hashApiKey(apiKey))]);
});
