import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { type Allowance, RETURN_TIME, UNDECIDED } from "../../src/limits/allowance.ts";
import { decodeState, type Holder, type Holders, type HolderState } from "../../src/limits/holder.ts";
import { Permits } from "../../src/limits/permits.ts";
import {
  type Decision,
  decodeUsage,
  encodeUsage,
  UNUSED,
  type Usage,
  usageKey,
} from "../../src/limits/usage.ts";
import { monotonicNow, PAST, pause } from "../../src/base/time.ts";
import { decodeJson, encodeJson } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { upTo } from "../support/client.ts";
import { calmNetwork, fail, FakeKv, type Network, onFile } from "../support/fake_kv.ts";
import { NOON, VirtualTime } from "../support/time.ts";

/** A holder of limits that is no account. */
interface Tenant extends Holder {
  readonly credential: string;
}

const TENANTS: Holders<Tenant> = {
  key: (id) => ["tenants", id],
  decode: (_id, row) => row ? decodeJson(row) : undefined,
  isOpenedBy: (tenant, credential) => tenant.credential === credential,
};
const ID = "ann";
const [HOLDER, USAGE] = [["tenants", ID], usageKey(ID)];
const LIMITS = { minute: 1_000, day: 9_000 };
const SMALL = { minute: 2, day: 9 };
const LATER = NOON + 60_000;

/** A KV with one tenant, and a process that knows it. */
class Tenancy implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly fake: FakeKv = new FakeKv();
  readonly network: Network = calmNetwork();
  readonly kv: Deno.Kv = this.fake.connect(this.network);
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers();
  now = NOON;
  readonly store: Store;
  readonly transactions: Transactions;
  readonly permits: Permits<Tenant>;
  allowance: Allowance<Tenant>;

  constructor(limits = LIMITS, usage: Partial<Usage> = {}) {
    const clock = () => this.now;
    const store = this.store = new Store(onFile(this.kv, { clock }));
    const transactions = new Transactions(store, clock);
    this.transactions = transactions;
    this.permits = new Permits({ store, transactions, holders: TENANTS, clock });
    this.set(HOLDER, encodeJson({ id: ID, limits, credential: "key" }));
    this.set(USAGE, encodeUsage({ ...UNUSED, minute: NOON, ...usage }));
    this.allowance = this.permits.learn(this.state, PAST);
  }

  /** The stored usage. */
  get usage(): Usage {
    const row = this.fake.rows.get(JSON.stringify(USAGE));
    return row ? decodeUsage(row) : UNUSED;
  }

  get state(): HolderState<Tenant> {
    const rows = [HOLDER, USAGE].map((key) => this.fake.rows.get(JSON.stringify(key)) ?? null);
    const state = decodeState(TENANTS, ID, rows);
    assert(state);
    return state;
  }

  /** What the row counts: permits taken, and leased ones. */
  get counts(): [used: number, leased: number] {
    return [this.usage.used, this.usage.leased];
  }

  /** Learns the rows as they are. */
  learn(): void {
    this.allowance = this.permits.learn(this.state, monotonicNow());
  }

  async set(key: Deno.KvKey, value: unknown): Promise<void> {
    await this.fake.connect().atomic().set(key, value).commit();
  }

  /** Changes those rows for which there is a change, as another process does. */
  async change(usage: Partial<Usage>, tenant: Partial<Tenant> = {}): Promise<void> {
    if (Object.keys(usage).length > 0) await this.set(USAGE, encodeUsage({ ...this.usage, ...usage }));
    if (Object.keys(tenant).length === 0) return;
    await this.set(HOLDER, encodeJson({ ...this.state.holder, ...tenant }));
  }

  /** Sends requests that wait for a run. */
  ask(count: number, credential = "key"): Promise<(Decision | typeof UNDECIDED)[]> {
    const request = { credential, now: this.now, at: monotonicNow() };
    return Promise.all(Array.from({ length: count }, () => this.allowance.decideInRun(request)));
  }

  /** The outcomes of requests, or of so many, that wait for a run: `ok`, a refusal, or `again`. */
  async outcomes(requests: number | ReturnType<typeof this.ask>, ms = 10_000): Promise<string[]> {
    const asked = typeof requests === "number" ? this.ask(requests) : requests;
    const decided = await this.time.until(asked, ms);
    return decided.map((decision) => decision === UNDECIDED ? "again" : decision.refusal ?? "ok");
  }

  /** Grants two requests. Returns their decisions. */
  async grantTwo(): Promise<readonly [Decision, Decision]> {
    const [one, other] = await this.time.until(this.ask(2), 1_000);
    assert(one && one !== UNDECIDED && other && other !== UNDECIDED);
    return [one, other];
  }

  /** Grants two requests, and leases a hundredth of the rest. */
  async lease(): Promise<void> {
    assertEquals(await this.outcomes(2), ["ok", "ok"]);
    assert(this.allowance.isLeased);
  }

  /** Decides on a request from memory. */
  decide(): string | undefined {
    const decision = this.allowance.decideFromMemory({ at: monotonicNow() });
    return decision && (decision.refusal ?? "ok");
  }

  /** Decides on several requests from memory. */
  decideAll(count: number): (string | undefined)[] {
    return Array.from({ length: count }, () => this.decide());
  }

  /** What a commit does that hangs until the end of the test, and then fails. */
  readonly hang: Network["commit"] = () => this.#end.promise.then(fail);

  /** Gives everything back. */
  settle(): Promise<void> {
    return this.time.until(this.permits.settle(), 10_000);
  }

  /** Ends when everything is written. */
  async [Symbol.asyncDispose](): Promise<void> {
    Object.assign(this.network, calmNetwork());
    this.#end.resolve();
    await this.time.advance(20_000);
    await this.time[Symbol.asyncDispose]();
  }
}

