import { assertEquals } from "@std/assert";
import { type Limits, reset } from "../../src/limits/usage.ts";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, remainders, type Reply, tally, upTo } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { PLANS } from "../support/things.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;

/** The stored usage of an account, once everything is written. */
async function usedBy(service: Harness, id: string): Promise<Limits> {
  await service.app.settle();
  const { used, usedToday } = await service.accounts.usage(id);
  return { minute: used, day: usedToday };
}

/** Asserts the limit in all responses, and Retry-After in refusals. */
function assertAll(replies: readonly Reply[], limit: number, reset: number, wait: number): void {
  for (const reply of replies) {
    const expected = [limit, reset / 1_000, reply.status === 429 ? wait : undefined];
    assertEquals([reply.limit, reply.reset, reply.retryAfter], expected);
  }
}

for (const [plan, processes] of [["free", 1], ["business", 2]] as const) {
  const { minute } = PLANS.limits[plan];
  Deno.test(`service admits exactly ${minute} of ${minute + 40} simultaneous requests (${plan}, processes: ${processes})`, async () => {
    await using one = await Harness.open();
    await using other = one.beside();
    const { account: { id }, apiKey } = await one.createAccount(plan);

    const replies = await callAtOnce(minute + 40, [one, other].slice(0, processes), apiKey);

    assertEquals(tally(replies), { 200: minute, "429 rate_limit_minute": 40 });
    assertAll(replies, minute, NOON + MINUTE, 60);
    if (processes === 1) assertEquals(remainders(replies), upTo(minute));
    assertEquals(await usedBy(one, id), { minute, day: minute });
  });
}

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

Deno.test("service refuses requests after 3 s if a dead process holds the permits, and later ones at once", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount({ minute: 10, day: 100 });
  const full = { minute: NOON, used: 10, usedToday: 10, leased: 2, leasedToday: 2 };
  await service.accounts.changeUsage(id, (usage) => ({ ...usage, ...full }));

  const replies = await time.until(callAtOnce(3, [service], apiKey), 4_000);
  assertEquals(tally(replies), { "429 rate_limit_minute": 3 });
  assertEquals(time.now, 3_000);

  assertEquals((await call(service, apiKey)).code, "rate_limit_minute");
  service.now += MINUTE;
  assertEquals((await call(service, apiKey)).remaining, 9);
});

for (const [what, ms] of [["at once", 0], ["every 5 ms", 5], ["every 40 ms", 40]] as const) {
  Deno.test(`service admits 60 of the first 90 requests that three processes get ${what}`, async () => {
    await using one = await RecordingService.open();
    await using two = one.beside();
    await using three = one.beside();
    const services = [one, two, three];
    const { time } = one;
    const { account: { id }, apiKey } = await one.createAccount("free");

    const replies = upTo(90).map(async (index) => {
      await pause(ms * index);
      const [service = one] = services.slice(index % 3);
      return await call(service, apiKey);
    });

    const outcomes = tally(await time.until(Promise.all(replies), 20_000));
    assertEquals(outcomes, { 200: 60, "429 rate_limit_minute": 30 });
    await time.advance(4_000);
    const { used, leased } = await one.accounts.usage(id);
    assertEquals([used, leased], [60, 0]);
  });
}

Deno.test("service reports the total of a past day without unused leased permits", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  service.now = MIDNIGHT - 1;
  for (let count = 0; count < 30; count++) await call(service, key);
  service.now = MIDNIGHT;

  const days = await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();

  assertEquals(days.map(({ admitted }: { admitted: number }) => admitted), [1, 30]);
});

for (const [clock, behind] of [["", 0], [" whose clock is behind", 1_000]] as const) {
  Deno.test(`service keeps the previous day's total when an operator${clock} resets an account`, async () => {
    await using service = await Harness.open();
    const { account: { id }, apiKey: key } = await service.createAccount("free");
    const days = async () => await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();
    service.now = MIDNIGHT - 1;
    for (let count = 0; count < 7; count++) await call(service, key);
    await service.app.settle();
    service.now = MIDNIGHT;
    if (behind > 0) await days();

    await service.accounts.changeUsage(id, (usage) => reset(usage, service.now - behind));

    assertEquals((await days()).map(({ admitted }: { admitted: number }) => admitted), [1, 7]);
  });
}
