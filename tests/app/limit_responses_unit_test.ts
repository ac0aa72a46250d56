import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { decisionOn, type Limits, type Refusal, UNUSED, type Usage } from "../../src/limits/usage.ts";
import { createRefusals, withLimitHeaders } from "../../src/app/limit_responses.ts";
import { shared } from "../../src/web/response.ts";
import { NOON } from "../support/time.ts";

const MINUTE = 60_000;
const MIDNIGHT = NOON + 43_200_000;
const FREE = { minute: 60, day: 1_000 };

/** The usage after a decision, and the expected headers. */
type Situation = readonly [
  what: string,
  decided: {
    readonly usage: Partial<Usage>;
    readonly limits?: Limits;
    /** Permits left in the lease. */
    readonly left?: number;
    readonly refusal?: Refusal;
    readonly now?: number;
  },
  /** X-RateLimit-Limit, -Remaining and, in ms, -Reset. */
  main: readonly [limit: number, remaining: number, reset: number],
  rateLimit: string,
  retryAfter?: number,
];

const SITUATIONS: readonly Situation[] = [
  [
    "describe the minute when it has fewer requests left",
    { usage: { used: 1, usedToday: 1 } },
    [60, 59, NOON + MINUTE],
    '"minute";r=59;t=60, "day";r=999;t=43200',
  ],
  [
    "describe the day when it has fewer requests left",
    { usage: { used: 1, usedToday: 951 }, now: NOON + 1_000 },
    [1_000, 49, MIDNIGHT],
    '"minute";r=59;t=59, "day";r=49;t=43199',
  ],
  [
    "describe the day when both have equally many left, because it resets later",
    { usage: { used: 1, usedToday: 941 } },
    [1_000, 59, MIDNIGHT],
    '"minute";r=59;t=60, "day";r=59;t=43200',
  ],
  [
    "count leased permits as left",
    { usage: { used: 12, usedToday: 12, leased: 10, leasedToday: 10 }, left: 10 },
    [60, 58, NOON + MINUTE],
    '"minute";r=58;t=60, "day";r=998;t=43200',
  ],
  [
    "report 0 left after the last request, and round seconds up",
    { usage: { used: 60, usedToday: 60 }, now: NOON + 59_001 },
    [60, 0, NOON + MINUTE],
    '"minute";r=0;t=1, "day";r=940;t=43141',
  ],
  [
    "describe the minute when it refuses, although the day has only one request left",
    {
      limits: { minute: 60, day: 61 },
      usage: { used: 60, usedToday: 60 },
      refusal: "minute",
      now: NOON + 30_500,
    },
    [60, 0, NOON + MINUTE],
    '"minute";r=0;t=30, "day";r=1;t=43170',
    30,
  ],
  [
    "describe the day when it refuses",
    { usage: { used: 3, usedToday: 1_000 }, refusal: "day" },
    [1_000, 0, MIDNIGHT],
    '"minute";r=57;t=60, "day";r=0;t=43200',
    43_200,
  ],
  [
    "describe the end of a ban while it lasts",
    { usage: { used: 3, usedToday: 1_000, bannedUntil: NOON + 5 * MINUTE }, refusal: "ban", now: NOON + 500 },
    [60, 0, NOON + 5 * MINUTE],
    '"minute";r=0;t=300, "day";r=0;t=43200',
    300,
  ],
  [
    "round the end of a ban up",
    { usage: { bannedUntil: NOON + 5 * MINUTE + 1 }, refusal: "ban" },
    [60, 0, NOON + 5 * MINUTE + 1_000],
    '"minute";r=0;t=301, "day";r=1000;t=43200',
    301,
  ],
  [
    "describe the new day when a ban lasts past midnight",
    {
      usage: { used: 60, usedToday: 1_000, bannedUntil: MIDNIGHT + 5 * MINUTE },
      refusal: "ban",
      now: MIDNIGHT + MINUTE,
    },
    [60, 0, MIDNIGHT + 5 * MINUTE],
    '"minute";r=0;t=240, "day";r=1000;t=86340',
    240,
  ],
  [
    "never go below zero after a plan was lowered",
    { usage: { used: 250, usedToday: 1_250 }, refusal: "minute" },
    [60, 0, NOON + MINUTE],
    '"minute";r=0;t=60, "day";r=0;t=43200',
    60,
  ],
  [
    "describe the stored minute when the clock is behind it",
    { usage: { used: 60, usedToday: 60 }, refusal: "minute", now: NOON - 30_000 },
    [60, 0, NOON + MINUTE],
    '"minute";r=0;t=90, "day";r=940;t=43230',
    90,
  ],
];

const refusedResponse = createRefusals();
const SHARED = shared(new Response());
const CODES = { minute: "rate_limit_minute", day: "rate_limit_day", ban: "key_banned" };

for (const [what, decided, main, rateLimit, retryAfter] of SITUATIONS) {
  const { usage, limits = FREE, left = 0, refusal, now = NOON } = decided;
  Deno.test(`withLimitHeaders() and refusedResponse() ${what}`, async () => {
    const decision = decisionOn({ ...UNUSED, minute: NOON, ...usage }, limits, left, refusal, now);
    const own = withLimitHeaders(new Response(), decision);
    const { headers } = withLimitHeaders(SHARED, decision);

    const [limit, remaining, reset] = main;
    assertEquals(Object.fromEntries(headers), {
      "ratelimit": rateLimit,
      "ratelimit-policy": `"minute";q=${limits.minute};w=60, "day";q=${limits.day};w=86400`,
      "x-ratelimit-limit": `${limit}`,
      "x-ratelimit-remaining": `${remaining}`,
      "x-ratelimit-reset": `${Math.ceil(reset / 1_000)}`,
    });
    assertEquals([...own.headers], [...headers]);
    assertEquals([...SHARED.headers], []);
    if (refusal === undefined) return;
    const response = refusedResponse(decision, refusal);
    assertEquals(response.status, 429);
    assertEquals(response.headers.get("retry-after"), `${retryAfter}`);
    for (const [name, value] of headers) assertEquals(response.headers.get(name), value);
    const { code, message } = await response.json();
    assertEquals(code, CODES[refusal]);
    assert(message.endsWith(`Try again in ${retryAfter} s.`), message);
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
