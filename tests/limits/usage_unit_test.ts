import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import {
  changeLimits,
  decodeUsage,
  encodeUsage,
  hasCalled,
  isSame,
  pardon,
  type Refusal,
  refuse,
  reset,
  roll,
  take,
  UNUSED,
  type Usage,
} from "../../src/limits/usage.ts";
import { CorruptRow, encodeJson, encodeText } from "../../src/engine/row.ts";
import { NOON } from "../support/time.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIDNIGHT = NOON + 12 * HOUR;
const LIMITS = { minute: 2, day: 5 };
/** With these, the limits allow a ban. */
const TEN = { count: 10, strikes: 10 };

/** Decides on requests at these times. Returns the decisions, and the usage afterwards. */
function requestsAt(
  times: readonly number[],
  { limits = LIMITS } = {},
): { usage: Usage; decisions: ("admitted" | Refusal | undefined)[] } {
  let usage = UNUSED;
  const decisions = times.map((now) => {
    const taken = take(usage, limits, { waiting: 1, ahead: 0 }, now);
    usage = taken.usage;
    if (taken.granted === 1) return "admitted";
    if (taken.refusal !== "ban") usage = refuse(usage, limits, { count: 1, strikes: 1 }, now);
    return taken.refusal;
  });
  return { usage, decisions };
}

const used: Usage = { ...UNUSED, minute: NOON, used: 20, usedToday: 30, leased: 8, leasedToday: 9 };

Deno.test("refuse() bans an account at five strikes in a minute for each request that its limit allows", () => {
  const { decisions, usage } = requestsAt(Array(13).fill(NOON));

  assertEquals(decisions, ["admitted", "admitted", ...Array(10).fill("minute"), "ban"]);
  assertEquals([usage.bannedUntil, usage.bans, usage.refusedToday], [NOON + 5 * MINUTE, 1, 10]);
});

Deno.test("refuse() also counts refusals of the day toward the limit per minute", () => {
  const { decisions } = requestsAt(Array(7).fill(NOON), { limits: { minute: 1, day: 0 } });

  assertEquals(decisions, ["day", "day", "day", "day", "day", "ban", "ban"]);
});

Deno.test("refuse() does not ban for refusals that are no strikes", () => {
  const { strikes, refused, refusedToday, bannedUntil } = refuse(
    used,
    LIMITS,
    { count: 99, strikes: 9 },
    NOON,
  );

  assertEquals([strikes, refused, refusedToday, bannedUntil], [9, 99, 99, 0]);
});

Deno.test("refuse() begins no ban without a new strike, even if there are enough", () => {
  const before = { ...used, strikes: 99, bannedUntil: NOON - 1 };

  const bans = [0, 1].map((strikes) => refuse(before, LIMITS, { count: 1, strikes }, NOON).bans);

  assertEquals(bans, [0, 1]);
});

Deno.test("refuse() counts strikes per minute, and the sum of refusals per day", () => {
  const times = [...Array(11).fill(NOON), ...Array(11).fill(NOON + MINUTE)];

  const { usage } = requestsAt(times, { limits: { minute: 2, day: 9 } });

  assertEquals([usage.strikes, usage.refusedToday, usage.bannedUntil], [9, 18, 0]);
});

Deno.test("refuse() counts refusals during a ban, but does not extend it", () => {
  const banned = refuse(roll(UNUSED, NOON), LIMITS, TEN, NOON);

  const { bannedUntil, bans, refusedToday } = refuse(banned, LIMITS, TEN, NOON + 1);

  assertEquals([bannedUntil, bans, refusedToday], [NOON + 5 * MINUTE, 1, 20]);
});

/** The length of each ban, in minutes, if each begins `pause` ms after the end of the previous one. */
function banMinutes(count: number, pause: number): number[] {
  let usage = UNUSED;
  let now = NOON;
  return Array.from({ length: count }, () => {
    usage = refuse(roll(usage, now), LIMITS, TEN, now);
    const minutes = (usage.bannedUntil - now) / MINUTE;
    now = usage.bannedUntil + pause;
    return minutes;
  });
}

Deno.test("refuse() doubles every further ban, up to a day, and starts over a day after the last one", () => {
  const doubling = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440];

  assertEquals(banMinutes(11, MINUTE), doubling);
  assertEquals(banMinutes(4, DAY - 1), [5, 10, 20, 40]);
  assertEquals(banMinutes(4, DAY), [5, 5, 5, 5]);
  assertEquals(banMinutes(1_200, MINUTE).at(-1), 1_440);
});

Deno.test("roll() changes nothing within the minute, or for a clock up to five minutes behind", () => {
  for (const now of [NOON, NOON + MINUTE - 1, NOON - 1, NOON - 5 * MINUTE]) {
    assertStrictEquals(roll(used, now), used);
  }
});

Deno.test("roll() resets the counts when a new minute or day has begun", () => {
  const before = { ...used, strikes: 3, refused: 4, refusedToday: 4, bans: 1, bannedUntil: NOON + HOUR };
  const ended = { used: 0, leased: 0, strikes: 0, refused: 0 };

  assertEquals(roll(before, NOON + MINUTE), { ...before, minute: NOON + MINUTE, ...ended });
  const newDay = { minute: MIDNIGHT, ...ended, usedToday: 0, leasedToday: 0, refusedToday: 0 };
  assertEquals(roll(before, MIDNIGHT + 1), { ...before, ...newDay });
});

