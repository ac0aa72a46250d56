import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { DAY, dayOf, FUTURE, HOUR, MINUTE, monotonicNow, plus } from "../../src/base/time.ts";
import { CorruptRow, encodeJson, encodeText } from "../../src/engine/row.ts";
import { AnonymousLimiter } from "../../src/limits/anonymous.ts";
import {
  type Asking,
  type Debt,
  decideRun,
  type Demand,
  detach,
  joined,
  NO_DEBT,
  owing,
} from "../../src/limits/lease.ts";
import {
  changeLimits,
  decodeUsage,
  encodeUsage,
  giveBack,
  hasCalled,
  isSame,
  pardon,
  type Refusal,
  refuse,
  reset,
  type Returned,
  roll,
  take,
  UNUSED,
  type Usage,
} from "../../src/limits/usage.ts";
import { upTo } from "../support/client.ts";
import { NOON } from "../support/time.ts";

const MIDNIGHT = NOON + DAY / 2;
const [SOON, NEXT] = [NOON + 1, NOON + MINUTE];
const NOW: Usage = { ...UNUSED, minute: NOON };
const USED: Usage = { ...NOW, used: 20, usedToday: 30, leased: 8, leasedToday: 9 };

type Asked = readonly [waiting: number, ahead: number];
type Got = readonly [granted: number, ahead: number, refusal?: Refusal];
type Counts = readonly [
  used: number,
  today: number,
  leased: number,
  leasedToday: number,
  noLeasesUntil: number,
];

/** Calls of take(): the usage before, as far as it differs from UNUSED; the demand, the result and the counts after. */
const TAKES: readonly (readonly [name: string, Partial<Usage>, Asked, Got, Counts])[] = [
  ["counts permits in both windows", {}, [3, 0], [3, 0], [3, 3, 0, 0, 0]],
  ["leases the permits asked for", { noLeasesUntil: NOON }, [2, 14], [2, 14], [16, 16, 14, 14, NOON]],
  ["leases a quarter of the rest", { usedToday: 43 }, [21, 99], [21, 9], [30, 73, 9, 9, 0]],
  ["rounds a quarter of the rest down", { usedToday: 44 }, [21, 99], [21, 8], [29, 73, 8, 8, 0]],
  ["adds to existing leases", { leased: 4, leasedToday: 5 }, [0, 2], [0, 2], [2, 2, 6, 7, 0]],
  ["leases nothing until a full window ends", { noLeasesUntil: SOON }, [1, 9], [1, 0], [1, 1, 0, 0, SOON]],
  ["stops leasing if the minute is full", {}, [60, 9], [60, 0, "minute"], [60, 60, 0, 0, NEXT]],
  ["stops leasing if the day is full", { usedToday: 90 }, [12, 9], [10, 0, "day"], [10, 100, 0, 0, MIDNIGHT]],
  ["returns the day if both are full", { usedToday: 40 }, [61, 0], [60, 0, "day"], [60, 100, 0, 0, MIDNIGHT]],
  [
    "leases nothing until a day ends that was full, even if only the minute is full now",
    { used: 60, usedToday: 98, noLeasesUntil: MIDNIGHT },
    [1, 9],
    [0, 0, "minute"],
    [60, 98, 0, 0, MIDNIGHT],
  ],
  ["grants nothing beyond a lowered limit", { used: 99 }, [3, 3], [0, 0, "minute"], [99, 0, 0, 0, NEXT]],
  ["grants nothing during a ban", { bannedUntil: SOON }, [3, 3], [0, 0, "ban"], [0, 0, 0, 0, 0]],
  ["grants permits when a ban ends", { bannedUntil: NOON }, [1, 0], [1, 0], [1, 1, 0, 0, 0]],
];

Deno.test.each(TAKES)("take() %s", (_, before, [waiting, ahead], [granted, spare, refusal], counts) => {
  const usage = { ...NOW, ...before };

  const taken = take(usage, { minute: 60, day: 100 }, { waiting, ahead }, NOON);

  const [used, usedToday, leased, leasedToday, noLeasesUntil] = counts;
  const after = { ...usage, used, usedToday, leased, leasedToday, noLeasesUntil };
  assertEquals(taken, { granted, ahead: spare, refusal, usage: after });
});

