import { assert, assertEquals } from "@std/assert";
import { setLimitHeaders } from "../../src/access/limit_headers.ts";
import { Refusals } from "../../src/access/refusals.ts";
import { takeOrStrike, UNUSED, type Usage, type Verdict } from "../../src/access/usage.ts";
import { NOON } from "../harness.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const MIDNIGHT = NOON + DAY / 2;

interface Situation {
  readonly name: string;
  readonly limits: { readonly minute: number; readonly day: number };
  /** Usage before the request, as far as it is not that of a caller never seen before. */
  readonly usage?: Partial<Usage>;
  readonly now: number;
  /** Limit, Remaining and Reset. */
  readonly main: readonly [limit: number, remaining: number, reset: number];
  readonly policy: string;
  readonly both: string;
  /** Code and Retry-After of the 429. */
  readonly refused?: readonly [code: string, retryAfter: number];
}

const FREE = { minute: 60, day: 1_000 };
const FREE_POLICY = '"minute";q=60;w=60, "day";q=1000;w=86400';
const TODAY = { minute: NOON };

const situations: readonly Situation[] = [
  {
    name: "describe the minute when it has fewer requests left",
    limits: FREE,
    now: NOON,
    main: [60, 59, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=59;t=60, "day";r=999;t=43200',
  },
  {
    name: "describe the day when it has fewer requests left",
    limits: FREE,
    usage: { ...TODAY, dayUsed: 950 },
    now: NOON + 1_000,
    main: [1_000, 49, MIDNIGHT],
    policy: FREE_POLICY,
    both: '"minute";r=59;t=59, "day";r=49;t=43199',
  },
  {
    name: "describe the day when both have as many requests left, as the later to reset",
    limits: { minute: 60, day: 60 },
    now: NOON,
    main: [60, 59, MIDNIGHT],
    policy: '"minute";q=60;w=60, "day";q=60;w=86400',
    both: '"minute";r=59;t=60, "day";r=59;t=43200',
  },
  {
    name: "say that nothing is left after the last request",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 59, dayUsed: 59 },
    now: NOON,
    main: [60, 0, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=60, "day";r=940;t=43200',
  },
  {
    name: "round seconds up",
    limits: FREE,
    now: NOON + 59_001,
    main: [60, 59, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=59;t=1, "day";r=999;t=43141',
  },
  {
    name: "leave out the day when it is not limited",
    limits: { minute: 60, day: Infinity },
    now: NOON,
    main: [60, 59, NOON + MINUTE],
    policy: '"minute";q=60;w=60',
    both: '"minute";r=59;t=60',
  },
  {
    name: "describe the minute when it refuses, though the day has fewer requests left",
    limits: { minute: 60, day: 61 },
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 60 },
    now: NOON + 30_500,
    main: [60, 0, NOON + MINUTE],
    policy: '"minute";q=60;w=60, "day";q=61;w=86400',
    both: '"minute";r=0;t=30, "day";r=1;t=43170',
    refused: ["rate_limit_minute", 30],
  },
  {
    name: "describe the day when it refuses",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 3, dayUsed: 1_000 },
    now: NOON,
    main: [1_000, 0, MIDNIGHT],
    policy: FREE_POLICY,
    both: '"minute";r=57;t=60, "day";r=0;t=43200',
    refused: ["rate_limit_day", 43_200],
  },
  {
    name: "describe the day when both refuse",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 1_000 },
    now: NOON,
    main: [1_000, 0, MIDNIGHT],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=60, "day";r=0;t=43200',
    refused: ["rate_limit_day", 43_200],
  },
  {
    name: "ask to wait at least a second",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 60 },
    now: NOON + MINUTE - 1,
    main: [60, 0, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=1, "day";r=940;t=43141',
    refused: ["rate_limit_minute", 1],
  },
  {
    name: "go on to the ban's end, rounded up, from the refusal that starts it",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 60, refused: 60 },
    now: NOON + 1,
    main: [60, 0, NOON + 5 * MINUTE + 1_000],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=300, "day";r=940;t=43200',
    refused: ["key_banned", 300],
  },
  {
    name: "go on to the ban's end during the ban",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 1_000, bannedUntil: NOON + 5 * MINUTE, bans: 1 },
    now: NOON + 2 * MINUTE + 500,
    main: [60, 0, NOON + 5 * MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=180, "day";r=0;t=43080',
    refused: ["key_banned", 180],
  },
  {
    name: "describe the new day when a ban goes on beyond midnight",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 1_000, bannedUntil: MIDNIGHT + 5 * MINUTE, bans: 1 },
    now: MIDNIGHT + MINUTE,
    main: [60, 0, MIDNIGHT + 5 * MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=240, "day";r=1000;t=86340',
    refused: ["key_banned", 240],
  },
  {
    name: "never go below zero when a plan was lowered",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 250, dayUsed: 250 },
    now: NOON,
    main: [60, 0, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=60, "day";r=750;t=43200',
    refused: ["rate_limit_minute", 60],
  },
  {
    name: "wait for the later clock's minute when this one lags behind",
    limits: FREE,
    usage: { ...TODAY, minuteUsed: 60, dayUsed: 60 },
    now: NOON - 30_000,
    main: [60, 0, NOON + MINUTE],
    policy: FREE_POLICY,
    both: '"minute";r=0;t=90, "day";r=940;t=43230',
    refused: ["rate_limit_minute", 90],
  },
];

for (
  const { name, limits, usage, now, main: [limit, remaining, reset], policy, both, refused } of situations
) {
  Deno.test(`setLimitHeaders() and respondTo() ${name}`, async () => {
    const verdict: Verdict = takeOrStrike({ ...UNUSED, ...usage }, limits, now);
    const headers = new Headers();

    setLimitHeaders(headers, verdict);

    assertEquals(Object.fromEntries(headers), {
      "ratelimit": both,
      "ratelimit-policy": policy,
      "x-ratelimit-limit": `${limit}`,
      "x-ratelimit-remaining": `${remaining}`,
      "x-ratelimit-reset": `${Math.ceil(reset / 1_000)}`,
    });
    if (refused === undefined) {
      assertEquals(verdict.refusal, undefined);
    } else {
      const [code, retryAfter] = refused;
      assert(verdict.refusal);
      const response = new Refusals().respondTo(verdict, verdict.refusal);
      assertEquals(response.status, 429);
      assertEquals(response.headers.get("retry-after"), `${retryAfter}`);
      for (const [header, value] of headers) assertEquals(response.headers.get(header), value);
      assertEquals((await response.json()).code, code);
    }
  });
}
