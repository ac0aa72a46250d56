import { assert, assertEquals, assertGreaterOrEqual } from "@std/assert";
import fc from "fast-check";
import { type Admission, Gate } from "../../src/access/gate.ts";
import { ACCOUNTS_VERSION, type Issued } from "../../src/accounts/account.ts";
import { AccountsElsewhere } from "../accounts/accounts_elsewhere.ts";
import { dayTotalKey } from "../../src/accounts/day_totals.ts";
import type { Limits } from "../../src/accounts/plans.ts";
import { dayOf, decodeUsage, pardon, reset, usageKey } from "../../src/accounts/usage.ts";
import { Versions } from "../../src/store/versions.ts";
import { Outdated } from "../../src/store/versions.ts";
import { Connection } from "../../src/kv/connection.ts";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { decodeJson } from "../../src/kv/row.ts";
import { Store } from "../../src/kv/store.ts";
import { Leases } from "../../src/leases/leases.ts";
import { type CommitResult, FakeKv, type Network } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";

/** A minute and a half before midnight, ms since the epoch. */
const START = Date.UTC(2027, 0, 15, 23, 58, 30);
const MINUTE = 60_000;
const LATENCY = 10;
const PROCESSES = 3;
const LIMITS: readonly Limits[] = [
  { minute: 8, day: 20 },
  { minute: 60, day: 100 },
  { minute: 1_000, day: 1_500 },
];

/** Something that happens to the processes, the accounts or the time. */
type Step =
  | { readonly kind: "request"; readonly process: number; readonly account: number; readonly count: number }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "edge"; readonly process: number }
  | {
    readonly kind: "skew" | "pause" | "late reply" | "refuse";
    readonly process: number;
    readonly ms: number;
  }
  | { readonly kind: "crash" | "stop" | "lose reply" | "land late"; readonly process: number }
  | { readonly kind: "plan"; readonly account: number; readonly limits: Limits }
  | { readonly kind: "reset" | "unban" | "rotate"; readonly account: number };

/** The way from a process to the KV. */
class Wire implements Network {
  readonly #time: VirtualTime;
  isCut = false;
  pausedUntil = 0;
  losesReply = false;
  /** By how many ms the reply of the next commit is late. */
  lateness = 0;
  landsLate = false;
  /** Until when no commit is carried out. */
  refusesUntil = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  async read(): Promise<void> {
    await this.#travel();
    await this.#travel();
  }

  async commit(apply: () => CommitResult): Promise<CommitResult> {
    const { losesReply, landsLate, lateness } = this;
    this.losesReply = this.landsLate = false;
    this.lateness = 0;
    await this.#travel();
    if (landsLate) {
      await sleep(7_000);
      apply();
      return await new Promise(() => {});
    }
    const result = this.#time.now < this.refusesUntil ? { ok: false } as const : apply();
    await sleep(lateness);
    await this.#travel();
    // Deno's client repeats a commit whose reply it has not got.
    return losesReply ? apply() : result;
  }

  async #travel(): Promise<void> {
    await sleep(LATENCY / 2 + Math.max(0, this.pausedUntil - this.#time.now));
    if (this.isCut) await new Promise(() => {});
  }
}

/** One process of the service. */
class Process {
  readonly wire: Wire;
  readonly leases: Leases;
  readonly gate: Gate;
  skew: number;

  constructor(kv: FakeKv, time: VirtualTime, skew: number) {
    this.skew = skew;
    this.wire = new Wire(time);
    const clock = () => START + Math.floor(time.now) + this.skew;
    const store = new Store(new Connection([kv.connect(this.wire)]), { maxChecks: 10, clock });
    const versions = new Versions(store);
    const accounts = versions.watch(ACCOUNTS_VERSION);
    this.leases = new Leases({ store, clock });
    this.gate = new Gate({ store, versions, accounts, environment: "staging", leases: this.leases });
    this.clock = clock;
  }

  readonly clock: () => number;
}

/** An account, and what is known of it from outside. */
class Customer {
  readonly id: string;
  apiKey: string;
  /** Limits, and when each came into force. */
  readonly limits: { readonly from: number; readonly limits: Limits }[];
  /** Requests that were under way during a reset, so that they may count before or after it. */
  slack = 0;
  wasReset = false;
  /** Admitted requests by minute and by day. */
  readonly admitted: Map<string, number> = new Map();
  /** Requests that were not answered yet, or with a failure. */
  unanswered = 0;

