import { assertEquals, assertStrictEquals } from "@std/assert";
import {
  dayEnd,
  minuteEnd,
  pardon,
  type Refusal,
  roll,
  take,
  takeOrStrike,
  UNUSED,
  type Usage,
} from "../../src/access/usage.ts";
import { NOON } from "../harness.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIDNIGHT = NOON + 12 * HOUR;
const LIMITS = { minute: 2, day: 5 };

type Outcome = "admitted" | Refusal;

/** What a caller who comes at these times is told each time, and the usage after it. */
function outcomes(
  times: readonly number[],
  { usage = UNUSED, limits = LIMITS, decide = take } = {},
): { usage: Usage; outcomes: Outcome[] } {
  const outcomes = times.map((now) => {
    const verdict = decide(usage, limits, now);
    usage = verdict.usage;
    return verdict.refusal ?? "admitted";
  });
  return { usage, outcomes };
}

Deno.test("take() admits as many as the minute allows and charges no refused request", () => {
  const { usage, outcomes: told } = outcomes([NOON, NOON, NOON, NOON]);

  assertEquals(told, ["admitted", "admitted", "minute", "minute"]);
  assertEquals([usage.minuteUsed, usage.dayUsed, usage.refused], [2, 2, 0]);
});

Deno.test("take() admits as many as the day allows and charges no refused request", () => {
  const minutes = [0, 1, 2, 3, 4, 5, 6].map((count) => NOON + count * MINUTE);

  const { usage, outcomes: told } = outcomes(minutes);

  assertEquals(told, ["admitted", "admitted", "admitted", "admitted", "admitted", "day", "day"]);
  assertEquals([usage.minuteUsed, usage.dayUsed], [0, 5]);
});

Deno.test("take() names the day when both windows are full, as the later to reset", () => {
  const limits = { minute: 2, day: 2 };

  assertEquals(outcomes([NOON, NOON, NOON], { limits }).outcomes, ["admitted", "admitted", "day"]);
});

Deno.test("take() opens a new minute at its first millisecond and not before", () => {
  const start = NOON + MINUTE;
  const { usage } = outcomes([start, start]);

  for (const now of [start, start + 1, start + MINUTE - 1]) {
    assertEquals(take(usage, LIMITS, now).refusal, "minute");
  }
  for (const now of [start + MINUTE, start + MINUTE + 1, start + 7 * MINUTE]) {
    const verdict = take(usage, LIMITS, now);
    assertEquals(verdict.refusal, undefined);
    assertEquals([verdict.usage.minuteUsed, verdict.usage.dayUsed], [1, 3]);
  }
});

Deno.test("take() opens a new day at UTC midnight and not before", () => {
  const limits = { minute: 9, day: 2 };
  const { usage } = outcomes([NOON, NOON], { limits });

  for (const now of [NOON + MINUTE, MIDNIGHT - 1]) assertEquals(take(usage, limits, now).refusal, "day");
  for (const now of [MIDNIGHT, MIDNIGHT + 3 * DAY]) {
    const verdict = take(usage, limits, now);
    assertEquals(verdict.refusal, undefined);
    assertEquals(verdict.usage.dayUsed, 1);
  }
});

Deno.test("take() reopens neither window when the clock goes back", () => {
  const limits = { minute: 2, day: 2 };
  for (const step of [1, MINUTE, HOUR, 13 * HOUR, 400 * DAY]) {
    const { usage } = outcomes([MIDNIGHT, MIDNIGHT], { limits });

    const verdict = take(usage, limits, MIDNIGHT - step);

    assertEquals(verdict.refusal, "day");
    assertEquals(verdict.usage.minute, MIDNIGHT);
  }
});

Deno.test("take() counts on in the later minute when two clocks disagree", () => {
  const late = NOON + MINUTE;

  const { usage, outcomes: told } = outcomes([late, NOON, late, NOON]);

  assertEquals(told, ["admitted", "admitted", "minute", "minute"]);
  assertEquals(usage.minute, late);
});

Deno.test("takeOrStrike() bans a caller refused more often within a minute than the minute allows", () => {
  const times = Array(6).fill(NOON);

  const { usage, outcomes: told } = outcomes(times, { decide: takeOrStrike });

  assertEquals(told, ["admitted", "admitted", "minute", "minute", "ban", "ban"]);
  assertEquals([usage.bannedUntil, usage.bans], [NOON + 5 * MINUTE, 1]);
});

