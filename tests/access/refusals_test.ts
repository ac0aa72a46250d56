import { assertEquals } from "@std/assert";
import { Refusals } from "../../src/access/refusals.ts";
import { takeOrStrike, UNUSED } from "../../src/access/usage.ts";
import { NOON } from "../harness.ts";

const LIMITS = { minute: 60, day: 1_000 };
const MINUTE = 60_000;

Deno.test("respondTo() never lets the client come back before the reset", () => {
  const refusals = new Refusals();
  const full = { ...UNUSED, minute: NOON, minuteUsed: 60, dayUsed: 60 };
  for (let now = NOON; now < NOON + MINUTE; now += 7) {
    const verdict = takeOrStrike(full, LIMITS, now);
    const { headers } = refusals.respondTo(verdict, "minute");

    const back = now + Number(headers.get("retry-after")) * 1_000;

    assertEquals(takeOrStrike(verdict.usage, LIMITS, back).refusal, undefined);
  }
});

Deno.test("respondTo() gives all who have one verdict a response of their own", async () => {
  const refusals = new Refusals();
  const banned = takeOrStrike({ ...UNUSED, bannedUntil: NOON + MINUTE }, LIMITS, NOON);
  const other = takeOrStrike({ ...UNUSED, bannedUntil: NOON + 2 * MINUTE }, LIMITS, NOON);

  const responses = [banned, banned, other, banned].map((verdict) => refusals.respondTo(verdict, "ban"));
  responses[0]?.headers.set("x-request-id", "first");

  assertEquals(responses.map(({ headers }) => headers.get("x-request-id")), ["first", null, null, null]);
  assertEquals(responses.map(({ headers }) => headers.get("retry-after")), ["60", "60", "120", "60"]);
  for (const response of responses) assertEquals((await response.json()).code, "key_banned");
});
