import { assert, assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, getBanned, tally } from "../support/client.ts";
import { slowly } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { jumpAhead, NOON } from "../support/time.ts";

const MINUTE = 60_000;

Deno.test("service bans a key at its 300th request after it could know of a refusal, if they are simultaneous", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount("free");

  const burst = await callAtOnce(400, [service], apiKey);
  jumpAhead(5_001);
  const more = await callAtOnce(400, [service], apiKey);

  assertEquals(tally(burst), { 200: 60, "429 rate_limit_minute": 340 });
  assertEquals(tally(more), { "429 rate_limit_minute": 299, "429 key_banned": 101 });
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
  const usage = await one.accounts.usage(id);
  assertEquals([usage.bans, usage.bannedUntil], [1, NOON + 5 * MINUTE]);
});

Deno.test("service keeps a ban after a restart, does not extend it, and admits requests after its end", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  const { apiKey: free } = await service.createAccount("free");
  await getBanned(service, apiKey);
  const usage = await service.accounts.usage(id);

  await using restarted = service.beside();
  for (let minute = 0; minute < 5; minute++) {
    restarted.now = NOON + minute * MINUTE;
    const replies = await callAtOnce(130, [restarted], apiKey);
    assertEquals(tally(replies), { "429 key_banned": 130 });
    const { limit, remaining, reset, retryAfter } = replies[0] ?? {};
    assertEquals([limit, remaining, reset, retryAfter], [60, 0, NOON / 1_000 + 300, 300 - minute * 60]);
  }
  assertEquals((await call(restarted, free)).remaining, 59);
  assertEquals(await service.accounts.usage(id), usage);

  restarted.now = NOON + 5 * MINUTE;
  assertEquals((await call(restarted, apiKey)).remaining, 59);
  assertMatch(service.metrics.limits.bans.text(), / 1\n$/);
});
