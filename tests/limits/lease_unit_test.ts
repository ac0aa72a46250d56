import { assertEquals } from "@std/assert";
import {
  type Asking,
  type Debt,
  decideRun,
  type Demand,
  detach,
  joined,
  type Lease,
  nextSize,
  NO_DEBT,
  owing,
  spent,
} from "../../src/limits/lease.ts";
import { UNUSED, type Usage } from "../../src/limits/usage.ts";
import { NOON } from "../support/time.ts";

const LIMITS = { minute: 60, day: 1_000 };
const NOW: Usage = { ...UNUSED, minute: NOON };
const LATER = NOON + 60_000;

function leaseOf(counts: Partial<Lease>): Lease {
  return { epoch: 0, minute: NOON, limits: LIMITS, left: 10, used: 0, low: 5, takenAt: 0, ...counts };
}

function returned(size: number, unused: number, minute: number = NOON, epoch: number = 0) {
  return { epoch, minute, size, unused };
}

/** Requests that arrived one after the other. */
const [A, B, C, D] = [{ at: 1 }, { at: 2 }, { at: 3 }, { at: 4 }] as const;

/** Decides on requests, none of which waits. */
function decideOn(usage: Partial<Usage>, demand: Partial<Demand<Asking>>, limits = LIMITS, now = NOON) {
  return decideRun({ ...NOW, ...usage }, limits, {
    debt: NO_DEBT,
    requests: [],
    served: 0,
    left: undefined,
    mayWait: () => false,
    ...demand,
  }, now);
}

Deno.test("owing() adds up permits of the same epoch and minute, and no others", () => {
  const debts = [
    returned(2, 1),
    returned(1, 1, LATER),
    returned(3, 0),
    returned(1, 0, NOON, 1),
    returned(0, 0),
  ];

  assertEquals(debts.reduce(owing, NO_DEBT).returned, [
    returned(1, 1, LATER),
    returned(5, 1),
    returned(1, 0, NOON, 1),
  ]);
});

Deno.test("joined() adds up refusals of the same minute, and otherwise keeps those of the later one", () => {
  const refused = (minute: number, first: number): Debt => ({
    ...NO_DEBT,
    refusals: { minute, first, count: 3, strikes: 1 },
  });
  const sum = { minute: NOON, first: 1, count: 6, strikes: 2 };

  assertEquals(joined(refused(NOON, 2), refused(NOON, 1)).refusals, sum);
  for (
    const debts of [[NOON, LATER], [LATER, NOON]].map((minutes) => minutes.map((one) => refused(one, 2)))
  ) {
    assertEquals(debts.reduce(joined, NO_DEBT).refusals, { minute: LATER, first: 2, count: 3, strikes: 1 });
  }
});

Deno.test("detach() returns what is left and used, but not what is on its way", () => {
  assertEquals(detach(leaseOf({ left: 4, used: 3 })), returned(7, 4));
});

Deno.test("spent() returns the used permits, and none that are left", () => {
  assertEquals(spent(leaseOf({ left: 4, used: 3 })), returned(3, 0));
});

Deno.test("nextSize() doubles what was served, and is at least a hundredth of what is free", () => {
  assertEquals([nextSize(0, 99), nextSize(3, 99), nextSize(3, 1_000), nextSize(0, 0)], [0, 6, 10, 0]);
});

Deno.test("decideRun() settles debts before it takes permits", () => {
  const debt = [returned(5, 3), returned(1, 0)].reduce(owing, NO_DEBT);

  const { usage, granted, refused, isChange } = decideOn(
    { used: 60, usedToday: 60, leased: 9, leasedToday: 9 },
    { debt, requests: [A, B, C, D] },
  );

  assertEquals([usage.used, usage.usedToday, usage.leased, usage.leasedToday], [60, 60, 3, 3]);
  assertEquals([granted, refused, isChange], [[A, B, C], [{ request: D, refusal: "minute" }], true]);
});

Deno.test("decideRun() writes a permit that is given back and taken again", () => {
  const { usage, isChange } = decideOn(
    { used: 7, usedToday: 7 },
    { debt: owing(NO_DEBT, returned(0, 1)), requests: [A] },
  );

  assertEquals([usage.used, isChange], [7, true]);
});

Deno.test("decideRun() writes nothing if the window has only moved, or every debt is void", () => {
  const debt = owing(NO_DEBT, returned(5, 3, NOON, 7));

  for (const now of [NOON, LATER]) assertEquals(decideOn({ used: 9 }, { debt }, LIMITS, now).isChange, false);
});

