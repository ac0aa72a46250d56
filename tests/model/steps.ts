import type { Limits } from "../../src/limits/usage.ts";
import fc from "fast-check";

/** Number of processes that serve the accounts. */
export const PROCESSES = 3;
/** Initial limits of the accounts, and those that an operator may set. */
export const LIMITS: readonly Limits[] = [
  { minute: 8, day: 20 },
  { minute: 60, day: 100 },
  { minute: 1_000, day: 1_500 },
];

/** What a client requests. */
export type Operation =
  | "nowhere"
  | "page"
  | "get"
  | "create"
  | "create once"
  | "patch"
  | "patch if match"
  | "delete"
  | "send"
  | "send once"
  | "rotate"
  | "close";

/** Simultaneous requests of an account to a process. */
export interface RequestStep {
  readonly kind: "request";
  readonly process: number;
  readonly account: number;
  readonly count: number;
  readonly operation: Operation;
  /** Selects the thing, the Idempotency-Key, or the grace period. */
  readonly pick: number;
  /** Which key the client uses: 0 is the current one, 1 the one before. */
  readonly keysAgo: number;
  /** Delay of the body, in ms. */
  readonly bodyAfter: number;
}

/** An event: requests, time that passes, a fault, or a command of an operator. */
export type Step =
  | RequestStep
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "edge"; readonly process: number }
  | {
    readonly kind: "skew" | "pause" | "late reply" | "refuse";
    readonly process: number;
    readonly ms: number;
  }
  | {
    readonly kind: "crash" | "stop" | "lose reply" | "land late" | "break before" | "break after";
    readonly process: number;
  }
  | { readonly kind: "plan"; readonly account: number; readonly limits: Limits }
  | { readonly kind: "rotate"; readonly account: number; readonly graceSeconds: number }
  | {
    readonly kind: "reset" | "unban" | "suspend" | "resume" | "close" | "replace";
    readonly account: number;
  };

const process = fc.nat(PROCESSES - 1);
const account = fc.nat(LIMITS.length - 1);
const one = <Kind extends Step["kind"]>(...kinds: Kind[]) => fc.constantFrom(...kinds);
const upTo = (max: number) => fc.integer({ min: 1, max });
const often = <Value>(weight: number, usual: Value, rare: fc.Arbitrary<Value>) =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare });

const usual = fc.constantFrom<Operation>("nowhere", "nowhere", "page", "get", "create", "create once");
const rare = fc.constantFrom<Operation>(
  "patch",
  "patch",
  "patch if match",
  "patch if match",
  "delete",
  "send",
  "send once",
);
const request: fc.Arbitrary<RequestStep> = fc.record({
  kind: one("request"),
  process,
  account,
  count: fc.oneof(upTo(3), upTo(80)),
  operation: fc.oneof({ weight: 2, arbitrary: usual }, { weight: 1, arbitrary: rare }),
  pick: fc.nat(3),
  keysAgo: often(12, 0, upTo(3)),
  bodyAfter: often(8, 0, upTo(4_000)),
});
/** Requests that change the account of the client. */
const own: fc.Arbitrary<RequestStep> = fc.record({
  kind: one("request"),
  process,
  account,
  count: fc.constant(1),
  operation: fc.constantFrom<Operation>("rotate", "rotate", "rotate", "rotate", "close"),
  pick: fc.nat(1),
  keysAgo: often(6, 0, fc.constant(1)),
  bodyAfter: often(4, 0, upTo(4_000)),
});
const advance = fc.record({ kind: one("advance"), ms: fc.oneof(upTo(60), upTo(1_000), upTo(40_000)) });
const graceSeconds = fc.constantFrom(0, 60, 5);
const others: fc.Arbitrary<Step>[] = [
  fc.record({ kind: one("edge"), process }),
  fc.record({ kind: one("skew"), process, ms: fc.integer({ min: -5_000, max: 5_000 }) }),
  fc.record({ kind: one("lose reply"), process }),
  fc.record({ kind: one("late reply"), process, ms: upTo(300) }),
  fc.record({ kind: one("stop"), process }),
  fc.record({ kind: one("refuse"), process, ms: upTo(12_000) }),
  fc.record({ kind: one("plan"), account, limits: fc.constantFrom(...LIMITS) }),
  fc.record({ kind: one("reset", "unban"), account }),
  fc.record({ kind: one("rotate"), account, graceSeconds }),
  fc.record({ kind: one("suspend", "resume", "resume"), account }),
  own,
];
const plain = { kind: "request", pick: 0, keysAgo: 0, bodyAfter: 0 } as const;
/** A plan changes while a commit that takes a lease waits for its reply; a new key makes processes read the account. */
const overtaken = fc.record({ process, account, limits: fc.constantFrom(...LIMITS), ms: upTo(300) }).map(
  ({ process, account, limits, ms }): Step[] => [
    { ...plain, process, account, count: 20, operation: "nowhere" },
    { kind: "advance", ms: 30 },
    { kind: "late reply", process, ms },
    { ...plain, process, account, count: 20, operation: "nowhere" },
    { kind: "advance", ms: 10 },
    { kind: "plan", account, limits },
    { kind: "rotate", account, graceSeconds: 60 },
    { ...plain, process, account, count: 2, operation: "nowhere" },
  ],
);
/** A process has an account and a thing in memory when the account is changed through another process. */
const outdated = fc.record({
  process,
  account,
  change: fc.constantFrom("suspend", "resume", "close", "rotate", "plan", "reset", "replace"),
  operation: fc.oneof(usual, rare),
  ms: fc.nat(60),
  bodyAfter: often(2, 0, upTo(2_000)),
}).map(({ process, account, change, operation, ms, bodyAfter }): Step[] => [
  { ...plain, process, account, count: 2, operation: "create" },
  { ...plain, process, account, count: 3, operation: "nowhere" },
  { kind: "advance", ms },
  { ...plain, process, account, count: 3, operation, bodyAfter },
  { kind: "advance", ms: 5 },
  changeOf(change, account),
  { ...plain, process, account, count: 3, operation },
  { ...plain, process, account, count: 1, operation, keysAgo: 1 },
]);
/** All processes change the same thing. */
const contended = fc.record({ account, bodyAfter: fc.nat(20) }).map(({ account, bodyAfter }): Step[] => [
  { ...plain, process: 0, account, count: 1, operation: "create" },
  { kind: "advance", ms: 400 },
  ...[0, 1, 2, 0].map((process, pick): Step => ({
    ...plain,
    process,
    account,
    count: 2,
    operation: (["patch if match", "patch", "patch if match", "delete"] as const)[pick] ?? "get",
    bodyAfter: bodyAfter * pick,
  })),
  { kind: "advance", ms: 100 },
  { ...plain, process: 1, account, count: 1, operation: "get" },
]);
/** All processes get the same request with the same Idempotency-Key. */
const duplicated = fc.record({
  account,
  pick: fc.nat(3),
  operation: fc.constantFrom<Operation>("create once", "send once"),
  ms: fc.nat(40),
}).map(({ account, pick, operation, ms }): Step[] => [
  { ...plain, process: 0, account, pick, count: 3, operation },
  { ...plain, process: 1, account, pick, count: 3, operation },
  { kind: "advance", ms },
  { ...plain, process: 2, account, pick, count: 2, operation },
]);