/** Replaces the next commit. */
function atNextCommit(network: Network, commit: Network["commit"]): void {
  const usual = network.commit;
  network.commit = (...given) => {
    network.commit = usual;
    return commit(...given);
  };
}

Deno.test.each([
  ["its own window", {}, { used: 1, usedToday: 1 }],
  ["a later minute", { minute: LATER, used: 0 }, { used: 0, usedToday: 1 }],
  ["a window after a reset", { epoch: 1 }, { used: 2, usedToday: 2 }],
])("Allowance.giveBack() gives a used permit back once, in %s", async (_, change, expected) => {
  await using tenancy = new Tenancy(SMALL);
  const [decision] = await tenancy.grantTwo();
  await tenancy.change(change);
  tenancy.learn();

  tenancy.allowance.giveBack(decision);

  for (let times = 0; times < 2; times++) {
    await tenancy.settle();
    const { used, usedToday, leased } = tenancy.usage;
    assertEquals({ used, usedToday, leased }, { ...expected, leased: 0 });
  }
  assertEquals(tenancy.allowance.isActive, false);
});

Deno.test("Allowance decides again if its row has changed, and only the last decision has an effect", async () => {
  await using tenancy = new Tenancy();
  const [decision] = await tenancy.grantTwo();
  atNextCommit(tenancy.network, async (apply) => {
    await tenancy.change({ used: tenancy.usage.used + 100 });
    tenancy.allowance.giveBack(decision);
    return apply();
  });

  await tenancy.settle();

  assertEquals(tenancy.counts, [101, 0]);
});

Deno.test("Allowance.decideFromMemory() hands out only what is left of the lease", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  const { left } = tenancy.allowance;
  tenancy.network.commit = tenancy.hang;

  assertEquals(tenancy.decideAll(20).filter((one) => one !== undefined).length, left);
});

Deno.test("Allowance keeps a lease while it is in use, and gives it back once it is not", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  for (let count = 0; count < 10; count++) {
    await tenancy.time.advance(240);
    assertEquals(tenancy.decide(), "ok");
  }
  assertEquals(tenancy.allowance.isLeased, true);

  await tenancy.time.advance(700);

  assertEquals([tenancy.counts, tenancy.allowance.isActive], [[12, 0], false]);
  const version = tenancy.state.usageRow?.versionstamp;
  await tenancy.time.advance(60_000);
  assertEquals(tenancy.state.usageRow?.versionstamp, version);
});