  constructor({ account, apiKey }: Issued) {
    this.id = account.id;
    this.apiKey = apiKey;
    this.limits = [{ from: -Infinity, limits: account.limits }];
  }

  /** The limits in force at some time in between. */
  inForce(from: number, to: number): Limits[] {
    // Two entries of one time: either may have been.
    return this.limits.filter((entry, index) =>
      entry.from <= to && (this.limits[index + 1]?.from ?? Infinity) >= from
    )
      .map(({ limits }) => limits);
  }

  count(window: string): number {
    return this.admitted.get(window) ?? 0;
  }
}

class World {
  readonly time: VirtualTime;
  readonly kv: FakeKv = new FakeKv();
  readonly customers: Customer[] = [];
  readonly processes: Process[];
  readonly operator: AccountsElsewhere;
  readonly pending: Set<Promise<void>> = new Set();
  readonly failures: unknown[] = [];
  /** Whether places may be lost: a process crashed, or was not heard of for long. */
  isFaulty = false;
  /** Whether commits were refused, so that requests may be, too. */
  mayRefuse = false;
  #sent = 0;

  constructor(time: VirtualTime) {
    this.time = time;
    this.processes = Array.from({ length: PROCESSES }, () => new Process(this.kv, time, 0));
    const wire = new Wire(time);
    const store = new Store(new Connection([this.kv.connect(wire)]), {
      maxChecks: 10,
      clock: () => this.#wall(),
    });
    this.operator = new AccountsElsewhere(store);
  }

  async setUp(): Promise<void> {
    for (const limits of LIMITS) {
      const issued = await this.operate(() =>
        this.operator.create({
          name: "a",
          plan: "enterprise",
          limits,
          signedUp: false,
        }, START)
      );
      assert(issued);
      this.customers.push(new Customer(issued));
    }
  }

  /** Does something as an operator, which nobody disturbs. */
  operate<T>(work: () => Promise<T>): Promise<T> {
    return this.time.until(work(), 60_000);
  }

  process(index: number): Process {
    const process = this.processes[index];
    assert(process);
    return process;
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case "request":
        for (let count = 0; count < step.count; count++) {
          this.#send(step.process, step.account);
        }
        return;
      case "advance":
        return await this.time.advance(step.ms);
      case "edge":
        // To the last millisecond of a minute, or of the day, by this process's clock.
        return await this.time.advance(MINUTE - 1 - this.process(step.process).clock() % MINUTE);
      case "skew":
        this.process(step.process).skew = step.ms;
        return;
      case "pause":
        this.isFaulty = true;
        this.process(step.process).wire.pausedUntil = this.time.now + step.ms;
        return;
      case "refuse":
        this.mayRefuse = true;
        this.process(step.process).wire.refusesUntil = this.time.now + step.ms;
        return;
      case "late reply":
        this.process(step.process).wire.lateness = step.ms;
        return;
      case "lose reply":
        this.process(step.process).wire.losesReply = true;
        return;
      case "land late":
        this.isFaulty = true;
        this.process(step.process).wire.landsLate = true;
        return;
      case "crash":
        this.isFaulty = true;
        return this.#replace(step.process);
      case "stop": {
        const { leases, wire } = this.process(step.process);
        wire.refusesUntil = 0;
        await this.time.advance(3 * LATENCY);
        await this.time.until(leases.settle(), 60_000);
        return this.#replace(step.process);
      }
      case "plan":
        return await this.#changePlan(this.#customer(step.account), step.limits);
      case "reset": {
        const customer = this.#customer(step.account);
        customer.wasReset = true;
        await this.operate(() =>
          this.operator.changeUsage(customer.id, (usage) => reset(usage, this.#wall()))
        );
        customer.admitted.clear();
        customer.slack += customer.unanswered;
        return;
      }
      case "unban": {
        const { id } = this.#customer(step.account);
        await this.operate(() => this.operator.changeUsage(id, pardon));
        return;
      }
      case "rotate": {
        const customer = this.#customer(step.account);
        const issued = await this.operate(() => this.operator.rotate(customer.id, 60_000, this.#wall()));
        assert(issued);
        customer.apiKey = issued.apiKey;
      }
    }
  }

  /** Lets everything come to rest, and holds it against what was seen. */
  async assertAtRest(): Promise<void> {
    for (const process of this.processes) {
      process.wire.losesReply = process.wire.landsLate = false;
      process.wire.lateness = 0;
      process.wire.refusesUntil = 0;
      process.skew = 0;
    }
    await this.time.advance(10_000);
    await Promise.all(this.processes.map(({ leases }) => this.time.until(leases.settle(), 60_000)));
    await this.time.advance(100);
    if (!this.isFaulty) {
      for (const customer of this.customers) this.#assertRows(customer);
    }
    const rows = JSON.stringify([...this.kv.rows]);
    for (const repeat of this.kv.repetitions) assertEquals(repeat().ok, false);
    assertEquals(JSON.stringify([...this.kv.rows]), rows);
  }

  #assertRows(customer: Customer): void {
    const row = this.kv.rows.get(JSON.stringify(usageKey(customer.id)));
    assert(row);
    const usage = decodeUsage(row);
    const day = dayOf(usage.minute);
    assertEquals([usage.leased, usage.leasedToday], [0, 0]);
    if (customer.wasReset) return;
    assertEquals(usage.used, customer.count(`minute ${usage.minute}`));
    assertEquals(usage.usedToday, customer.count(`day ${day}`));
    const before = this.kv.rows.get(JSON.stringify(dayTotalKey(day - 1, customer.id)));
    const total = before ? decodeJson<{ admitted: number }>(before).admitted : 0;
    assertGreaterOrEqual(total, customer.count(`day ${day - 1}`));
  }

  #wall(): number {
    return START + Math.floor(this.time.now);
  }

  #customer(index: number): Customer {
    const customer = this.customers[index];
    assert(customer);
    return customer;
  }

