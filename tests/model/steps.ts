import fc from "fast-check";
import type { Limits } from "../../src/limits/usage.ts";
import type { Disturbed } from "./process.ts";

/** Number of processes that serve the accounts. */
export const PROCESSES = 3;
/** Initial limits of the accounts, and those that an operator may set. */
export const LIMITS: readonly Limits[] = [
  { minute: 8, day: 20 },
  { minute: 60, day: 100 },
  { minute: 1_000, day: 1_500 },
];

const USUAL = ["nowhere", "nowhere", "page", "get", "create", "create once"] as const;
const RARE = ["patch", "patch", "patch if match", "patch if match", "delete"] as const;

const OWN = ["rotate", "rotate", "rotate", "add key", "add key", "add key", "revoke key", "close"] as const;

/** What a client requests. */
export type Operation = typeof USUAL[number] | typeof RARE[number] | typeof OWN[number];

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
  /** Whether it is an added key, if there is one. */
  readonly isAdded: boolean;
  /** Delay of the body, in ms. */
  readonly bodyAfter: number;
}

/** A command of an operator. */
export type Command =
  | { readonly kind: "plan"; readonly account: number; readonly limits: Limits }
  | { readonly kind: "rotate"; readonly account: number; readonly graceSeconds: number }
  | { readonly kind: "add key" | "revoke key"; readonly account: number }
  | {
    readonly kind: "reset" | "unban" | "suspend" | "resume" | "close" | "replace";
    readonly account: number;
  };

/** An event: requests, time that passes, a fault, or a command of an operator. */
export type Step =
  | RequestStep
  | Command
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "skew" | "pause" | "refuse"; readonly process: number; readonly ms: number }
  | { readonly kind: "edge" | "crash" | "stop"; readonly process: number }
  | { readonly kind: "disturb"; readonly process: number; readonly next: Disturbed };

const process = fc.nat(PROCESSES - 1);
const account = fc.nat(LIMITS.length - 1);
const limits = fc.constantFrom(...LIMITS);
const operation = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<Operation>(...USUAL) },
  { weight: 1, arbitrary: fc.constantFrom<Operation>(...RARE) },
);
const upTo = (max: number) => fc.integer({ min: 1, max });
const one = <Kind extends Step["kind"]>(...kinds: Kind[]) => fc.constantFrom(...kinds);
const often = <Value>(weight: number, usual: Value, rare: fc.Arbitrary<Value>) =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare });

const wait = (ms: number): Step => ({ kind: "advance", ms });
const disturb = (process: number, next: Disturbed): Step => ({ kind: "disturb", process, next });
/** Simultaneous requests; by default, to process 0 with the current key. */
const send = (count: number, operation: Operation, more: Partial<RequestStep>): Step => ({
  ...{
    kind: "request",
    process: 0,
    account: 0,
    count,
    operation,
    pick: 0,
    keysAgo: 0,
    isAdded: false,
    bodyAfter: 0,
  },
  ...more,
});

const request = fc.record({
  kind: one("request"),
  process,
  account,
  count: fc.oneof(upTo(3), upTo(80)),
  operation,
  pick: fc.nat(3),
  keysAgo: often(12, 0, upTo(3)),
  isAdded: often(3, false, fc.constant(true)),
  bodyAfter: often(8, 0, upTo(4_000)),
});
/** A request that changes the account of the client. */
const own = fc.record({
  request,
  operation: fc.constantFrom<Operation>(...OWN),
  isAdded: often(9, false, fc.constant(true)),
  keysAgo: often(6, 0, fc.constant(1)),
}).map(({ request, ...own }) => ({ ...request, ...own, count: 1, pick: request.pick % 2 }));
const singles: fc.Arbitrary<Step>[] = [
  own,
  fc.record({ kind: one("edge"), process }),
  fc.record({ kind: one("stop"), process }),
  fc.record({ kind: one("skew"), process, ms: fc.integer({ min: -5_000, max: 5_000 }) }),
  fc.record({ kind: one("refuse"), process, ms: upTo(12_000) }),
  fc.record({ kind: one("disturb"), process, next: fc.record({ losesReply: fc.constant(true) }) }),
  fc.record({ kind: one("disturb"), process, next: fc.record({ lateness: upTo(300) }) }),
  fc.record({ kind: one("plan"), account, limits }),
  fc.record({ kind: one("rotate"), account, graceSeconds: fc.constantFrom(0, 60, 5) }),
  fc.record({ kind: one("add key", "revoke key"), account }),
  fc.record({ kind: one("reset", "unban"), account }),
  fc.record({ kind: one("suspend", "resume", "resume"), account }),
  fc.record({ kind: one("close"), account }),
  fc.record({ kind: one("replace"), account }),
];

/** A plan changes while a commit that takes a lease waits for its reply; a new key makes processes read the account. */
const overtaken = fc.record({ process, account, limits, ms: upTo(300) }).map(
  ({ process, account, limits, ms }): Step[] => [
    send(20, "nowhere", { process, account }),
    wait(30),
    disturb(process, { lateness: ms }),
    send(20, "nowhere", { process, account }),
    wait(10),
    { kind: "plan", account, limits },
    { kind: "rotate", account, graceSeconds: 60 },
    send(2, "nowhere", { process, account }),
  ],
);

