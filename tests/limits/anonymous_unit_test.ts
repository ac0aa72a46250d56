import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { AnonymousLimiter } from "../../src/limits/anonymous.ts";
import { upTo } from "../support/client.ts";
import { NOON } from "../support/time.ts";

const MINUTE = 60_000;

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

Deno.test.each([
  ["in the same second", NOON + 999, 0],
  ["in the next second", NOON + 1_000, 5],
  ["after a second without any", NOON + 2_000, 10],
  ["if the clock goes back by a second", NOON - 1_000, 0],
  ["in the next minute", NOON + MINUTE, 5],
])("AnonymousLimiter.takeLookUp() allows five more each second: %s", (_, time, more) => {
  const limiter = new AnonymousLimiter();
  const taken = (now: number) => upTo(20).filter(() => limiter.takeLookUp("a", now)).length;

  assertEquals([taken(NOON), taken(time)], [5, more]);
  assertEquals(limiter.peek("a", NOON).minute.remaining, 60);
});