Deno.test.each<[where: string, isFar: boolean, leases: boolean[]]>([
  ["only for the second request in two seconds, so that a lone one has nothing to give back", false, [
    false,
    false,
    true,
    true,
  ]],
  ["for the first request, if the store is far", true, [true, true, true, true]],
])("Allowance leases permits %s", async (_, isFar, leases) => {
  await using tenancy = new Tenancy();
  Object.defineProperty(tenancy.store.commits, "isFar", { value: isFar });
  const leased: boolean[] = [];
  for (const ms of [2_001, 2_001, 2_000, 10]) {
    await tenancy.time.advance(ms);
    assertEquals(tenancy.decide() ?? await tenancy.outcomes(1), ms === 10 ? "ok" : ["ok"]);
    leased.push(tenancy.allowance.isLeased);
  }

  assertEquals(leased, leases);
  assertEquals(tenancy.counts, [12, 9]);
});

Deno.test("Allowance renews a lease that is low after a renewal that needed no more permits", async () => {
  await using tenancy = new Tenancy({ minute: 60, day: 99 });
  for (const count of [20, 1]) await tenancy.time.until(tenancy.ask(count), 1_000);
  tenancy.decide();
  await tenancy.time.advance(300);
  const { left } = tenancy.allowance;
  assertEquals(tenancy.decideAll(5), Array(5).fill("ok"));
  await tenancy.time.advance(1);

  assertEquals(left, 8);
  assert(tenancy.allowance.left > left - 5);
});

Deno.test.each<[what: string, Partial<Usage>, left: number, used: number]>([
  ["keeps a lease in use, even if it loses a race when it renews it", { used: 111 }, 9, 111],
  ["gives a lease in use back if a window has become full", { used: 1_000, noLeasesUntil: LATER }, 0, 991],
])("Allowance %s", async (_, usage, left, used) => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  tenancy.decide();
  await tenancy.change(usage);

  await tenancy.time.advance(400);

  assertEquals([tenancy.allowance.left, tenancy.counts], [left, [used, left]]);
});

Deno.test("Allowance gives nothing back twice, and hands out nothing, if a commit may have applied", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  const { leased } = tenancy.usage;
  tenancy.network.commit = (...given) => (given[0](), tenancy.hang(...given));
  const requests = tenancy.permits.settle();
  await tenancy.time.advance(20_000);
  tenancy.network.commit = calmNetwork().commit;
  await tenancy.time.advance(20_000);
  await requests;

  assertEquals([tenancy.allowance.left, tenancy.allowance.isLeased, leased], [0, false, 10]);
  assertEquals(tenancy.counts, [2, 0]);
});

Deno.test("Allowance writes later what a run that fails does not write, and what comes back during the run", async () => {
  await using tenancy = new Tenancy();
  const decisions = await tenancy.time.until(tenancy.ask(200), 1_000);
  tenancy.decide();
  tenancy.network.commit = async () => {
    await pause(100);
    return { ok: false };
  };
  for (const decision of decisions) {
    if (decision !== UNDECIDED) tenancy.allowance.giveBack(decision);
    await tenancy.time.advance(40);
  }
  tenancy.network.commit = calmNetwork().commit;
  await tenancy.time.advance(10_000);

  assertEquals(tenancy.counts, [1, 0]);
});

Deno.test("Allowance waits two seconds after a failure before it gives permits back", async () => {
  await using tenancy = new Tenancy();
  await tenancy.time.until(tenancy.ask(200), 1_000);
  let tries = 0;
  tenancy.network.commit = async () => {
    tries++;
    await pause(10);
    return await fail();
  };
  await tenancy.time.advance(2_000);

  assertEquals(tries, 1);
});

Deno.test("Allowance rejects waiting requests if a run fails, and grants the next ones", async () => {
  await using tenancy = new Tenancy();
  tenancy.network.commit = fail;
  const failed = await tenancy.time.until(Promise.allSettled([tenancy.ask(1), tenancy.ask(1)]), 20_000);
  tenancy.network.commit = calmNetwork().commit;

  assertEquals(failed.map(({ status }) => status), ["rejected", "rejected"]);
  assertEquals(await tenancy.outcomes(1), ["ok"]);
});

