import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { createRefusals, keptResponse, withLimitHeaders } from "../../src/app/limit_responses.ts";
import { decisionOn, type Limits, type Refusal, UNUSED, type Usage } from "../../src/limits/usage.ts";
import { shared } from "../../src/web/response.ts";
import { call } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const MINUTE = 60_000;
const MIDNIGHT = NOON + 43_200_000;
const BAN = NOON + 5 * MINUTE;
const FREE: Limits = { minute: 60, day: 1_000 };

/** A decision, and the headers that describe it. */
interface Situation {
  readonly what: string;
  /** Used permits of the minute and the day, and the end of a ban. */
  readonly used: readonly [minute: number, day: number, bannedUntil?: number];
  /** Leased permits, all of which are left. */
  readonly leased?: number;
  readonly limits?: Limits;
  readonly now?: number;
  readonly refusal?: Refusal;
  /** X-RateLimit-Limit, -Remaining and, in ms, -Reset. */
  readonly main: readonly [limit: number, remaining: number, reset: number];
  /** Remaining requests and seconds of the minute and the day. */
  readonly both: readonly [minute: number, t: number, day: number, t: number];
  readonly retryAfter?: number;
}

const SITUATIONS: readonly Situation[] = [
  {
    what: "the minute when it has fewer requests left",
    ...{ used: [1, 1], main: [60, 59, NOON + MINUTE], both: [59, 60, 999, 43_200] },
  },
  {
    what: "the day when it has fewer requests left",
    ...{ used: [1, 951], now: NOON + 1_000, main: [1_000, 49, MIDNIGHT], both: [59, 59, 49, 43_199] },
  },
  {
    what: "the day when both have equally many left, because it resets later",
    ...{ used: [1, 941], main: [1_000, 59, MIDNIGHT], both: [59, 60, 59, 43_200] },
  },
  {
    what: "leased permits as left",
    ...{ used: [12, 12], leased: 10, main: [60, 58, NOON + MINUTE], both: [58, 60, 998, 43_200] },
  },
  {
    what: "nothing left after the last request, and whole seconds rounded up",
    ...{ used: [60, 60], now: NOON + 59_001, main: [60, 0, NOON + MINUTE], both: [0, 1, 940, 43_141] },
  },
  {
    what: "the minute when it refuses, although the day has only one request left",
    ...{ used: [60, 60], limits: { minute: 60, day: 61 }, refusal: "minute", now: NOON + 30_500 },
    ...{ main: [60, 0, NOON + MINUTE], both: [0, 30, 1, 43_170], retryAfter: 30 },
  },
  {
    what: "the day when it refuses",
    ...{ used: [3, 1_000], refusal: "day", main: [1_000, 0, MIDNIGHT] },
    ...{ both: [57, 60, 0, 43_200], retryAfter: 43_200 },
  },
  {
    what: "the end of a ban while it lasts",
    ...{ used: [3, 1_000, BAN], refusal: "ban", now: NOON + 500, main: [60, 0, BAN] },
    ...{ both: [0, 300, 0, 43_200], retryAfter: 300 },
  },
  {
    what: "the end of a ban rounded up",
    ...{ used: [0, 0, BAN + 1], refusal: "ban", main: [60, 0, BAN + 1_000] },
    ...{ both: [0, 301, 1_000, 43_200], retryAfter: 301 },
  },
  {
    what: "the new day when a ban lasts past midnight",
    ...{ used: [60, 1_000, MIDNIGHT + 5 * MINUTE], refusal: "ban", now: MIDNIGHT + MINUTE },
    ...{ main: [60, 0, MIDNIGHT + 5 * MINUTE], both: [0, 240, 1_000, 86_340], retryAfter: 240 },
  },
  {
    what: "nothing below zero after a plan was lowered",
    ...{ used: [250, 1_250], refusal: "minute", main: [60, 0, NOON + MINUTE] },
    ...{ both: [0, 60, 0, 43_200], retryAfter: 60 },
  },
  {
    what: "the stored minute when the clock is behind it",
    ...{ used: [60, 60], refusal: "minute", now: NOON - 30_000, main: [60, 0, NOON + MINUTE] },
    ...{ both: [0, 90, 940, 43_230], retryAfter: 90 },
  },
];

const refusedResponse = createRefusals();
const SHARED = shared(new Response());
const CODES = { minute: "rate_limit_minute", day: "rate_limit_day", ban: "key_banned" };

