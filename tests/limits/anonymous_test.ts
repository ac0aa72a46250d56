import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { AnonymousLimiter } from "../../src/limits/anonymous.ts";
import { call, callAtOnce, remainders, tally, upTo } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { KEYS } from "../support/things.ts";

const MINUTE = 60_000;

for (
  const [what, code, key] of [
    ["no key", "missing_api_key", undefined],
    ["a mistyped key", "invalid_api_key", "as_test_mistyped"],
    ["an unknown key", "invalid_api_key", KEYS.create("staging")],
    ["a key for the other environment", "invalid_api_key", KEYS.create("production")],
  ] as const
) {
  Deno.test(`service returns 401 to an address with ${what} 60 times a minute, and then 429`, async () => {
    await using service = await Harness.open();

    const replies = await callAtOnce(100, [service], key);

    assertEquals(tally(replies), { [`401 ${code}`]: 60, "429 rate_limit_minute": 40 });
    const admitted = replies.filter(({ status }) => status === 401);
    assertEquals(admitted.map(({ remaining }) => remaining).sort((a, b) => a - b), upTo(60));
    for (const { status, limit, reset, retryAfter } of replies) {
      assertEquals([limit, reset, retryAfter], [60, NOON / 1_000 + 60, status === 429 ? 60 : undefined]);
    }
  });
}

Deno.test("service explains to an exhausted address that its requests have no valid key", async () => {
  await using service = await Harness.open();
  await callAtOnce(60, [service]);

  const { message } = await (await service.fetch("GET /v1/things")).json();

  assertEquals(message, "More than 60 requests in a minute without a valid API key. Try again in 60 s.");
});

Deno.test("service never bans an address or limits it per day, and describes only the minute", async () => {
  await using service = await Harness.open();

  for (let minute = 0; minute < 20; minute++) {
    service.now = NOON + minute * MINUTE;
    const { headers } = await service.fetch("GET /v1/things");
    assertEquals(headers.get("ratelimit-policy"), '"minute";q=60;w=60');
    assertEquals(headers.get("ratelimit"), '"minute";r=59;t=60');
    const expected = { "401 missing_api_key": 59, "429 rate_limit_minute": 141 };
    assertEquals(tally(await callAtOnce(200, [service])), expected);
  }
});

Deno.test("service serves valid keys and other addresses while an address is exhausted", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount("free");
  await callAtOnce(61, [service]);

  const replies = await callAtOnce(60, [service], apiKey);
  assertEquals(tally(replies), { 200: 60 });
  assertEquals(remainders(replies), upTo(60));

  service.address = "2001:db8::/64";
  const { status, remaining } = await call(service);
  assertEquals([status, remaining], [401, 59]);
});

/** A limiter that has admitted the maximum number of requests of "a" at noon. */
function exhausted(): AnonymousLimiter {
  const limiter = new AnonymousLimiter();
  for (let count = 0; count < 60; count++) limiter.take("a", NOON);
  return limiter;
}

for (
  const [when, time, refusal] of [
    ["in the last millisecond of a minute", NOON + MINUTE - 1, "minute"],
    ["if the clock goes back by four minutes", NOON - 4 * MINUTE, "minute"],
    ["from the next minute on", NOON + MINUTE, undefined],
    ["if the clock goes back further", NOON - 4 * MINUTE - 1, undefined],
  ] as const
) {
  Deno.test(`AnonymousLimiter.take() ${refusal ? "refuses" : "admits"} ${when}`, () => {
    assertEquals(exhausted().take("a", time).refusal, refusal);
  });
}

Deno.test("AnonymousLimiter.giveBack() frees a request of the current minute, but none of the minute before", () => {
  const limiter = new AnonymousLimiter();
  const before = limiter.take("a", NOON - 1);
  const current = upTo(60).map(() => limiter.take("a", NOON));

  limiter.giveBack("a", before);
  assertEquals(limiter.take("a", NOON).refusal, "minute");
  current.slice(0, 1).forEach((decision) => limiter.giveBack("a", decision));
  assertEquals(upTo(2).map(() => limiter.take("a", NOON).refusal), [undefined, "minute"]);
});

Deno.test("AnonymousLimiter.peek() counts nothing, and recognizes a new minute", () => {
  const limiter = new AnonymousLimiter();
  limiter.take("a", NOON);

  const remaining = [["a", NOON], ["a", NOON], ["b", NOON], ["a", NOON + MINUTE]] as const;
  assertEquals(remaining.map(([address, now]) => limiter.peek(address, now).minute.remaining), [
    59,
    59,
    60,
    60,
  ]);
  assertEquals(limiter.take("a", NOON).minute.remaining, 58);
});

Deno.test("AnonymousLimiter remembers at most 20,000 addresses, and prefers the most active ones", () => {
  const [active, idle] = [exhausted(), exhausted()];
  const others = Array.from({ length: 100_000 }, (_, address) => `${address}`);

  for (const address of others) {
    active.take(address, NOON);
    if (Number(address) % 9_000 === 0) active.take("a", NOON);
    idle.take(address, NOON);
  }

  assertEquals([active, idle].map((limiter) => limiter.take("a", NOON).refusal), ["minute", undefined]);
  const remembered = others.filter((address) => active.peek(address, NOON).minute.remaining < 60);
  assertGreater(remembered.length, 9_990);
  assertLess(remembered.length, 20_000);
});