Deno.test("takeOrStrike() forgets strikes when the minute ends", () => {
  const inOneMinute = [NOON, NOON, NOON, NOON];
  const next = inOneMinute.map((now) => now + MINUTE);

  const { usage, outcomes: told } = outcomes([...inOneMinute, ...next], {
    decide: takeOrStrike,
    limits: { minute: 2, day: 9 },
  });

  assertEquals(told.slice(4), ["admitted", "admitted", "minute", "minute"]);
  assertEquals([usage.refused, usage.bannedUntil], [2, 0]);
});

Deno.test("takeOrStrike() counts refusals of the day as strikes, against the limit of the minute", () => {
  const limits = { minute: 3, day: 1 };
  const times = Array(5).fill(NOON);

  const { outcomes: told } = outcomes(times, { decide: takeOrStrike, limits });

  assertEquals(told, ["admitted", "day", "day", "day", "ban"]);
});

Deno.test("takeOrStrike() changes nothing during a ban, and admits from its end on", () => {
  const { usage: banned } = outcomes(Array(5).fill(NOON), { decide: takeOrStrike });

  for (const now of [NOON, NOON + MINUTE, NOON + 5 * MINUTE - 1]) {
    const verdict = takeOrStrike(banned, LIMITS, now);
    assertEquals(verdict.refusal, "ban");
    assertStrictEquals(verdict.usage, banned);
  }
  const verdict = takeOrStrike(banned, LIMITS, NOON + 5 * MINUTE);
  assertEquals(verdict.refusal, undefined);
  assertEquals([verdict.usage.minuteUsed, verdict.usage.dayUsed], [1, 3]);
});

/** The usage of a caller who gets banned at `now`. */
function banAt(usage: Usage, now: number): Usage {
  return outcomes(Array(5).fill(now), { usage, limits: { minute: 2, day: 10_000 }, decide: takeOrStrike })
    .usage;
}

/** The length of each ban, in minutes, when the next one comes `pause` after the end of the one before. */
function banMinutes(count: number, pause: number): number[] {
  let usage = UNUSED;
  let now = NOON;
  return Array.from({ length: count }, () => {
    usage = banAt(usage, now);
    const minutes = (usage.bannedUntil - now) / MINUTE;
    now = usage.bannedUntil + pause;
    return minutes;
  });
}

Deno.test("takeOrStrike() doubles every further ban, up to a day", () => {
  const doubling = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440, 1_440];

  assertEquals(banMinutes(12, 0), doubling);
  assertEquals(banMinutes(12, MINUTE), doubling);
  assertEquals(banMinutes(4, DAY - 1), [5, 10, 20, 40]);
});

Deno.test("takeOrStrike() starts again with five minutes when the last ban ended a day ago", () => {
  assertEquals(banMinutes(4, DAY), [5, 5, 5, 5]);

  const twice = banAt(banAt(UNUSED, NOON), NOON + HOUR);
  assertEquals(twice.bannedUntil, NOON + HOUR + 10 * MINUTE);
  const rested = banAt(twice, twice.bannedUntil + DAY);
  assertEquals(rested.bans, 1);
});

Deno.test("takeOrStrike() keeps bans finite and whole after very many of them", () => {
  assertEquals(banMinutes(1_200, 0).at(-1), 1_440);
});

Deno.test("takeOrStrike() upholds a ban when the clock goes back", () => {
  const banned = banAt(UNUSED, NOON);

  assertEquals(takeOrStrike(banned, LIMITS, NOON - 3 * DAY).refusal, "ban");
});

Deno.test("roll() moves both windows forward and changes nothing within them", () => {
  const { usage } = outcomes([NOON, NOON]);

  assertStrictEquals(roll(usage, NOON + MINUTE - 1), usage);
  assertEquals(roll(usage, NOON + MINUTE), { ...usage, minute: NOON + MINUTE, minuteUsed: 0 });
  assertEquals(roll(usage, MIDNIGHT), { ...UNUSED, minute: MIDNIGHT });
});

Deno.test("minuteEnd() and dayEnd() are when the next request opens a window", () => {
  const { usage } = outcomes([NOON + 12_345]);

  assertEquals(minuteEnd(usage), NOON + MINUTE);
  assertEquals(dayEnd(usage), MIDNIGHT);
});

Deno.test("pardon() ends a ban and forgets bans and strikes, not what was used", () => {
  const pardoned = pardon(banAt(UNUSED, NOON));

  assertEquals([pardoned.bannedUntil, pardoned.bans, pardoned.refused], [0, 0, 0]);
  assertEquals([pardoned.minuteUsed, pardoned.dayUsed], [2, 2]);
  assertEquals(takeOrStrike(pardoned, LIMITS, NOON).refusal, "minute");
  assertEquals(banAt(pardoned, NOON).bannedUntil, NOON + 5 * MINUTE);
});
