import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, remainders, type Reply, tally, upTo } from "../support/client.ts";
import { type Harness, RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { KEYS } from "../support/things.ts";

const SECOND = 1_000;
const MINUTE = 60_000;

/** Sends requests, each with a different unknown key. */
function callWithUnknownKeys(count: number, service: Harness): Promise<Reply[]> {
  return Promise.all(upTo(count).map(() => call(service, KEYS.create("staging"))));
}

/** Number of keys whose account a service has read. */
function keysRead({ reads }: RecordingService): number {
  return reads.flat().filter(([table]) => table === "api_keys").length;
}

Deno.test.each([
  ["no key", "missing_api_key", undefined],
  ["a mistyped key", "invalid_api_key", "as_test_mistyped"],
  ["an unknown key", "invalid_api_key", KEYS.create("staging")],
  ["a key for the other environment", "invalid_api_key", KEYS.create("production")],
])(
  "service returns 401 to an address with %s 60 times a minute, and then 429, but never a ban",
  async (_, code, key) => {
    await using service = await RecordingService.open();
    const { apiKey } = await service.createAccount("free");
    await call(service, apiKey);

    for (let minute = 0; minute < 6; minute++) {
      service.now = NOON + minute * MINUTE;
      const replies = await callAtOnce(200, [service], key);

      assertEquals(tally(replies), { [`401 ${code}`]: 60, "429 rate_limit_minute": 140 });
      assertEquals(replies.slice(0, 60).map(({ remaining }) => remaining).sort((a, b) => a - b), upTo(60));
      for (const { status, limit, reset, retryAfter } of replies) {
        assertEquals([limit, reset], [60, service.now / 1_000 + 60]);
        assertEquals(retryAfter, status === 429 ? 60 : undefined);
      }
    }
    assertEquals((await call(service, apiKey)).status, 200);
    const { headers, json } = await call(service);
    assertEquals(headers.get("ratelimit-policy"), '"minute";q=60;w=60');
    assertEquals(headers.get("ratelimit"), '"minute";r=0;t=60');
    const why = "More than 60 requests in a minute without a valid API key. Try again in 60 s.";
    assertEquals(json, { code: "rate_limit_minute", message: why, status: 429 });
    service.address = "2001:db8::/64";
    assertEquals((await call(service)).remaining, 59);
  },
);

Deno.test("service looks up 65 of 2,000 unknown keys at once, and five more in each second after that", async () => {
  await using service = await RecordingService.open();
  assertEquals(tally(await callWithUnknownKeys(2_000, service)), {
    "401 invalid_api_key": 60,
    "429 rate_limit_minute": 1_940,
  });
  assertEquals(keysRead(service), 65);

  for (const second of [1, 2, 10]) {
    service.now = NOON + second * SECOND;
    const replies = await callWithUnknownKeys(200, service);
    assertEquals(tally(replies), { "429 rate_limit_minute": 200 });
    assertEquals(replies.map(({ retryAfter }) => retryAfter), Array(200).fill(60 - second));
    assertEquals(keysRead(service), 60 + 5 * (second + 1));
  }
});

Deno.test("service serves 200 new keys of one address at once, and charges nothing to it", async () => {
  await using service = await RecordingService.open();
  const accounts = await Promise.all(upTo(200).map(() => service.createAccount()));
  service.disturbance = { read: () => pause(20) };

  const replies = accounts.map(({ apiKey }) => call(service, apiKey));

  assertEquals(tally(await service.time.until(Promise.all(replies), 10_000)), { 200: 200 });
  assertEquals((await call(service)).remaining, 59);
});

Deno.test("service gives an address back its request as soon as the key is found, or if the look-up fails", async () => {
  await using service = await RecordingService.open();
  const { account, apiKey } = await service.createAccount();
  await service.accounts.suspend(account.id, NOON);
  service.expectsErrors = true;
  service.disturbance = { read: () => Promise.reject(new TypeError("connection closed")) };
  const failed = await service.time.until(callWithUnknownKeys(70, service), 10_000);
  service.disturbance = {};

  const { status, remaining } = await call(service, apiKey);

  assertEquals(tally(failed), { "503 store_unavailable": 70 });
  assertEquals([status, remaining], [403, 59]);
});

Deno.test("service looks up every unknown key of an address that is not, or no longer, spent", async () => {
  await using service = await RecordingService.open();
  await callWithUnknownKeys(80, service);
  service.forget();

  service.address = "192.0.2.2";
  assertEquals(tally(await callWithUnknownKeys(50, service)), { "401 invalid_api_key": 50 });
  service.address = "192.0.2.1";
  service.now += MINUTE;
  assertEquals(tally(await callWithUnknownKeys(50, service)), { "401 invalid_api_key": 50 });

  assertEquals(keysRead(service), 100);
});

Deno.test("service serves a known key from a spent address after accounts have changed", async () => {
  await using service = await RecordingService.open();
  const [known, other] = [await service.createAccount(), await service.createAccount()];
  await call(service, known.apiKey);
  await callWithUnknownKeys(100, service);

  const before = await callAtOnce(50, [service], known.apiKey);
  await service.accounts.change(other.account.id, { name: "changed" });
  await service.accounts.change(known.account.id, { name: "changed" });
  const after = await callAtOnce(50, [service], known.apiKey);

  assertEquals(tally([...before, ...after]), { 200: 100 });
});

Deno.test("service serves a new key from a spent address as soon as it has a read left", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  await callAtOnce(60, [service]);
  await callWithUnknownKeys(5, service);

  const refused = await call(service, apiKey);
  service.now += SECOND;
  const served = await callAtOnce(50, [service], apiKey);
  await callWithUnknownKeys(100, service);
  const again = await call(service, apiKey);

  assertEquals([refused.status, refused.code, refused.retryAfter], [429, "rate_limit_minute", 60]);
  assertEquals(tally([...served, again]), { 200: 51 });
  assertEquals(remainders([...served, again]), upTo(1_000).slice(-51));
});

Deno.test("service uses up none of a spent address's reads for a key that it knows is revoked", async () => {
  await using service = await RecordingService.open();
  const [ended, other] = [await service.createAccount(), await service.createAccount()];
  await call(service, ended.apiKey);
  await service.accounts.change(ended.account.id, { closedAt: service.now });
  await service.time.until(call(service, ended.apiKey), 1_000);
  await callAtOnce(60, [service]);

  const replies = await callAtOnce(50, [service], ended.apiKey);

  assertEquals(tally(replies), { "429 rate_limit_minute": 50 });
  assertEquals((await call(service, other.apiKey)).status, 200);
});

Deno.test("service refuses requests of a spent address after the look-ups under way, which share reads", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  await callAtOnce(60, [service]);
  service.disturbance = { read: () => pause(20) };
  const key = KEYS.create("staging");
  service.forget();

  const replies: Promise<Reply>[] = [];
  for (let ms = 0; ms < 200; ms++) {
    replies.push(call(service, key));
    await time.advance(1);
  }

  assertEquals(tally(await time.until(Promise.all(replies), 1_000)), { "429 rate_limit_minute": 200 });
  assertEquals(keysRead(service), 2);
});