const visit = fc.record({
  /** Whether it uses the clock that is ahead. */
  isAhead: fc.boolean(),
  /** Ms since the previous visit. */
  pause: fc.oneof(fc.nat(1_000), fc.nat(3 * MINUTE), fc.nat(600 * MINUTE)),
  waiting: fc.integer({ min: 1, max: 6 }),
});

Deno.test("take() never exceeds the limits of a window, even if two clocks differ", () => {
  const limits = { minute: 5, day: 12 };
  const property = fc.property(
    fc.array(visit, { maxLength: 30 }),
    fc.integer({ min: 1, max: 5 }),
    (visits, minutesApart) => {
      const granted = new Map<string, number>();
      let [usage, time] = [UNUSED, NOON];
      for (const { isAhead, pause, waiting } of visits) {
        time += pause;
        const now = isAhead ? time + minutesApart * MINUTE : time;
        const taken = take(usage, limits, { waiting, ahead: 0 }, now);
        usage = taken.usage;
        const [minute, day] = [`minute ${usage.minute}`, `day ${dayOf(usage.minute)}`];
        for (const [window, limit] of [[minute, limits.minute], [day, limits.day]] as const) {
          const count = (granted.get(window) ?? 0) + taken.granted;
          granted.set(window, count);
          assert(count <= limit, `${count} in ${window}`);
        }
      }
    },
  );
  fc.assert(property, { numRuns: 1_000 });
});

const GIVEN: Returned = { epoch: 0, minute: NOON, size: 5, unused: 3 };
const EARLIER: Returned = { ...GIVEN, minute: NOON - MINUTE };

Deno.test.each<[string, Returned, Partial<Usage>]>([
  ["gives permits back to both windows", GIVEN, { used: 17, usedToday: 27, leased: 3, leasedToday: 4 }],
  ["gives permits of an earlier minute back to the day only", EARLIER, { usedToday: 27, leasedToday: 4 }],
  ["gives back no permits of another day", { ...GIVEN, minute: NOON - DAY }, {}],
  ["gives back no permits from before a reset", { ...GIVEN, epoch: 1 }, {}],
  ["gives back no more permits than are leased", { ...GIVEN, size: 9 }, {}],
  ["gives back no more permits than were used", { ...GIVEN, unused: 21 }, {}],
  ["gives back no more permits of an earlier minute than are leased", { ...EARLIER, size: 10 }, {}],
  ["gives back no more permits of an earlier minute than were used", { ...EARLIER, unused: 31 }, {}],
])("giveBack() %s", (_, given, after) => {
  assertEquals(giveBack(USED, given), { ...USED, ...after });
});

const LIMITS = { minute: 2, day: 5 };
const BANNED = { bans: 1, bannedUntil: NOON + 5 * MINUTE };

Deno.test.each<[string, Partial<Usage>, count: number, strikes: number, Partial<Usage>]>([
  ["bans nobody before five strikes in a minute for each request that its limit allows", {}, 9, 9, {}],
  ["bans at the last of these strikes", { strikes: 9 }, 1, 1, BANNED],
  ["bans nobody for refusals that are no strikes", {}, 99, 9, {}],
  ["bans nobody without a new strike, even if there are enough", { strikes: 99 }, 1, 0, {}],
  ["bans again for a new strike", { strikes: 99, bans: 3, bannedUntil: NOON - DAY }, 1, 1, BANNED],
  ["does not extend a ban", { ...BANNED, strikes: 10, bannedUntil: SOON }, 10, 10, {}],
])("refuse() counts, and %s", (_, before, count, strikes, after) => {
  const usage = { ...NOW, refused: 1, refusedToday: 2, ...before };

  assertEquals(refuse(usage, LIMITS, { count, strikes }, NOON), {
    ...usage,
    strikes: usage.strikes + strikes,
    refused: 1 + count,
    refusedToday: 2 + count,
    ...after,
  });
});

