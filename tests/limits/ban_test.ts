import { assert, assertEquals, assertGreater, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { pardon, reset, type Usage } from "../../src/limits/usage.ts";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, getBanned, tally } from "../support/client.ts";
import { slowly } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { jumpAhead, NOON } from "../support/time.ts";

const MINUTE = 60_000;

/** A service, and an account on the Free plan that has just been banned. */
async function withBanned(): Promise<{ service: Harness; id: string; apiKey: string }> {
  const service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  await getBanned(service, apiKey);
  return { service, id, apiKey };
}

async function usageOf(service: Harness, id: string): Promise<Usage | undefined> {
  return (await service.accounts.find(id))?.usage;
}

Deno.test("service admits requests after a ban is lifted during the commit that started it", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  await time.until(callAtOnce(61, [service], apiKey), 1_000);
  await time.advance(5_001);
  service.disturbance = {
    async commit({ apply }) {
      const result = await apply();
      // The check of versions takes longer than the rest of this commit.
      service.disturbance = { read: () => pause(300) };
      await pause(200);
      return result;
    },
  };
  const banned = callAtOnce(305, [service], apiKey);
  await time.advance(50);
  let bannedUntil = 0;
  await other.accounts.changeUsage(id, (usage) => {
    bannedUntil = usage.bannedUntil;
    return reset(pardon(usage), NOON);
  });

  const after = call(service, apiKey);

  assertGreater(bannedUntil, NOON);
  assertEquals((await time.until(after, 5_000)).status, 200);
  await time.until(banned, 5_000);
});

Deno.test("service bans a key at its 300th request after it could know of a refusal, if they are sequential", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount("free");

  for (let count = 0; count < 140 + 299; count++) {
    if (count === 140) jumpAhead(5_001);
    assertEquals((await call(service, apiKey)).code, count < 60 ? "" : "rate_limit_minute");
  }

  const { status, code, retryAfter, limit, remaining, reset } = await call(service, apiKey);
  assertEquals([status, code, retryAfter], [429, "key_banned", 300]);
  assertEquals([limit, remaining, reset], [60, 0, NOON / 1_000 + 300]);
});

Deno.test("service bans a key at its 300th request after it could know of a refusal, if they are simultaneous", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount("free");

  const burst = await callAtOnce(400, [service], apiKey);
  jumpAhead(5_001);
  const more = await callAtOnce(400, [service], apiKey);

  assertEquals(tally(burst), { 200: 60, "429 rate_limit_minute": 340 });
  assertEquals(tally(more), { "429 rate_limit_minute": 299, "429 key_banned": 101 });
});

Deno.test("service bans no fleet of seventy workers that each stop at their own 429", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount("free");
  await callAtOnce(61, [service], apiKey);
  jumpAhead(5_001);

  assertEquals(tally(await callAtOnce(70, [service], apiKey)), { "429 rate_limit_minute": 70 });
});

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

Deno.test("service judges each minute anew by the time of its first refusal", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount({ minute: 2, day: 9 });

  for (let minute = 0; minute < 3; minute++) {
    service.now = NOON + minute * MINUTE;
    jumpAhead(MINUTE);
    assertEquals(tally(await callAtOnce(20, [service], apiKey)), { 200: 2, "429 rate_limit_minute": 18 });
  }
});

Deno.test("service counts refusals of two processes together, and bans once in both", async () => {
  await using one = await Harness.open();
  await using other = one.beside();
  const { account: { id }, apiKey } = await one.createAccount("free");

  const codes = [];
  while (codes.at(-1) !== "key_banned") {
    codes.push((await call(codes.length % 3 === 0 ? other : one, apiKey)).code);
    if (codes.length === 80) jumpAhead(5_001);
    assert(codes.length < 1_000);
  }

  assertGreaterOrEqual(codes.filter((code) => code === "rate_limit_minute").length, 299);
  await call(other, apiKey);
  await other.app.settle(); // It sees the ban when it writes its refusals.
  for (const service of [one, other]) {
    const { code, retryAfter } = (await callAtOnce(70, [service], apiKey)).at(-1) ?? {};
    assertEquals([code, retryAfter], ["key_banned", 300]);
  }
  const usage = await usageOf(one, id);
  assertEquals([usage?.bans, usage?.bannedUntil], [1, NOON + 5 * MINUTE]);
});

Deno.test("service soon stores its number of refusals, even without further requests", async () => {
  await using service = await RecordingService.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  await callAtOnce(60, [service], apiKey);
  await call(service, apiKey);

  await service.time.advance(500);

  const usage = await usageOf(service, id);
  assertEquals([usage?.strikes, usage?.refused, usage?.refusedToday], [0, 1, 1]);
});

Deno.test.each([["none", 0], ["one", 1]])(
  "service stores only refusals since another process lifted a ban: %s",
  async (_, refused) => {
    await using service = await RecordingService.open();
    await using operator = service.beside();
    const { account: { id }, apiKey } = await service.createAccount("free");
    await callAtOnce(70, [service], apiKey);
    jumpAhead(5_001);
    await callAtOnce(10, [service], apiKey);

    await operator.accounts.changeUsage(id, pardon);
    await callAtOnce(refused, [service], apiKey);
    await service.time.advance(1_500);

    const usage = await usageOf(service, id);
    assertEquals([usage?.strikes, usage?.refused], [0, refused]);
  },
);

Deno.test("service keeps a ban after a restart, and serves other accounts", async () => {
  const { service, apiKey } = await withBanned();
  await using _ = service;
  const { apiKey: free } = await service.createAccount("free");

  await using restarted = service.beside();
  restarted.now = NOON + 2 * MINUTE;
  const { status, code, retryAfter } = await call(restarted, apiKey);

  assertEquals([status, code, retryAfter], [429, "key_banned", 180]);
  assertEquals((await call(restarted, free)).remaining, 59);
});

Deno.test("service does not extend a ban if requests continue, and admits them after its end", async () => {
  const { service, id, apiKey } = await withBanned();
  await using _ = service;
  const usage = await usageOf(service, id);

  for (let minute = 0; minute < 5; minute++) {
    service.now = NOON + minute * MINUTE;
    const replies = await callAtOnce(130, [service], apiKey);
    assertEquals(tally(replies), { "429 key_banned": 130 });
    assertEquals(replies[0]?.retryAfter, 300 - minute * 60);
  }
  assertEquals(await usageOf(service, id), usage);

  service.now = NOON + 5 * MINUTE;
  assertEquals((await call(service, apiKey)).remaining, 59);
});

Deno.test("service counts each ban, including the first one after days without any", async () => {
  const { service, apiKey } = await withBanned();
  await using _ = service;
  service.now += 2 * 86_400_000;
  await getBanned(service, apiKey);

  assertMatch(service.metrics.limits.bans.text(), / 2\n$/);
});