Deno.test.each<[what: string, when: string, Partial<Usage>, Partial<Tenant>, counted: number]>([
  ["counts", "another process used permits", { used: 10 }, {}, 3],
  ["drops", "the minute ended", { minute: LATER }, {}, 0],
  ["drops", "a reset", { epoch: 1 }, {}, 0],
  ["drops", "its account was changed", {}, { credential: "new" }, 0],
])("Allowance %s refusals from before %s, whether a run or a request reads that", async (...row) => {
  const [, , usage, tenant, counted] = row;
  for (const isRead of [false, true]) {
    await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
    assertEquals(tenancy.decideAll(3), Array(3).fill("minute"));

    await tenancy.change(usage, tenant);
    if (isRead) tenancy.learn();
    await tenancy.time.advance(1_000);

    assertEquals(tenancy.usage.refused, counted);
  }
});

Deno.test("Allowance counts each refusal once, including those during a run", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
  tenancy.decideAll(3);
  atNextCommit(tenancy.network, (apply) => {
    assertEquals(tenancy.decideAll(2), ["minute", "minute"]);
    return Promise.resolve(apply());
  });

  await tenancy.time.advance(5_000);

  assertEquals([tenancy.usage.refused, tenancy.allowance.isActive], [5, false]);
});

Deno.test("Allowance.decideFromMemory() leaves the refusal that starts a ban to a transaction", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
  assertEquals(tenancy.decide(), "minute");
  await tenancy.time.advance(5_001);

  assertEquals(tenancy.decideAll(10), [...Array(9).fill("minute"), undefined]);
  assertEquals(await tenancy.outcomes(2), ["ban", "ban"]);
  assertEquals([tenancy.decide(), tenancy.allowance.peek().refusal], ["ban", "ban"]);
  const { strikes, refused } = tenancy.usage;
  assertEquals([strikes, refused], [10, 11]);
});

Deno.test("Allowance.decideFromMemory() also counts the strikes that a run is writing, until it has failed", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
  tenancy.decide();
  await tenancy.time.advance(5_001);
  tenancy.decideAll(9);
  atNextCommit(tenancy.network, tenancy.hang);
  await tenancy.time.advance(300);

  assertEquals([tenancy.decide(), tenancy.usage.strikes], [undefined, 0]);
});

Deno.test("Allowance counts no strikes in a minute that is over, and judges the next one anew", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
  tenancy.decide();
  await tenancy.time.advance(5_001);
  tenancy.decideAll(9);
  tenancy.now = LATER;

  assertEquals(await tenancy.outcomes(4), ["ok", "ok", "minute", "minute"]);

  const { strikes, refused, refusedToday } = tenancy.usage;
  assertEquals([strikes, refused, refusedToday], [0, 2, 12]);
  await tenancy.time.advance(5_000);
  tenancy.decide();
  await tenancy.time.advance(1);
  tenancy.decide();
  await tenancy.settle();
  assertEquals(tenancy.usage.strikes, 1);
});

Deno.test("Allowance.decideFromMemory() refuses nobody while a permit may come back", async () => {
  await using tenancy = new Tenancy(SMALL);
  const [decision] = await tenancy.grantTwo();
  assertEquals([tenancy.counts, tenancy.decide()], [[2, 0], "minute"]);

  tenancy.allowance.giveBack(decision);

  assertEquals(tenancy.decide(), undefined);
  assertEquals(await tenancy.outcomes(2), ["ok", "minute"]);
});

Deno.test.each<[what: string, when: string, Partial<Usage>, Partial<Tenant>, string | undefined]>([
  ["refuses", "nothing else has changed", {}, {}, "minute"],
  ["refuses nothing", "the day is also full", { usedToday: 9 }, {}, undefined],
  ["refuses nothing", "the account has changed", {}, { credential: "key" }, undefined],
])("Allowance.decideFromMemory() %s after requests waited in vain, if %s", async (...row) => {
  const [, , usage, tenant, outcome] = row;
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2, leased: 1, leasedToday: 1 });
  assertEquals(tenancy.decide(), undefined);
  const before = tenancy.time.now;
  assertEquals(await tenancy.outcomes(2), ["minute", "minute"]);
  assertEquals(tenancy.time.now - before, RETURN_TIME);

  await tenancy.change(usage, tenant);
  tenancy.learn();

  assertEquals(tenancy.decide(), outcome);
});