/** The length of each ban, in minutes, if each begins `pause` ms after the end of the previous one. */
function banMinutes(count: number, pause: number): number[] {
  let [usage, now] = [UNUSED, NOON];
  return Array.from({ length: count }, () => {
    usage = refuse(roll(usage, now), LIMITS, { count: 10, strikes: 10 }, now);
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
  for (const now of [NOON, NEXT - 1, NOON - 1, NOON - 5 * MINUTE]) assertStrictEquals(roll(USED, now), USED);
});

Deno.test("roll() resets the counts when a new minute or day has begun", () => {
  const before = { ...USED, strikes: 3, refused: 4, refusedToday: 4, bans: 1, bannedUntil: NOON + HOUR };
  const ended = { used: 0, leased: 0, strikes: 0, refused: 0 };

  assertEquals(roll(before, NEXT), { ...before, minute: NEXT, ...ended });
  const newDay = { minute: MIDNIGHT, ...ended, usedToday: 0, leasedToday: 0, refusedToday: 0 };
  assertEquals(roll(before, MIDNIGHT + 1), { ...before, ...newDay });
});

Deno.test("roll() moves windows back with their counts, and ends bans, if a clock was far ahead", () => {
  const ban = { strikes: 3, refusedToday: 4, noLeasesUntil: SOON, bannedUntil: NOON + 9 * DAY };
  const before = { ...USED, ...ban };
  const far = { ...before, minute: NOON + 9 * DAY, noLeasesUntil: NOON + 10 * DAY };
  const moved = { epoch: USED.epoch + 1, leased: 0, leasedToday: 0, bannedUntil: 0 };

  assertEquals(roll(before, NOON - 5 * MINUTE - 1), { ...before, ...moved, minute: NOON - 6 * MINUTE });
  assertEquals(roll(far, NOON), { ...far, ...moved, minute: NOON, noLeasesUntil: MIDNIGHT });
  const again = roll(roll(far, NOON), far.minute);
  assertEquals([again.used, again.usedToday], [0, 0]);
  // The longest ban that a clock slightly ahead can set.
  const longest = NEXT + DAY + 5 * MINUTE;
  assertEquals(roll({ ...USED, bannedUntil: longest }, NEXT).bannedUntil, longest);
  assertEquals(roll({ ...USED, bannedUntil: longest + 1 }, NEXT).bannedUntil, 0);
});

Deno.test("reset() clears usage and voids leases, but keeps a ban", () => {
  const kept = { bans: 2, bannedUntil: MIDNIGHT };
  const before = { ...USED, ...kept, strikes: 3, refusedToday: 4, noLeasesUntil: MIDNIGHT, epoch: 7 };

  assertEquals(reset(before, NEXT + 1), { ...UNUSED, minute: NEXT, epoch: 8, ...kept });
});

Deno.test("reset() does not make an account without requests look used", () => {
  const after = reset(UNUSED, NOON);

  assertEquals([after, hasCalled(after), hasCalled(USED)], [{ ...UNUSED, epoch: 1 }, false, true]);
});

Deno.test("pardon() ends a ban and clears bans and strikes, but not usage", () => {
  const banned = { ...USED, refused: 4, refusedToday: 4, strikes: 3, bans: 2, bannedUntil: MIDNIGHT };

  assertEquals(pardon(banned), { ...USED, refusedToday: 4 });
});

Deno.test("changeLimits() lets processes lease permits again, unless a window is full under the new limits", () => {
  const before = { ...USED, noLeasesUntil: MIDNIGHT };
  const until = (minute: number, day: number) => changeLimits(before, { minute, day }).noLeasesUntil;

  assertEquals([until(21, 31), until(20, 31), until(21, 30)], [0, NEXT, MIDNIGHT]);
});

Deno.test("isSame() compares every number", () => {
  assertEquals(isSame(USED, { ...USED }), true);
  for (const name of Object.keys(UNUSED)) assertEquals(isSame(USED, { ...USED, [name]: 77 }), false, name);
});

/** A usage row with this value. */
function row(value: unknown): { key: Deno.KvKey; value: unknown; versionstamp: string } {
  return { key: ["usage", "acct_1"], value, versionstamp: "1" };
}

Deno.test("decodeUsage() reads what encodeUsage() wrote, missing numbers as 0, and keeps additional ones", () => {
  const names = Object.keys(UNUSED);
  const usage = { ...UNUSED, ...Object.fromEntries(names.map((name, index) => [name, index + 1])) };
  const longer = decodeUsage(row(encodeJson([...names.map((_, index) => index + 1), -1, "text"])));

  assertEquals(decodeUsage(row(encodeUsage(usage))), usage);
  assertEquals(decodeUsage(row(encodeJson([1, 2]))), { ...UNUSED, epoch: 1, minute: 2 });
  assertEquals(longer, { ...usage, surplus: [-1, "text"] });
  const written = encodeUsage(reset(roll(longer, NOON), NOON));
  assertEquals(written.slice(-11), encodeText(',0,-1,"text"]').slice(-11));
});

Deno.test.each<[what: string, value: unknown]>([
  ["a value that is not bytes", {}],
  ["invalid UTF-8", new Uint8Array([0xff])],
  ["invalid JSON", encodeText("[0,0")],
  ["an object instead of an array", encodeJson(UNUSED)],
  ["a negative number", encodeJson([...Array(11).fill(0), -1])],
  ["a fraction", encodeJson([0.5, ...Array(11).fill(0)])],
  ["a number beyond 2^53", encodeJson([...Array(11).fill(0), 2 ** 53])],
  ["a string", encodeJson([...Array(11).fill(0), "0"])],
  ["null", encodeJson([null, ...Array(11).fill(0)])],
])("decodeUsage() rejects a row with %s", (_, value) => {
  assertThrows(() => decodeUsage(row(value)), CorruptRow);
});

function returned(size: number, unused: number, minute: number = NOON, epoch: number = 0): Returned {
  return { epoch, minute, size, unused };
}

/** Requests that arrived one after the other. */
const START = monotonicNow();
const request = (ms: number): Asking => ({ at: plus(START, ms) });
const [A, B, C, D] = [request(1), request(2), request(3), request(4)] as const;

/** Decides on requests, none of which waits. */
function decideOn(
  usage: Partial<Usage>,
  demand: Partial<Demand<Asking>>,
  limits = { minute: 60, day: 1_000 },
  now = NOON,
) {
  const none = { debt: NO_DEBT, requests: [], served: 0, left: undefined, mayWait: () => false };
  return decideRun({ ...NOW, ...usage }, limits, { ...none, ...demand }, now);
}

Deno.test("owing() adds up permits of the same epoch and minute, and no others", () => {
  const others = [returned(1, 1, NEXT), returned(1, 0, NOON, 1)];
  const debts = [returned(2, 1), ...others, returned(3, 0), returned(0, 0)];

  assertEquals(debts.reduce(owing, NO_DEBT).returned, [...others, returned(5, 1)]);
});

Deno.test("joined() adds up refusals of the same minute, and otherwise keeps those of the later one", () => {
  const refused = (minute: number, ms: number): Debt => ({
    ...NO_DEBT,
    refusals: { minute, first: plus(START, ms), count: 3, strikes: 1 },
  });
  const [now, earlier, later] = [refused(NOON, 2), refused(NOON, 1), refused(NEXT, 2)];

  assertEquals(joined(now, earlier).refusals, { minute: NOON, first: plus(START, 1), count: 6, strikes: 2 });
  assertEquals([joined(now, later), joined(later, now)], [later, later]);
});

Deno.test("detach() returns what is left and used", () => {
  const lease = { epoch: 0, minute: NOON, limits: LIMITS, left: 4, used: 3, low: 5, takenAt: START };

  assertEquals(detach(lease), returned(7, 4));
});

Deno.test("decideRun() settles debts before it takes permits", () => {
  const debt = [returned(5, 3), returned(1, 0)].reduce(owing, NO_DEBT);
  const before = { used: 60, usedToday: 60, leased: 9, leasedToday: 9 };

  const { usage, granted, refused, isChange } = decideOn(before, { debt, requests: [A, B, C, D] });

  assertEquals([usage.used, usage.usedToday, usage.leased, usage.leasedToday], [60, 60, 3, 3]);
  assertEquals([granted, refused, isChange], [[A, B, C], [{ request: D, refusal: "minute" }], true]);
});

Deno.test("decideRun() writes a permit that is given back and taken again, but neither void debts nor a moved window", () => {
  const again = decideOn({ used: 7, usedToday: 7 }, { debt: owing(NO_DEBT, returned(0, 1)), requests: [A] });
  const debt = owing(NO_DEBT, returned(5, 3, NOON, 7));

  assertEquals([again.usage.used, again.isChange], [7, true]);
  for (const now of [NOON, NEXT]) {
    assertEquals(decideOn({ used: 9 }, { debt }, undefined, now).isChange, false);
  }
});

Deno.test("decideRun() leases twice what was served, and at least a hundredth, if the process asks for permits", () => {
  const ahead = (left: number | undefined, served: number) =>
    decideOn({}, { left, served }, { minute: 1_000, day: 9_000 }).ahead;

  assertEquals([ahead(undefined, 9), ahead(0, 0), ahead(4, 0), ahead(4, 5), ahead(4, 9)], [0, 10, 6, 6, 14]);
  assertEquals([ahead(40, 9), ahead(0, 900)], [0, 250]);
});

Deno.test("decideRun() says whether more permits are needed than can be leased", () => {
  const isDenied = (used: number, left: number | undefined) =>
    decideOn({ used }, { left, served: 2 }).isDenied;

  assertEquals([isDenied(0, 3), isDenied(0, 4)], [false, false]);
  assertEquals([isDenied(58, 3), isDenied(58, 4), isDenied(58, undefined)], [true, false, false]);
});

Deno.test("decideRun() lets requests wait while permits may come back, and grants what there is", () => {
  const { granted, waiting, refused, usage } = decideOn(
    { used: 58, usedToday: 58, leased: 1 },
    { requests: [A, B, C], mayWait: ({ leased }, window) => leased === 1 && window === "minute" },
  );

  assertEquals([granted, waiting, refused], [[A, B], [C], []]);
  assertEquals([usage.refused, usage.noLeasesUntil], [0, NEXT]);
});

Deno.test.each([["minute", { used: 2 }], ["day", { usedToday: 9 }]] as const)(
  "decideRun() judges each refusal of the %s by its own request, and bans at the last strike",
  (window, full) => {
    const first = START;
    const { refused, usage, refusals } = decideOn({ ...full, strikes: 8 }, {
      debt: { ...NO_DEBT, refusals: { minute: NOON, first, count: 0, strikes: 0 } },
      requests: [0, 5_001, 5_000, 5_001, 0, 5_001].map((ms) => ({ at: plus(first, ms) })),
    }, { minute: 2, day: 9 });

    assertEquals(refused.map(({ refusal }) => refusal), [window, window, window, "ban", "ban", "ban"]);
    assertEquals([usage.strikes, usage.refused, usage.refusedToday, usage.bans], [10, 4, 4, 1]);
    assertEquals(refusals, { minute: NOON, first, count: 4, strikes: 2 });
  },
);

const FULL = { used: 60, usedToday: 60, noLeasesUntil: NEXT };

Deno.test("decideRun() begins no ban for strikes of a minute that is over", () => {
  const debt = { ...NO_DEBT, refusals: { minute: NOON, first: START, count: 300, strikes: 300 } };

  const { granted, usage } = decideOn({}, { debt, requests: [A] }, undefined, NEXT);

  assertEquals([granted, usage.bans], [[A], 0]);
});

Deno.test.each<[string, Partial<Usage>, Asking, Refusal]>([
  ["of a request that is spared", FULL, { at: FUTURE, isSpared: true }, "minute"],
  ["during a ban", { bannedUntil: NEXT }, A, "ban"],
])("decideRun() counts no refusal %s", (_, usage, request, refusal) => {
  const mayWait = (_: Usage, window: Refusal) => window !== "minute"; // Nobody waits for the end of a ban.
  const { refused, isChange } = decideOn(usage, { requests: [request], mayWait });

  assertEquals([refused, isChange], [[{ request, refusal }], false]);
});

Deno.test.each(
  [
    ["strikes and refusals of the minute", NOON, NOON, [5, 5, 2, true]],
    ["refusals, but no strikes, of the minute before", NOON, NEXT, [0, 5, 0, true]],
    ["nothing of another minute", NEXT, NOON, [0, 0, 0, false]],
  ] as const,
)("decideRun() counts %s", (_, minute, now, counts) => {
  const debt = { ...NO_DEBT, refusals: { minute, first: START, count: 5, strikes: 2 } };

  const { usage, isChange } = decideOn({}, { debt }, undefined, now);

  assertEquals<unknown>([usage.refused, usage.refusedToday, usage.strikes, isChange], counts);
});

/** A limiter that has admitted the maximum number of requests of "a" at noon. */
function exhausted(): AnonymousLimiter {
  const limiter = new AnonymousLimiter();
  for (let count = 0; count < 60; count++) limiter.take("a", NOON);
  return limiter;
}

Deno.test.each(
  [
    ["refuses in the last millisecond of a minute", NEXT - 1, "minute"],
    ["refuses if the clock goes back by four minutes", NOON - 4 * MINUTE, "minute"],
    ["admits from the next minute on", NEXT, undefined],
    ["admits if the clock goes back further", NOON - 4 * MINUTE - 1, undefined],
  ] as const,
)("AnonymousLimiter.take() %s", (_, time, refusal) => {
  assertEquals(exhausted().take("a", time).refusal, refusal);
});

Deno.test("AnonymousLimiter.giveBack() frees a request of the current minute, but none of the minute before", () => {
  const limiter = new AnonymousLimiter();
  const before = limiter.take("a", NOON - 1);
  const current = limiter.take("a", NOON);
  for (let count = 0; count < 59; count++) limiter.take("a", NOON);

  limiter.giveBack("a", before);
  assertEquals(limiter.take("a", NOON).refusal, "minute");
  limiter.giveBack("a", current);
  assertEquals([1, 2].map(() => limiter.take("a", NOON).refusal), [undefined, "minute"]);
});

Deno.test("AnonymousLimiter remembers at most 20,000 addresses, and prefers the most active ones", () => {
  const [active, idle] = [exhausted(), exhausted()];
  const others = Array.from({ length: 50_000 }, (_, address) => `${address}`);

  for (const address of others) {
    active.take(address, NOON);
    if (Number(address) % 9_000 === 0) active.take("a", NOON);
    idle.take(address, NOON);
  }

  assertEquals([active, idle].map((limiter) => limiter.take("a", NOON).refusal), ["minute", undefined]);
  const { length } = others.filter((address) => active.peek(address, NOON).minute.remaining < 60);
  assert(length > 9_990 && length < 20_000, `${length}`);
});

Deno.test.each([
  ["in the same second", NOON + 999, 0],
  ["in the next second", NOON + 1_000, 5],
  ["after a second without any", NOON + 2_000, 10],
  ["if the clock goes back by a second", NOON - 1_000, 0],
  ["in the next minute", NEXT, 5],
])("AnonymousLimiter.takeLookUp() allows five more each second: %s", (_, time, more) => {
  const limiter = new AnonymousLimiter();
  const taken = (now: number) => upTo(20).filter(() => limiter.takeLookUp("a", now)).length;

  assertEquals([taken(NOON), taken(time)], [5, more]);
  assertEquals(limiter.peek("a", NOON).minute.remaining, 60);
});