for (const { what, used, leased = 0, limits = FREE, now = NOON, refusal, ...expected } of SITUATIONS) {
  Deno.test(`withLimitHeaders() and refusedResponse() describe ${what}`, async () => {
    const [minute, usedToday, bannedUntil = 0] = used;
    const usage: Partial<Usage> = { used: minute, usedToday, bannedUntil, leased, leasedToday: leased };
    const decision = decisionOn({ ...UNUSED, minute: NOON, ...usage }, limits, leased, refusal, now);
    const own = withLimitHeaders(new Response(), decision);
    const { headers } = withLimitHeaders(SHARED, decision);
    const again = keptResponse(SHARED, decision) ?? withLimitHeaders(SHARED, decision);

    const [limit, remaining, reset] = expected.main;
    const [ofMinute, endOfMinute, ofDay, endOfDay] = expected.both;
    assertEquals(Object.fromEntries(headers), {
      "ratelimit": `"minute";r=${ofMinute};t=${endOfMinute}, "day";r=${ofDay};t=${endOfDay}`,
      "ratelimit-policy": `"minute";q=${limits.minute};w=60, "day";q=${limits.day};w=86400`,
      "x-ratelimit-limit": `${limit}`,
      "x-ratelimit-remaining": `${remaining}`,
      "x-ratelimit-reset": `${Math.ceil(reset / 1_000)}`,
    });
    assertEquals([...own.headers], [...headers]);
    assertEquals([...again.headers], [...headers]);
    assertEquals([...SHARED.headers], []);
    if (refusal === undefined) return;
    const response = refusedResponse(decision, refusal);
    assertEquals(response.status, 429);
    assertEquals(response.headers.get("retry-after"), `${expected.retryAfter}`);
    for (const [name, value] of headers) assertEquals(response.headers.get(name), value);
    const { code, message } = await response.json();
    assertEquals(code, CODES[refusal]);
    assert(message.endsWith(`Try again in ${expected.retryAfter} s.`), message);
  });
}

Deno.test("refusedResponse() reuses a response only if it describes the same decision", async () => {
  const ban = { ...UNUSED, bannedUntil: NOON + MINUTE, used: 60, usedToday: 100, minute: NOON };
  const minute = { ...ban, bannedUntil: 0 };
  const limits = { minute: 60, day: 1_000 };
  const decisions = [
    decisionOn(minute, limits, 0, "minute", NOON),
    decisionOn(ban, limits, 0, "ban", NOON),
    decisionOn(minute, limits, 0, "minute", NOON + 1_000),
    decisionOn({ ...minute, used: 30, minute: NOON + MINUTE }, { ...limits, minute: 30 }, 0, "minute", NOON),
    decisionOn({ ...minute, usedToday: 600 }, { ...limits, day: 1_500 }, 0, "minute", NOON),
  ];

  const alone = decisions.map((decision) => withLimitHeaders(new Response(), decision));
  for (const _again of [1, 2]) {
    for (const [index, decision] of decisions.entries()) {
      const { refusal = "minute", minute: { remaining }, day } = decision;
      assertEquals([remaining, day?.remaining], [0, 900]); // All have the same cache key.
      const response = refusedResponse(decision, refusal);
      for (const [name, value] of alone[index]?.headers ?? []) {
        assertEquals(response.headers.get(name), value);
      }
      assertEquals((await response.clone().json()).code, CODES[refusal]);
      assertStrictEquals(refusedResponse({ ...decision, now: decision.now + 1 }, refusal), response);
    }
  }
});

Deno.test("service shows an uncharged request the limits of its account if that is in memory, else of its address", async () => {
  await using service = await Harness.open();
  const { account, apiKey: key } = await service.createAccount({ minute: 2, day: 10 });
  const shown = async (apiKey?: string) => {
    const { limit, remaining } = await call(service, apiKey, "OPTIONS /v1/things");
    return [limit, remaining];
  };

  assertEquals(await shown(key), [60, 60]);
  assertEquals((await call(service, key)).remaining, 1);
  assertEquals([await shown(key), await shown(), await shown("nonsense")], [[2, 1], [60, 60], [60, 60]]);
  for (const status of [200, 429]) assertEquals((await call(service, key)).status, status);
  assertEquals(await shown(key), [2, 0]);
  service.now += 60_000;
  assertEquals(await shown(key), [2, 2]);
  await service.accounts.suspend(account.id, service.now);
  assertEquals((await call(service, key)).status, 403);
  assertEquals(await shown(key), [60, 59]);
});