Deno.test("Allowance.decideFromMemory() refuses at once, until its window ends, if permits can come back to another only", async () => {
  {
    await using minute = new Tenancy(SMALL, { used: 2, usedToday: 2, leasedToday: 1 });
    assertEquals(minute.decide(), "minute");
    minute.now = LATER;
    assertEquals(minute.decide(), undefined);
  }
  await using day = new Tenancy(SMALL, { usedToday: 9, leasedToday: 1 });
  assertEquals([day.decide(), await day.outcomes(1), day.decide()], [undefined, ["day"], "day"]);
  day.now = NOON + 43_200_000;
  assertEquals(day.decide(), undefined);
});

Deno.test.each<[string, Partial<Usage>, Partial<Tenant>]>([
  ["has new limits", { used: 3 }, { limits: { minute: 3, day: 9 } }],
  ["was reset", { epoch: 1 }, {}],
])("Allowance lets requests wait again if a run finds that its account %s", async (_, usage, tenant) => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2, leased: 1, leasedToday: 1 });
  assertEquals(await tenancy.outcomes(1), ["minute"]);
  await tenancy.change(usage, tenant);
  const request = tenancy.ask(1);
  await tenancy.time.advance(100);

  await tenancy.change({ used: 1, leased: 0 });

  assertEquals(await tenancy.outcomes(request), ["ok"]);
});

Deno.test("Allowance.decideFromMemory() refuses nobody on rows read before other processes had to give permits back", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2, leased: 1, leasedToday: 1 });
  await tenancy.change({ used: 1, usedToday: 1, leased: 0, leasedToday: 0 });
  await tenancy.time.advance(2 * RETURN_TIME);

  assertEquals(tenancy.decide(), undefined);
  assertEquals(await tenancy.outcomes(2), ["ok", "minute"]);
  assertEquals(tenancy.decide(), "minute");
});

Deno.test("Allowance lets nobody wait longer for a window, whatever its counts do", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2, leased: 2, leasedToday: 2 });
  await tenancy.time.advance(2_000);
  await tenancy.change({ used: 1, leased: 1 });
  assertEquals(await tenancy.outcomes(1), ["ok"]);
  const before = tenancy.time.now;

  assertEquals(await tenancy.outcomes(1), ["minute"]);

  assertEquals(tenancy.time.now - before, 1_000);
});

Deno.test("Allowance tries again every 50 ms for waiting requests, and at once if a permit comes back", async () => {
  await using tenancy = new Tenancy({ minute: 400, day: 9_000 });
  const [first, second] = await tenancy.grantTwo();
  await tenancy.time.advance(5_000);
  await tenancy.change({ used: 400, leased: 1, leasedToday: 1 });
  const requests = tenancy.ask(3);
  await tenancy.time.advance(10);
  assertEquals(tenancy.usage.used, 400);
  tenancy.allowance.giveBack(first);
  await tenancy.time.advance(0);
  assertEquals([tenancy.usage.used, tenancy.allowance.held], [400, []]);
  await tenancy.change({ used: 399 });
  await tenancy.time.advance(50);
  assertEquals(tenancy.usage.used, 400);
  tenancy.allowance.giveBack(second);

  assertEquals(await tenancy.outcomes(requests, 0), ["ok", "ok", "ok"]);
});

Deno.test.each([0, 1, 2, 3])(
  "Allowance starts a run for requests that find the lease empty when they ask again, %i microtasks later",
  async (microtasks) => {
    await using tenancy = new Tenancy();
    const send = async (): Promise<Decision> => {
      const at = monotonicNow();
      const decision = await tenancy.allowance.decideInRun({ credential: "key", now: tenancy.now, at });
      for (let count = 0; count < microtasks; count++) await undefined;
      return decision === UNDECIDED ? tenancy.allowance.decideFromMemory({ at }) ?? send() : decision;
    };
    const { promise, resolve } = Promise.withResolvers<Decision[]>();
    atNextCommit(tenancy.network, (apply) => {
      resolve(Promise.all(Array.from({ length: 30 }, send)));
      return Promise.resolve(apply());
    });

    assertEquals(await tenancy.outcomes(tenancy.ask(1), 0), ["ok"]);

    assertEquals(await tenancy.outcomes(promise, 0), Array(30).fill("ok"));
  },
);