  #replace(index: number): void {
    const { wire, skew } = this.process(index);
    wire.isCut = true;
    this.processes[index] = new Process(this.kv, this.time, skew);
  }

  async #changePlan(customer: Customer, limits: Limits): Promise<void> {
    const before = customer.limits.at(-1);
    assert(before);
    const from = this.#wall();
    // Until the change is done, either may be in force.
    customer.limits.push({ from, limits }, { from, limits: before.limits });
    await this.operate(() => this.operator.change(customer.id, { limits }));
    customer.limits.push({ from: this.#wall(), limits });
  }

  #send(process: number, account: number): void {
    const { gate, clock } = this.process(process);
    const customer = this.#customer(account);
    const arrived = this.#wall();
    customer.unanswered++;
    const { apiKey } = customer;
    const started = performance.now();
    const enter = async (isProvisional: boolean) => {
      const { ready, admit } = gate.enter(`Bearer ${apiKey}`, () => "192.0.2.1", clock(), isProvisional);
      await ready;
      return await admit();
    };
    const admitted = Promise.try(async () => {
      const admission = await enter(this.#sent++ % 2 === 0);
      const { provisional } = admission;
      if (provisional === undefined) return admission;
      try {
        return await provisional.confirmed(() => admission, started);
      } catch (error) {
        if (!(error instanceof Outdated)) throw error;
        provisional.takeBack();
        return await enter(false);
      }
    });
    const answered = admitted.then(
      (admission) => {
        customer.unanswered--;
        // Rotated twice, the key may have ended meanwhile.
        if (admission.account || apiKey === customer.apiKey) {
          this.#check(customer, admission, arrived);
        }
      },
      (error) => {
        assert(error instanceof StoreUnavailable, String(error));
        if (error.name === "CommitInDoubt") this.isFaulty = true;
        else customer.unanswered--;
      },
    ).catch((failure) => void this.failures.push(failure)).finally(() => this.pending.delete(answered));
    this.pending.add(answered);
  }

  #check(customer: Customer, { account, decision }: Admission, arrived: number): void {
    assertEquals(account?.id, customer.id);
    const { refusal, minute, day } = decision;
    assert(day);
    const windows = [
      { name: `minute ${minute.reset - MINUTE}`, of: "minute" },
      { name: `day ${dayOf(day.reset - 1)}`, of: "day" },
    ] as const;
    const inForce = customer.inForce(arrived, this.#wall());
    for (const { name, of } of windows) {
      if (refusal === undefined) {
        customer.admitted.set(name, customer.count(name) + 1);
        const most = Math.max(...inForce.map((limits) => limits[of])) + customer.slack;
        assert(customer.count(name) <= most, `${customer.count(name)} of ${most} in ${name}`);
      } else if (refusal === of && !this.isFaulty && !this.mayRefuse && !customer.wasReset) {
        const least = Math.min(...inForce.map((limits) => limits[of]));
        const known = customer.count(name) + customer.unanswered;
        assert(known >= least, `Refused with ${known} of ${least} in ${name}`);
      }
    }
  }
}

/** Resolves after so many ms of virtual time. */
function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const process = fc.nat(PROCESSES - 1);
const account = fc.nat(LIMITS.length - 1);
const one = <Kind extends Step["kind"]>(...kinds: Kind[]) => fc.constantFrom(...kinds);
const upTo = (max: number) => fc.integer({ min: 1, max });
const request = fc.record({ kind: one("request"), process, account, count: fc.oneof(upTo(3), upTo(80)) });
const advance = fc.record({ kind: one("advance"), ms: fc.oneof(upTo(60), upTo(1_000), upTo(40_000)) });
const others: fc.Arbitrary<Step>[] = [
  fc.record({ kind: one("edge"), process }),
  fc.record({ kind: one("skew"), process, ms: fc.integer({ min: -5_000, max: 5_000 }) }),
  fc.record({ kind: one("lose reply"), process }),
  fc.record({ kind: one("late reply"), process, ms: upTo(300) }),
  fc.record({ kind: one("stop"), process }),
  fc.record({ kind: one("refuse"), process, ms: upTo(12_000) }),
  fc.record({ kind: one("plan"), account, limits: fc.constantFrom(...LIMITS) }),
  fc.record({ kind: one("reset", "unban", "rotate"), account }),
];
/** A plan changes while the reply of a commit that leases places is on its way; a new key has it read at once. */
const overtaken = fc.record({ process, account, limits: fc.constantFrom(...LIMITS), ms: upTo(300) }).map(
  ({ process, account, limits, ms }): Step[] => [
    { kind: "request", process, account, count: 20 },
    { kind: "advance", ms: 3 * LATENCY },
    { kind: "late reply", process, ms },
    { kind: "request", process, account, count: 20 },
    { kind: "advance", ms: LATENCY },
    { kind: "plan", account, limits },
    { kind: "rotate", account },
    { kind: "request", process, account, count: 2 },
  ],
);
const step: fc.Arbitrary<Step[]> = fc.oneof(
  { weight: 12, arbitrary: request.map((step) => [step]) },
  { weight: 12, arbitrary: advance.map((step) => [step]) },
  ...[...others.map((other) => other.map((step) => [step])), overtaken]
    .map((arbitrary) => ({ weight: 1, arbitrary })),
);
const fault: fc.Arbitrary<Step[]> = fc.oneof(
  fc.record({ kind: one("crash", "land late"), process }),
  fc.record({ kind: one("pause"), process, ms: upTo(8_000) }),
).map((step) => [step]);

async function run(steps: readonly Step[][]): Promise<void> {
  using time = new VirtualTime();
  const world = new World(time);
  await world.setUp();
  for (const step of steps.flat()) await world.take(step);
  await world.assertAtRest();
  await Promise.all(world.pending);
  for (const failure of world.failures) throw failure;
}

/** Requests are charged to a minute that is over when their late reply comes, and the plan is another then. */
const CHARGED_BEFORE: Step[][] = [
  [{ kind: "request", process: 1, account: 1, count: 1 }],
  [{ kind: "edge", process: 0 }],
  [{ kind: "request", process: 0, account: 1, count: 1 }],
  [{ kind: "late reply", process: 1, ms: 101 }],
  [{ kind: "request", process: 1, account: 1, count: 20 }, { kind: "advance", ms: 3 * LATENCY }],
  [{ kind: "late reply", process: 1, ms: 1 }, { kind: "request", process: 1, account: 1, count: 20 }],
  [{ kind: "advance", ms: LATENCY }, { kind: "plan", account: 1, limits: { minute: 8, day: 20 } }],
  [{ kind: "rotate", account: 1 }, { kind: "request", process: 1, account: 1, count: 2 }],
];

Deno.test("Gate admits never more, and without faults never less, than the limits whatever happens", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), run),
    { numRuns: Number(Deno.env.get("RUNS") ?? 60), examples: [[CHARGED_BEFORE]] },
  );
});

Deno.test("Gate admits never more than the limits when processes crash or commits land late", async () => {
  const steps = fc.array(
    fc.oneof({ weight: 8, arbitrary: step }, { weight: 1, arbitrary: fault }),
    { maxLength: 60, size: "max" },
  );
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: Number(Deno.env.get("RUNS") ?? 60) });
});