Deno.test("roll() moves windows back with their counts, and ends bans, if a clock was far ahead", () => {
  const before = {
    ...used,
    strikes: 3,
    refusedToday: 4,
    noLeasesUntil: NOON + 1,
    bannedUntil: NOON + 9 * DAY,
  };
  const far = { ...before, minute: NOON + 9 * DAY, noLeasesUntil: NOON + 10 * DAY };

  const unleased = { epoch: used.epoch + 1, leased: 0, leasedToday: 0 };
  const moved = { ...unleased, minute: NOON - 6 * MINUTE, bannedUntil: 0 };
  assertEquals(roll(before, NOON - 5 * MINUTE - 1), { ...before, ...moved });
  const back = { ...unleased, minute: NOON, noLeasesUntil: MIDNIGHT, bannedUntil: 0 };
  assertEquals(roll(far, NOON), { ...far, ...back });
  // The longest ban that a clock slightly ahead can set.
  const longest = NOON + MINUTE + DAY + 5 * MINUTE;
  const bannedUntil = [longest, longest + 1].map((bannedUntil) =>
    roll({ ...used, bannedUntil }, NOON + MINUTE).bannedUntil
  );
  assertEquals(bannedUntil, [longest, 0]);
});

Deno.test("roll() resets the counts when time reaches a minute and day that windows were moved back from", () => {
  const ahead = NOON + 3 * DAY;

  const { used: inMinute, usedToday } = roll(roll({ ...used, minute: ahead }, NOON), ahead);

  assertEquals([inMinute, usedToday], [0, 0]);
});

Deno.test("reset() clears usage and voids leases, but keeps a ban", () => {
  const before = {
    ...used,
    strikes: 3,
    refusedToday: 4,
    noLeasesUntil: MIDNIGHT,
    bans: 2,
    bannedUntil: MIDNIGHT,
  };

  const after = reset({ ...before, epoch: 7 }, NOON + MINUTE + 1);

  const kept = { bans: 2, bannedUntil: MIDNIGHT };
  assertEquals(after, { ...UNUSED, minute: NOON + MINUTE, epoch: 8, ...kept });
});

Deno.test("reset() does not make an account without requests look used", () => {
  const after = reset(UNUSED, NOON);

  assertEquals([after, hasCalled(after), hasCalled(used)], [{ ...UNUSED, epoch: 1 }, false, true]);
});

Deno.test("pardon() ends a ban and clears bans and strikes, but not usage", () => {
  const banned = { ...used, refused: 4, refusedToday: 4, strikes: 3, bans: 2, bannedUntil: MIDNIGHT };

  assertEquals(pardon(banned), { ...used, refusedToday: 4 });
});

Deno.test("changeLimits() lets processes lease permits again, unless a window is full under the new limits", () => {
  const before = { ...used, noLeasesUntil: MIDNIGHT };
  const until = (minute: number, day: number) => changeLimits(before, { minute, day }).noLeasesUntil;

  assertEquals([until(21, 31), until(20, 31), until(21, 30)], [0, NOON + MINUTE, MIDNIGHT]);
});

Deno.test("isSame() compares every number", () => {
  assertEquals(isSame(used, { ...used }), true);
  for (const name of Object.keys(UNUSED)) assertEquals(isSame(used, { ...used, [name]: 77 }), false, name);
});

/** A usage row with this value. */
function row(value: unknown): { key: Deno.KvKey; value: unknown; versionstamp: string } {
  return { key: ["usage", "acct_1"], value, versionstamp: "1" };
}

Deno.test("decodeUsage() reads what encodeUsage() wrote", () => {
  const numbered = [...Object.keys(UNUSED).entries()].map(([index, name]) => [name, index + 1]);
  const usage = { ...UNUSED, ...Object.fromEntries(numbered) };

  assertEquals(decodeUsage(row(encodeUsage(usage))), usage);
});

Deno.test("decodeUsage() reads missing numbers as 0 and keeps additional ones", () => {
  const numbers = Array.from({ length: 13 }, (_, index) => index + 1);

  assertEquals(decodeUsage(row(encodeJson([1, 2]))), { ...UNUSED, epoch: 1, minute: 2 });
  const longer = decodeUsage(row(encodeJson([...numbers, -1, "text"])));
  assertEquals([longer.refused, longer.surplus], [13, [-1, "text"]]);
  assertEquals(
    encodeUsage(reset(roll(longer, NOON), NOON)).slice(-11),
    encodeText(',0,-1,"text"]').slice(-11),
  );
});

for (
  const [what, value] of [
    ["a value that is not bytes", {}],
    ["invalid UTF-8", new Uint8Array([0xff])],
    ["invalid JSON", encodeText("[0,0")],
    ["an object instead of an array", encodeJson(UNUSED)],
    ["a negative number", encodeJson([...Array(11).fill(0), -1])],
    ["a fraction", encodeJson([0.5, ...Array(11).fill(0)])],
    ["a number beyond 2^53", encodeJson([...Array(11).fill(0), 2 ** 53])],
    ["a string", encodeJson([...Array(11).fill(0), "0"])],
    ["null", encodeJson([null, ...Array(11).fill(0)])],
  ] as const
) {
  Deno.test(`decodeUsage() rejects a row with ${what}`, () => {
    assertThrows(() => decodeUsage(row(value)), CorruptRow);
  });
}