Deno.test("Allowance refuses no request without a commit that arrived after its rows were read", async () => {
  await using tenancy = new Tenancy(SMALL, { bannedUntil: LATER });
  const { promise, resolve } = Promise.withResolvers<(Decision | typeof UNDECIDED)[]>();
  const { kv, kv: { getMany } } = tenancy;
  kv.getMany = async (keys) => {
    const rows = await getMany(keys);
    Object.assign(kv, { getMany });
    await tenancy.change({ bannedUntil: 0 });
    resolve(tenancy.ask(1));
    return rows;
  };

  const outcomes = [await tenancy.outcomes(1), await tenancy.outcomes(promise)];

  assertEquals(outcomes, [["ban"], ["ok"]]);
});

Deno.test("Allowance counts a refusal as told only once its commit has applied", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 2 });
  atNextCommit(tenancy.network, async (apply) => {
    await tenancy.change({ used: 1 });
    return apply();
  });
  assertEquals(await tenancy.outcomes(1), ["ok"]);
  await tenancy.time.advance(5_000);

  assertEquals(await tenancy.outcomes(3), ["minute", "minute", "minute"]);

  assertEquals([tenancy.usage.refused, tenancy.usage.strikes], [3, 0]);
});

Deno.test("Allowance.learn() ignores older rows, so that a change stays known", async () => {
  await using tenancy = new Tenancy();
  const before = tenancy.state;
  await tenancy.change({}, { credential: "new" });
  await tenancy.change({ used: 5 });
  tenancy.learn();

  tenancy.allowance.learn(before, PAST);

  assertEquals(tenancy.allowance.holder.credential, "new");
  assertEquals(tenancy.allowance.usageWithoutLease(before.usage, before.usageRow).used, 5);
});

Deno.test("Allowance drops everything if its holder is missing, and requests are recognized anew", async () => {
  await using tenancy = new Tenancy();
  const [decision] = await tenancy.grantTwo();
  await tenancy.change({}, { limits: SMALL });
  tenancy.learn();
  await tenancy.kv.atomic().delete(HOLDER).delete(USAGE).commit();

  assertEquals(await tenancy.outcomes(2), ["again", "again"]);
  assertEquals([tenancy.allowance.isKnown, tenancy.allowance.isLeased], [false, false]);
  tenancy.allowance.giveBack(decision);
  await tenancy.time.advance(10_000);
  assertEquals(tenancy.allowance.isActive, false);
  assertEquals(tenancy.usage, UNUSED);
});

Deno.test("Allowance grants nothing to a credential that no longer opens its account", async () => {
  await using tenancy = new Tenancy();
  await tenancy.change({}, { credential: "new" });

  assertEquals(await tenancy.outcomes(3), ["again", "again", "again"]);
  assertEquals(await tenancy.outcomes(tenancy.ask(1, "new")), ["ok"]);
});

Deno.test("Allowance learns the row as its commit left it, with the changes of other transactions", async () => {
  await using tenancy = new Tenancy({ minute: 60, day: 99 });
  const reads = [{ key: USAGE, entry: tenancy.state.usageRow }];
  const own = tenancy.ask(1);
  const other = tenancy.transactions.run({
    reads,
    decide(rows, write) {
      const row = rows.get(USAGE);
      assert(row);
      return write.set(USAGE, encodeUsage({ ...decodeUsage(row), used: 59 }));
    },
  });
  await tenancy.time.until(Promise.all([own, other]), 1_000);

  assertEquals(tenancy.usage.used, 59);
  assertEquals(tenancy.allowance.usageWithoutLease(UNUSED, null).used, 59);
});