/**
 * Far from KV, a write waits behind three changes that get no reply. Its request arrived before theirs, with a key that
 * was not in memory yet.
 */
export function stuckBehind(process: number, operation: Operation, ms: number): Step[] {
  const change = (pick: number): Step => ({
    ...plain,
    process,
    account: 2,
    count: 1,
    operation: "patch",
    pick,
  });
  const wait = (ms: number): Step => ({ kind: "advance", ms });
  const hang: Step = { kind: "land late", process };
  return [
    { ...plain, process, account: 2, count: 4, operation: "create" },
    wait(1_000),
    { kind: "rotate", account: 1, graceSeconds: 0 },
    { ...plain, process, account: 2, count: 6, operation: "nowhere" },
    wait(400),
    { ...plain, process, account: 2, count: 3, operation: "nowhere" },
    { ...plain, process, account: 1, count: 1, operation, pick: 3 },
    wait(150 + ms),
    ...[0, 1, 2].flatMap((pick) => [change(pick), wait(20)]),
    wait(20),
    ...[hang, wait(20), hang, wait(20), hang],
    wait(8_000),
  ];
}

const stuck = fc.record({ process, operation: fc.constantFrom<Operation>("create", "patch"), ms: fc.nat(30) })
  .map(({ process, operation, ms }) => stuckBehind(process, operation, ms));

const step: fc.Arbitrary<Step[]> = fc.oneof(
  { weight: 12, arbitrary: request.map((step) => [step]) },
  { weight: 12, arbitrary: advance.map((step) => [step]) },
  { weight: 2, arbitrary: outdated },
  ...[...others.map((other) => other.map((step) => [step])), overtaken, contended, duplicated]
    .map((arbitrary) => ({ weight: 1, arbitrary })),
  ...["close", "replace"].map((change) => ({
    weight: 1,
    arbitrary: account.map((account) => [changeOf(change, account)]),
  })),
);
const fault: fc.Arbitrary<Step[]> = fc.oneof(
  fc.record({ kind: one("crash", "land late", "break before", "break after", "break after"), process }).map((
    step,
  ) => [step]),
  fc.record({ kind: one("pause"), process, ms: upTo(8_000) }).map((step) => [step]),
  stuck,
);

/** Steps without faults that can lose permits. */
export const calm: fc.Arbitrary<Step[]> = flat(step);
/** Steps with crashes, long pauses, and commits that fail or apply late. */
export const rough: fc.Arbitrary<Step[]> = flat(
  fc.oneof({ weight: 8, arbitrary: step }, { weight: 1, arbitrary: fault }),
);

function flat(steps: fc.Arbitrary<Step[]>): fc.Arbitrary<Step[]> {
  return fc.array(steps, { maxLength: 60, size: "max" }).map((steps) => steps.flat());
}

function changeOf(change: string, account: number): Step {
  switch (change) {
    case "rotate":
      return { kind: "rotate", account, graceSeconds: 0 };
    case "plan":
      return { kind: "plan", account, limits: { minute: 8, day: 20 } };
    case "suspend":
    case "resume":
    case "close":
    case "replace":
      return { kind: change, account };
    default:
      return { kind: "reset", account };
  }
}
