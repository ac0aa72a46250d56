import { dayOf } from "../../src/base/time.ts";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  giveBack,
  type Refusal,
  type Returned,
  roll,
  take,
  UNUSED,
  type Usage,
} from "../../src/limits/usage.ts";
import { NOON } from "../support/time.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const MIDNIGHT = NOON + DAY / 2;
const [SOON, NEXT] = [NOON + 1, NOON + MINUTE];
const NOW: Usage = { ...UNUSED, minute: NOON };

type Demand = readonly [waiting: number, ahead: number];
type Got = readonly [granted: number, ahead: number, refusal?: Refusal];
type Counts = readonly [
  used: number,
  today: number,
  leased: number,
  leasedToday: number,
  noLeasesUntil: number,
];

/** Calls of take(): the usage before, as far as it differs from UNUSED; the demand, the result and the counts after. */
const takes: readonly (readonly [name: string, Partial<Usage>, Demand, Got, Counts])[] = [
  ["counts permits in both windows", {}, [3, 0], [3, 0], [3, 3, 0, 0, 0]],
  ["leases the permits asked for", { noLeasesUntil: NOON }, [2, 14], [2, 14], [16, 16, 14, 14, NOON]],
  ["leases a quarter of the rest", { usedToday: 43 }, [21, 99], [21, 9], [30, 73, 9, 9, 0]],
  ["rounds a quarter of the rest down", { usedToday: 44 }, [21, 99], [21, 8], [29, 73, 8, 8, 0]],
  ["leases none of the last three permits", { usedToday: 76 }, [21, 99], [21, 0], [21, 97, 0, 0, 0]],
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

for (const [name, before, [waiting, ahead], [granted, spare, refusal], counts] of takes) {
  Deno.test(`take() ${name}`, () => {
    const usage = { ...NOW, ...before };

    const taken = take(usage, { minute: 60, day: 100 }, { waiting, ahead }, NOON);

    const [used, usedToday, leased, leasedToday, noLeasesUntil] = counts;
    const after = { ...usage, used, usedToday, leased, leasedToday, noLeasesUntil };
    assertEquals(taken, { granted, ahead: spare, refusal, usage: after });
  });
}

const LIMITS = { minute: 5, day: 12 };

const visit = fc.record({
  /** Whether it uses the clock that is ahead. */
  isAhead: fc.boolean(),
  /** Ms since the previous visit. */
  pause: fc.oneof(fc.nat(1_000), fc.nat(3 * MINUTE), fc.nat(600 * MINUTE)),
  waiting: fc.integer({ min: 1, max: 6 }),
});

Deno.test("take() never exceeds the limits of a window, even if two clocks differ", () => {
  const apart = fc.integer({ min: 1, max: 5 });
  fc.assert(
    fc.property(fc.array(visit, { maxLength: 30 }), apart, (visits, minutes) => {
      const granted = new Map<string, number>();
      let [usage, time] = [UNUSED, NOON];
      for (const { isAhead, pause, waiting } of visits) {
        time += pause;
        const taken = take(usage, LIMITS, { waiting, ahead: 0 }, isAhead ? time + minutes * MINUTE : time);
        usage = taken.usage;
        const windows = [[`minute ${usage.minute}`, LIMITS.minute], [
          `day ${dayOf(usage.minute)}`,
          LIMITS.day,
        ]] as const;
        for (const [name, limit] of windows) {
          const count = (granted.get(name) ?? 0) + taken.granted;
          granted.set(name, count);
          assert(count <= limit, `${count} in ${name}`);
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

const used: Usage = { ...NOW, used: 20, usedToday: 30, leased: 8, leasedToday: 9 };
const lease: Returned = { epoch: 0, minute: NOON, size: 5, unused: 3 };

for (
  const [name, given, after] of [
    ["gives permits back to both windows", lease, { used: 17, usedToday: 27, leased: 3, leasedToday: 4 }],
    ["gives permits of an earlier minute back to the day only", { ...lease, minute: NOON - MINUTE }, {
      usedToday: 27,
      leasedToday: 4,
    }],
    ["gives back no permits of another day", { ...lease, minute: NOON - DAY }, {}],
    ["gives back no permits from before a reset", { ...lease, epoch: 1 }, {}],
    ["gives back no more permits than are leased", { ...lease, size: 9 }, {}],
    ["gives back no more permits than were used", { ...lease, unused: 21 }, {}],
    ["gives back no more permits of an earlier minute than are leased", {
      ...lease,
      minute: NOON - MINUTE,
      size: 10,
    }, {}],
    ["gives back no more permits of an earlier minute than were used", {
      ...lease,
      minute: NOON - MINUTE,
      unused: 31,
    }, {}],
  ] as const
) {
  Deno.test(`giveBack() ${name}`, () => assertEquals(giveBack(used, given), { ...used, ...after }));
}

Deno.test("giveBack() gives back no permits of a minute that was moved back, even when it comes again", () => {
  const ahead = NOON + 10 * MINUTE;
  const { usage, ahead: size } = take(NOW, { minute: 100, day: 1_000 }, { waiting: 4, ahead: 12 }, ahead);
  const lease = { epoch: usage.epoch, minute: ahead, size, unused: size };
  assertEquals([size, giveBack(usage, lease).used], [12, 4]);

  const moved = roll(usage, NOON);
  const again = roll(roll(moved, NOON + MINUTE), ahead);

  assertEquals([moved, again].map((usage) => [usage.used, giveBack(usage, lease).used]), [[16, 16], [0, 0]]);
});