Deno.test("decideRun() leases only if the process asks for permits", () => {
  const limits = { minute: 1_000, day: 9_000 };
  const ahead = (demand: Partial<Demand<Asking>>) => decideOn({}, demand, limits).ahead;

  assertEquals(ahead({ left: undefined, served: 9 }), 0);
  assertEquals(ahead({ left: 0 }), 10);
  assertEquals(ahead({ left: 4 }), 6);
  assertEquals(ahead({ left: 40, served: 9 }), 0);
  assertEquals(ahead({ left: 0, served: 900 }), 250);
});

Deno.test("decideRun() says whether more permits are needed than can be leased", () => {
  const isDenied = (usage: Partial<Usage>, demand: Partial<Demand<Asking>>) =>
    decideOn(usage, demand).isDenied;

  assertEquals(isDenied({}, { left: 3, served: 2 }), false);
  assertEquals(isDenied({}, { left: 4, served: 2 }), false);
  assertEquals(isDenied({ used: 58 }, { left: 3, served: 2 }), true);
  assertEquals(isDenied({ used: 58 }, { left: 4, served: 2 }), false);
  assertEquals(isDenied({ used: 58 }, { left: undefined, served: 2 }), false);
});

Deno.test("decideRun() lets requests wait while permits may come back, and grants what there is", () => {
  const { granted, waiting, refused, usage } = decideOn(
    { used: 58, usedToday: 58, leased: 1 },
    { requests: [A, B, C], mayWait: ({ leased }, window) => leased === 1 && window === "minute" },
  );

  assertEquals([granted, waiting, refused], [[A, B], [C], []]);
  assertEquals([usage.refused, usage.noLeasesUntil], [0, LATER]);
});

Deno.test("decideRun() judges each refusal by its own request, and bans at the last strike", () => {
  const first = performance.now();
  const { refused, usage, refusals } = decideOn(
    { used: 2, usedToday: 2, strikes: 8 },
    {
      debt: { ...NO_DEBT, refusals: { minute: NOON, first, count: 0, strikes: 0 } },
      requests: [0, 5_001, 5_000, 5_001, 0, 5_001].map((ms) => ({ at: first + ms })),
    },
    { minute: 2, day: 9 },
  );

  assertEquals(refused.map(({ refusal }) => refusal), ["minute", "minute", "minute", "ban", "ban", "ban"]);
  assertEquals([usage.strikes, usage.refused, usage.refusedToday, usage.bans], [10, 4, 4, 1]);
  assertEquals(refusals, { minute: NOON, first, count: 4, strikes: 2 });
});

Deno.test("decideRun() begins no ban for strikes of a minute that is over, or without a new one", () => {
  const refusals = { minute: NOON, first: 0, count: 300, strikes: 300 };
  const late = decideOn({}, { debt: { ...NO_DEBT, refusals }, requests: [A] }, LIMITS, LATER);
  const full = { used: 60, usedToday: 60, strikes: 300, noLeasesUntil: LATER };
  const { refused, usage } = decideOn(full, { requests: [A] });

  assertEquals([late.granted, late.usage.bans], [[A], 0]);
  assertEquals([refused, usage.bans], [[{ request: A, refusal: "minute" }], 0]);
});

Deno.test("decideRun() counts no refusal of a request that is spared", () => {
  const { refused, isChange } = decideOn(
    { used: 60, usedToday: 60, noLeasesUntil: LATER },
    { requests: [{ at: Infinity, isSpared: true }] },
  );

  assertEquals([refused.map(({ refusal }) => refusal), isChange], [["minute"], false]);
});

Deno.test("decideRun() counts no refusals during a ban", () => {
  const { refused, isChange } = decideOn({ bannedUntil: LATER }, { requests: [A] });

  assertEquals([refused, isChange], [[{ request: A, refusal: "ban" }], false]);
});

Deno.test.each(
  [
    ["strikes and refusals", "the minute", NOON, NOON, [5, 5, 2, true]],
    ["refusals, but no strikes,", "the minute before", NOON, LATER, [0, 5, 0, true]],
    ["nothing", "another minute", LATER, NOON, [0, 0, 0, false]],
  ] as const,
)("decideRun() counts %s of %s", (_, _of, minute, now, counts) => {
  const debt = { ...NO_DEBT, refusals: { minute, first: 0, count: 5, strikes: 2 } };

  const { usage, isChange } = decideOn({}, { debt }, LIMITS, now);

  assertEquals<unknown>([usage.refused, usage.refusedToday, usage.strikes, isChange], counts);
});