Deno.test.each<[string, Partial<Usage>, Partial<Tenant>, now: number]>([
  ["has other limits", {}, { limits: { minute: 900, day: 9_000 } }, NOON],
  ["was reset", { epoch: 1 }, {}, NOON],
  ["is in another minute", { minute: LATER }, {}, LATER],
  ["was last seen in an earlier minute", {}, {}, LATER],
])("Allowance hands out nothing of a lease if its account %s, and gives it back", async (...row) => {
  const [, usage, tenant, now] = row;
  await using tenancy = new Tenancy();
  await tenancy.lease();
  await tenancy.change(usage, tenant);
  tenancy.learn();
  tenancy.now = now;

  assertEquals(tenancy.decide(), undefined);
  await tenancy.time.advance(100);

  assertEquals([tenancy.allowance.isLeased, tenancy.allowance.isActive], [false, false]);
  if (!("epoch" in usage)) assertEquals(tenancy.usage.usedToday, 2);
});

Deno.test("Allowance.decideFromMemory() hands out nothing of a lease that is older than two seconds", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  tenancy.network.commit = tenancy.hang;
  tenancy.decide();
  await tenancy.time.advance(2_000);
  const inTime = tenancy.decide();
  await tenancy.time.advance(1);

  assertEquals([inTime, tenancy.decide()], ["ok", undefined]);
});

Deno.test("Allowance reads its rows first only if another process has written them lately", async () => {
  await using tenancy = new Tenancy(SMALL, { used: 2, usedToday: 9 });
  const { network, network: { commit } } = tenancy;
  let [reads, commits] = [0, 0];
  network.read = () => (reads++, Promise.resolve());
  network.commit = (...given) => (commits++, commit(...given));
  const costAfter = async (change: () => Promise<unknown>) => {
    await change();
    await tenancy.time.advance(10);
    [reads, commits] = [0, 0];
    tenancy.allowance.giveBack(tenancy.allowance.peek());
    await tenancy.settle();
    return [reads, commits];
  };
  assertEquals(await costAfter(() => Promise.resolve()), [0, 1]);
  await tenancy.change({ used: 2 });
  tenancy.learn();
  assertEquals(await costAfter(() => tenancy.change({ used: 2 })), [1, 1]);
  assertEquals(await costAfter(() => tenancy.time.advance(10_001)), [0, 1]);
});

Deno.test.each<[string, Partial<Usage>, Partial<Usage>, Partial<Tenant>]>([
  ["ended a ban", { bannedUntil: LATER }, { bannedUntil: 0 }, {}],
  ["reset a full window", { used: 1_000 }, { used: 0, epoch: 1 }, {}],
  ["changed a credential", {}, {}, { credential: "other key" }],
])(
  "Permits.admit() notices within two seconds that another process has %s",
  async (_, before, usage, tenant) => {
    await using tenancy = new Tenancy(LIMITS, before);
    const { credential = "key" } = tenant;
    const admit = () => tenancy.time.until(tenancy.permits.admit(ID, credential), 1_000);
    const refused = await admit();
    assert(refused === undefined || refused.refusal);
    await tenancy.time.advance(2_000);
    await tenancy.change(usage, tenant);

    await tenancy.time.advance(2_000);

    assertEquals((await admit())?.minute.remaining, 999);
  },
);

Deno.test("Permits.settle() leaves no lease, even if requests are waiting for a run", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  const waiting = tenancy.ask(2);

  await tenancy.settle();

  assertEquals(await tenancy.outcomes(waiting), ["ok", "ok"]);
  assertEquals(tenancy.counts, [4, 0]);
});

Deno.test("Permits.settle() ends even if nothing can be written", async () => {
  await using tenancy = new Tenancy();
  await tenancy.lease();
  tenancy.network.commit = fail;

  await tenancy.settle();

  assertEquals(tenancy.allowance.isActive, false);
});

Deno.test("Permits.of() forgets an account only once it is idle, if enough others are learnt", async () => {
  await using tenancy = new Tenancy();
  const { permits, state } = tenancy;
  const learnOthers = () => {
    for (const id of upTo(40_000)) {
      permits.learn({ ...state, holder: { ...state.holder, id: `${id}` } }, PAST);
    }
  };
  await tenancy.lease();

  learnOthers();
  assertStrictEquals(permits.of(ID), tenancy.allowance);
  await tenancy.time.advance(5_000);
  learnOthers();
  assertStrictEquals(permits.of(ID), undefined);
});