const change = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: one("suspend", "resume", "close", "reset", "replace"), account }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one("rotate"), account, graceSeconds: fc.constant(0) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: one("plan"), account, limits: fc.constant({ minute: 8, day: 20 }) }),
  },
);
/** A process has an account and a thing in memory when the account is changed through another process. */
const outdated = fc.record({
  process,
  change,
  operation,
  ms: fc.nat(60),
  bodyAfter: often(2, 0, upTo(2_000)),
}).map(
  ({ process, change, operation, ms, bodyAfter }): Step[] => {
    const { account } = change;
    return [
      send(2, "create", { process, account }),
      send(3, "nowhere", { process, account }),
      wait(ms),
      send(3, operation, { process, account, bodyAfter }),
      wait(5),
      change,
      send(3, operation, { process, account }),
      send(1, operation, { process, account, keysAgo: 1 }),
    ];
  },
);

/** A process has an account and its added key in memory when that ends through another process. */
const ended = fc.record({
  process,
  account,
  end: fc.constantFrom<Step["kind"] & ("revoke key" | "rotate" | "close")>(
    "revoke key",
    "revoke key",
    "rotate",
    "close",
  ),
  operation,
  ms: fc.nat(60),
  bodyAfter: often(2, 0, upTo(2_000)),
}).map(({ process, account, end, operation, ms, bodyAfter }): Step[] => {
  const used = { process, account, isAdded: true };
  return [
    { kind: "add key", account },
    send(3, "nowhere", used),
    wait(ms),
    send(3, operation, { ...used, bodyAfter }),
    wait(5),
    end === "rotate" ? { kind: end, account, graceSeconds: 0 } : { kind: end, account },
    send(3, operation, used),
    send(1, "nowhere", { ...used, keysAgo: 1 }),
  ];
});

/** All processes change the same thing. */
const contended = fc.record({ account, bodyAfter: fc.nat(20) }).map(({ account, bodyAfter }): Step[] => [
  send(1, "create", { account }),
  wait(400),
  send(2, "patch if match", { account }),
  send(2, "patch", { account, process: 1, pick: 1, bodyAfter }),
  send(2, "patch if match", { account, process: 2, pick: 2, bodyAfter: 2 * bodyAfter }),
  send(2, "delete", { account, pick: 3, bodyAfter: 3 * bodyAfter }),
  wait(100),
  send(1, "get", { account, process: 1 }),
]);

/** All processes get the same request with the same Idempotency-Key. */
const duplicated = fc.record({ account, pick: fc.nat(3), ms: fc.nat(40) }).map(({ ms, ...more }): Step[] => [
  send(3, "create once", more),
  send(3, "create once", { ...more, process: 1 }),
  wait(ms),
  send(2, "create once", { ...more, process: 2 }),
]);

/**
 * Far from KV, a write waits behind three changes that get no reply. Its request arrived before theirs, with a key that
 * was not in memory yet.
 */
export function stuckBehind(process: number, operation: Operation, ms: number): Step[] {
  const change = (pick: number) => [send(1, "patch", { process, account: 2, pick }), wait(20)];
  const hang = disturb(process, { landsLate: true });
  return [
    send(4, "create", { process, account: 2 }),
    wait(1_000),
    { kind: "rotate", account: 1, graceSeconds: 0 },
    send(6, "nowhere", { process, account: 2 }),
    wait(400),
    send(3, "nowhere", { process, account: 2 }),
    send(1, operation, { process, account: 1, pick: 3 }),
    wait(150 + ms),
    ...[change(0), change(1), change(2)].flat(),
    wait(20),
    ...[hang, wait(20), hang, wait(20), hang],
    wait(8_000),
  ];
}

const step: fc.Arbitrary<Step[]> = fc.oneof(
  { weight: 12, arbitrary: request.map((step) => [step]) },
  { weight: 12, arbitrary: fc.oneof(upTo(60), upTo(1_000), upTo(40_000)).map((ms) => [wait(ms)]) },
  { weight: 2, arbitrary: outdated },
  ...singles.map((single) => single.map((step) => [step])),
  ...[overtaken, ended, contended, duplicated],
);

const lost = fc.constantFrom<Disturbed>({ landsLate: true }, { breaks: "before" }, { breaks: "after" });
const stuck = fc.record({
  process,
  operation: fc.constantFrom<Operation>("create", "patch"),
  ms: fc.nat(30),
});
const fault: fc.Arbitrary<Step[]> = fc.oneof(
  fc.record({ kind: one("disturb"), process, next: lost }).map((step) => [step]),
  fc.record({ kind: one("crash"), process }).map((step) => [step]),
  fc.record({ kind: one("pause"), process, ms: upTo(8_000) }).map((step) => [step]),
  stuck.map(({ process, operation, ms }) => stuckBehind(process, operation, ms)),
);

function sequence(steps: fc.Arbitrary<Step[]>): fc.Arbitrary<Step[]> {
  return fc.array(steps, { maxLength: 60, size: "max" }).map((steps) => steps.flat());
}

/** Steps without faults that can lose permits. */
export const calm: fc.Arbitrary<Step[]> = sequence(step);
/** Steps with crashes, long pauses, and commits that fail or apply late. */
export const rough: fc.Arbitrary<Step[]> = sequence(
  fc.oneof({ weight: 8, arbitrary: step }, { weight: 1, arbitrary: fault }),
);
