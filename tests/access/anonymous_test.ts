import { assertEquals } from "@std/assert";
import { AnonymousLimiter } from "../../src/access/anonymous.ts";
import { createSecret } from "../../src/access/secret.ts";
import { Harness, NOON } from "../harness.ts";
import { call, callAtOnce, remainders, tally, upTo } from "./replies.ts";

const MINUTE = 60_000;

/** A service, from whose first address everything was sent that a minute allows without a key. */
async function withExhaustedAddress(): Promise<Harness> {
  const service = await Harness.open();
  await callAtOnce(60, [service]);
  return service;
}

for (
  const [what, key] of [
    ["no key", undefined],
    ["a mistyped key", "as_test_mistyped"],
    ["an unknown key", createSecret("staging")],
    ["a key of the other environment", createSecret("production")],
  ] as const
) {
  Deno.test(`Gate tells an address with ${what} 401 sixty times a minute, and then 429`, async () => {
    using service = await Harness.open();
    const code = key === undefined ? "missing_api_key" : "invalid_api_key";

    const replies = await callAtOnce(100, [service], key);

    assertEquals(tally(replies), { [`401 ${code}`]: 60, "429 rate_limit_minute": 40 });
    const remaining = replies.filter(({ status }) => status === 401).map((reply) => reply.remaining);
    assertEquals(remaining.sort((a, b) => a - b), upTo(60));
    assertEquals(new Set(replies.map(({ limit }) => limit)), new Set([60]));
    assertEquals(new Set(replies.map(({ reset }) => reset)), new Set([NOON / 1_000 + 60]));
    assertEquals(replies.filter(({ retryAfter }) => retryAfter === 60).length, 40);
  });
}

Deno.test("Gate never bans an address and never limits it by the day", async () => {
  using service = await Harness.open();

  for (let minute = 0; minute < 20; minute++) {
    service.now = NOON + minute * MINUTE;
    assertEquals(tally(await callAtOnce(200, [service])), {
      "401 missing_api_key": 60,
      "429 rate_limit_minute": 140,
    });
  }
});

Deno.test("Gate leaves other addresses alone when one is exhausted", async () => {
  using service = await withExhaustedAddress();

  service.address = "2001:db8::1";
  const reply = await call(service);

  assertEquals([reply.status, reply.remaining], [401, 59]);
});

Deno.test("Gate serves a valid key from an exhausted address, always and unhindered", async () => {
  using service = await withExhaustedAddress();
  const { secret } = await service.issueKey("free");
  assertEquals((await call(service)).status, 429);

  const replies = await callAtOnce(60, [service], secret);

  assertEquals(tally(replies), { 200: 60 });
  assertEquals(remainders(replies), upTo(60));
});

Deno.test("Gate charges an address nothing for what a valid key sends from it", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey("free");
  await callAtOnce(70, [service], secret);

  assertEquals((await call(service)).remaining, 59);
});

Deno.test("Gate says that nothing is left, and charges nothing, where an exhausted address asks for no operation", async () => {
  using service = await withExhaustedAddress();

  for (const [target, status] of [["OPTIONS /v1/pets", 204], ["GET /v1/nowhere", 429]] as const) {
    const response = await service.fetch(target);
    await response.body?.cancel();

    assertEquals(response.status, status);
    assertEquals(response.headers.get("x-ratelimit-limit"), "60");
    assertEquals(response.headers.get("x-ratelimit-remaining"), "0");
  }
});

Deno.test("Gate describes only the minute to callers without a key", async () => {
  using service = await Harness.open();

  const { headers } = await service.fetch("GET /v1/pets");

  assertEquals(headers.get("ratelimit-policy"), '"minute";q=60;w=60');
  assertEquals(headers.get("ratelimit"), '"minute";r=59;t=60');
});

Deno.test("AnonymousLimiter opens a new minute at its first millisecond", () => {
  const limiter = new AnonymousLimiter();
  for (let count = 0; count < 60; count++) limiter.take("a", NOON);

  assertEquals(limiter.take("a", NOON + MINUTE - 1).refusal, "minute");
  assertEquals(limiter.take("a", NOON + MINUTE).refusal, undefined);
});

Deno.test("AnonymousLimiter.peek() takes nothing, and sees what a new minute gives", () => {
  const limiter = new AnonymousLimiter();
  limiter.take("a", NOON);

  for (let count = 0; count < 3; count++) assertEquals(limiter.peek("a", NOON).usage.minuteUsed, 1);
  assertEquals(limiter.peek("a", NOON + MINUTE).usage.minuteUsed, 0);
  assertEquals(limiter.peek("b", NOON).usage.minuteUsed, 0);
  assertEquals(limiter.take("a", NOON).usage.minuteUsed, 2);
});

/** Whether an exhausted address is still known as such after so many other addresses came. */
function isRemembered(otherAddresses: number): boolean {
  const limiter = new AnonymousLimiter();
  for (let count = 0; count < 60; count++) limiter.take("a", NOON);
  for (let other = 0; other < otherAddresses; other++) limiter.take(`${other}`, NOON);
  return limiter.take("a", NOON).refusal === "minute";
}

Deno.test("AnonymousLimiter remembers thousands of addresses, and no more than 10,000", () => {
  assertEquals(isRemembered(4_000), true);
  assertEquals(isRemembered(10_000), false);
});

Deno.test("AnonymousLimiter does not forget an address that goes on among very many others", () => {
  const limiter = new AnonymousLimiter();
  for (let count = 0; count < 60; count++) limiter.take("a", NOON);

  for (let other = 0; other < 50_000; other++) {
    limiter.take(`${other}`, NOON);
    if (other % 1_000 === 0) assertEquals(limiter.take("a", NOON).refusal, "minute");
  }
});
