import { assertEquals } from "@std/assert";
import { type Limits, PLAN_LIMITS } from "../../src/access/plans.ts";
import { Store } from "../../src/kv/store.ts";
import { Harness, NOON } from "../harness.ts";
import { call, callAtOnce, remainders, tally, upTo } from "./replies.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;
const NOON_SECONDS = NOON / 1_000;

async function usedBy(service: Harness, keyId: string): Promise<Limits & { refused: number } | undefined> {
  const usage = (await service.keys.find(keyId))?.usage;
  return usage && { minute: usage.minuteUsed, day: usage.dayUsed, refused: usage.refused };
}

for (const [plan, { minute }] of Object.entries(PLAN_LIMITS) as ["free" | "pro" | "business", Limits][]) {
  Deno.test(`Limiter admits exactly the ${minute} a minute of ${plan} when 40 more come at once`, async () => {
    using service = await Harness.open();
    const { key: { id }, secret } = await service.issueKey(plan);

    const replies = await callAtOnce(minute + 40, [service], secret);

    assertEquals(tally(replies), { 200: minute, "429 rate_limit_minute": 40 });
    assertEquals(remainders(replies), upTo(minute));
    assertEquals(new Set(replies.map(({ limit }) => limit)), new Set([minute]));
    assertEquals(new Set(replies.map(({ reset }) => reset)), new Set([NOON_SECONDS + 60]));
    assertEquals(replies.filter(({ retryAfter }) => retryAfter === 60).length, 40);
    assertEquals(await usedBy(service, id), { minute, day: minute, refused: 40 });
  });

  Deno.test(`Limiter admits exactly the ${minute} a minute of ${plan} when two instances share them`, async () => {
    using kv = await Deno.openKv(":memory:");
    const services = [10, 100].map((maxChecks) => new Harness(kv, new Store(kv, { maxChecks })));
    const { key: { id }, secret } = await new Harness(kv).issueKey(plan);

    const replies = await callAtOnce(minute + 40, services, secret);

    assertEquals(tally(replies), { 200: minute, "429 rate_limit_minute": 40 });
    assertEquals(remainders(replies), upTo(minute));
    assertEquals(await usedBy(new Harness(kv), id), { minute, day: minute, refused: 40 });
  });
}

Deno.test("Limiter admits exactly the limit when requests alternate between two instances", async () => {
  using kv = await Deno.openKv(":memory:");
  const [one, other] = [new Harness(kv), new Harness(kv)];
  const { secret } = await one.issueKey("free");

  for (let remaining = 59; remaining >= 0; remaining--) {
    const reply = await call(remaining % 2 === 0 ? one : other, secret);
    assertEquals([reply.status, reply.remaining], [200, remaining]);
  }

  for (const service of [one, other, new Harness(kv)]) {
    assertEquals((await call(service, secret)).code, "rate_limit_minute");
  }
});

Deno.test("Limiter admits exactly the day's limit, and the headers then describe the day", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey({ minute: 60, day: 50 });

  const replies = await callAtOnce(90, [service], secret);

  assertEquals(tally(replies), { 200: 50, "429 rate_limit_day": 40 });
  assertEquals(remainders(replies), upTo(50));
  assertEquals(new Set(replies.map(({ limit }) => limit)), new Set([50]));
  assertEquals(new Set(replies.map(({ reset }) => reset)), new Set([MIDNIGHT / 1_000]));
  assertEquals(replies.filter(({ retryAfter }) => retryAfter === 43_200).length, 40);
  assertEquals(await usedBy(service, id), { minute: 50, day: 50, refused: 40 });
});

Deno.test("Limiter admits again from the next minute on", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey("free");
  await callAtOnce(60, [service], secret);

  service.now = NOON + MINUTE - 1;
  assertEquals((await call(service, secret)).code, "rate_limit_minute");

  service.now = NOON + MINUTE;
  const replies = await callAtOnce(100, [service], secret);
  assertEquals(tally(replies), { 200: 60, "429 rate_limit_minute": 40 });
  assertEquals(remainders(replies), upTo(60));
  assertEquals(new Set(replies.map(({ reset }) => reset)), new Set([NOON_SECONDS + 120]));
});

Deno.test("Limiter admits again from the next UTC day on", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey({ minute: 60, day: 50 });
  await callAtOnce(50, [service], secret);

  service.now = MIDNIGHT - 1;
  const late = await call(service, secret);
  assertEquals([late.code, late.retryAfter], ["rate_limit_day", 1]);

  service.now = MIDNIGHT;
  const replies = await callAtOnce(60, [service], secret);
  assertEquals(tally(replies), { 200: 50, "429 rate_limit_day": 10 });
  assertEquals(new Set(replies.map(({ reset }) => reset)), new Set([(MIDNIGHT + DAY) / 1_000]));
});

Deno.test("Limiter charges neither window for a request that one of them refuses", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey({ minute: 10, day: 14 });

  assertEquals(tally(await callAtOnce(15, [service], secret)), { 200: 10, "429 rate_limit_minute": 5 });
  assertEquals(await usedBy(service, id), { minute: 10, day: 10, refused: 5 });

  service.now += MINUTE;
  assertEquals(tally(await callAtOnce(9, [service], secret)), { 200: 4, "429 rate_limit_day": 5 });
  assertEquals(await usedBy(service, id), { minute: 4, day: 14, refused: 5 });
});

Deno.test("Limiter reopens no window when the clock goes back", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey({ minute: 5, day: 9 });
  await callAtOnce(5, [service], secret);

  for (const past of [NOON - 1, NOON - MINUTE, NOON - DAY]) {
    service.now = past;
    const reply = await call(service, secret);
    assertEquals([reply.code, reply.reset], ["rate_limit_minute", NOON_SECONDS + 60]);
  }
});

Deno.test("Limiter counts each key by itself when many call at once", async () => {
  using kv = await Deno.openKv(":memory:");
  const services = [10, 100].map((maxChecks) => new Harness(kv, new Store(kv, { maxChecks })));
  const keys = await Promise.all(
    upTo(40).map((number) => new Harness(kv).issueKey({ minute: number + 1, day: 100 })),
  );

  const perKey = await Promise.all(keys.map(({ secret }) => callAtOnce(41, services, secret)));

  perKey.forEach((replies, number) => {
    const refused = Math.min(40 - number, number + 1);
    const banned = 40 - number - refused;
    assertEquals(remainders(replies), upTo(number + 1));
    assertEquals(replies.filter(({ code }) => code === "rate_limit_minute").length, refused);
    assertEquals(replies.filter(({ code }) => code === "key_banned").length, banned);
  });
});

Deno.test("Limiter starts from what was used when the service starts again", async () => {
  using first = await Harness.open();
  const { secret } = await first.issueKey("free");
  await callAtOnce(25, [first], secret);

  const restarted = new Harness(first.kv);
  const replies = await callAtOnce(75, [restarted], secret);

  assertEquals(tally(replies), { 200: 35, "429 rate_limit_minute": 40 });
  assertEquals(remainders(replies), upTo(35));
});
