// What the next request finds after another process has changed its account, whatever this process holds of it.
import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { pardon, reset } from "../../src/limits/usage.ts";
import { ACCESS } from "../../src/resource/access.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import { call, callAtOnce, getBanned, JSON_TYPE, type Reply, tally, upTo } from "../support/client.ts";
import { calmNetwork, carryOut, FakeKv, type Network } from "../support/fake_kv.ts";
import { Harness, type HarnessOptions, RecordingService } from "../support/harness.ts";
import { SAMPLES } from "../support/operations.ts";
import { HAMMER, PLANS } from "../support/things.ts";
import { NOON, type VirtualTime } from "../support/time.ts";

const HOUR = 3_600_000;
const POST = "POST /v1/things";

/** Two processes, and an account on the Free plan that has added a thing. */
class Fixture implements AsyncDisposable {
  readonly service: RecordingService;
  readonly other: RecordingService;
  /** IDs of the account and of another one, and their keys. */
  ids: readonly string[] = [];
  keys: readonly string[] = [];

  private constructor(service: RecordingService) {
    this.service = service;
    this.other = service.beside();
  }

  static async open(options?: HarnessOptions, fake?: FakeKv): Promise<Fixture> {
    const fixture = new Fixture(await RecordingService.open(options, fake));
    const issued = [await fixture.service.createAccount("free"), await fixture.service.createAccount("free")];
    fixture.ids = issued.map(({ account: { id } }) => id);
    fixture.keys = issued.map(({ apiKey }) => apiKey);
    await fixture.send(POST, HAMMER);
    return fixture;
  }

  get time(): VirtualTime {
    return this.service.time;
  }

  /** Sends a request of the account. */
  send(target: string, json?: object, key = this.keys[0]): Promise<Reply> {
    return this.time.until(call(this.service, key, target, json && { json }), 5_000);
  }

  /** Sends requests that only read, one after the other, so that the process gets a lease. */
  async read(count: number): Promise<void> {
    for (let sent = 0; sent < count; sent++) await this.send("GET /v1/things");
  }

  /** Starts to add a thing. `sendBody()` sends its body. */
  startAdding(thing: object = HAMMER): { reply: Promise<Reply>; sendBody: () => void } {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    return {
      reply: call(this.service, this.keys[0], POST, { body: readable, headers: JSON_TYPE }),
      sendBody: () => void new Blob([JSON.stringify(thing)]).stream().pipeTo(writable),
    };
  }

  /** All stored rows but those of usage and of commits, or those of these tables. */
  stored(...tables: readonly string[]): unknown[] {
    return [...this.service.fake.rows.values()].filter(({ key: [table] }) =>
      tables.length > 0 ? tables.includes(String(table)) : table !== "usage" && table !== "commits"
    );
  }

  /** What the account's row counts once everything is given back. */
  async counts(): Promise<[used: number, leased: number]> {
    await this.time.until(this.service.app.settle(), 5_000);
    await this.time.advance(4_000);
    const { used, leased } = await this.other.accounts.usage(this.ids[0] ?? "");
    return [used, leased];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.other[Symbol.asyncDispose]();
    await this.service[Symbol.asyncDispose]();
  }
}

/** How the account is used before its next request, and when it is changed: by default before that. */
interface Condition {
  readonly prepare: (fixture: Fixture) => Promise<unknown>;
  /** Permits that are used then. */
  readonly used: 12 | 60;
  readonly whileSent?: (fixture: Fixture, change: () => Promise<void>) => Promise<void> | void;
}

const CONDITIONS: Readonly<Record<string, Condition>> = {
  "leased": { used: 12, prepare: (fixture) => fixture.read(11) },
  "leased, while another account's request notices it": {
    used: 12,
    prepare: (fixture) => fixture.read(11),
    whileSent: async (fixture, change) => {
      await change();
      await fixture.send("GET /v1/things", undefined, fixture.keys[1]);
    },
  },
  "waiting for a permit": {
    used: 12,
    prepare: async (fixture) => {
      await fixture.read(11);
      await fixture.time.advance(5_000);
    },
    whileSent: ({ service }, change) => {
      service.disturbance = {
        commit: async (commit) => {
          service.disturbance = {};
          await change();
          return await carryOut(commit);
        },
      };
    },
  },
  "far away": {
    used: 12,
    prepare: (fixture) => fixture.read(11),
    whileSent: async ({ service }, change) => {
      await change();
      const commit = service.disturbance.commit ?? carryOut;
      service.disturbance = { read: () => pause(100), commit: (some) => pause(100).then(() => commit(some)) };
    },
  },
  "exhausted": { used: 60, prepare: ({ service, keys: [key] }) => callAtOnce(69, [service], key) },
  "banned": { used: 60, prepare: ({ service, keys: [key = ""] }) => getBanned(service, key) },
};

/** The next response: remaining requests, or the error code. */
type Outcomes = readonly [open: string, exhausted: string, banned: string];

const ENDED: Outcomes = ["invalid_api_key", "invalid_api_key", "invalid_api_key"];
const SUSPENDED: Outcomes = ["account_suspended", "account_suspended", "account_suspended"];
const SAME: Outcomes = ["47 of 60", "rate_limit_minute", "key_banned"];

type Apply = (accounts: RemoteAccounts, id: string, other: string) => Promise<object | null>;

/** A change, the next response to the old key, and then to a new one. */
const CHANGES: readonly (readonly [what: string, apply: Apply, expected: Outcomes, withNewKey?: Outcomes])[] =
  [
    ["closed", (accounts, id) => accounts.close(id), ENDED],
    ["suspended", (accounts, id) => accounts.suspend(id, NOON), SUSPENDED],
    ["suspended and resumed", async (accounts, id) => {
      await accounts.suspend(id, NOON);
      return await accounts.suspend(id, null);
    }, SAME],
    ["given a new key", (accounts, id) => accounts.rotate(id), ENDED, SAME],
    ["given a new key with a grace", (accounts, id) => accounts.rotate(id, HOUR), SAME, [
      "45 of 60",
      "rate_limit_minute",
      "key_banned",
    ]],
    ["moved to a higher plan", (accounts, id) => accounts.change(id, { limits: PLANS.limits.pro }), [
      "287 of 300",
      "239 of 300",
      "key_banned",
    ]],
    ["moved to a lower plan", (accounts, id) => accounts.change(id, { limits: { minute: 20, day: 99 } }), [
      "7 of 20",
      "rate_limit_minute",
      "key_banned",
    ]],
    ["unbanned", (accounts, id) => accounts.changeUsage(id, pardon), [
      "47 of 60",
      "rate_limit_minute",
      "rate_limit_minute",
    ]],
    ["reset", (accounts, id) => accounts.changeUsage(id, (usage) => reset(usage, NOON)), [
      "59 of 60",
      "59 of 60",
      "key_banned",
    ]],
    [
      "left as it was, and another renamed",
      (accounts, _, other) => accounts.change(other, { name: "new" }),
      SAME,
    ],
  ];

function outcomeOf({ code, remaining, limit }: Reply): string {
  return code || `${remaining} of ${limit}`;
}

/** The outcome of the request after one with this outcome. */
function next(outcome: string): string {
  return outcome.replace(/^\d+(?= of)/, (remaining) => `${Number(remaining) - 1}`);
}

for (const [what, apply, expected, withNewKey] of CHANGES) {
  for (const [condition, { prepare, used, whileSent }] of Object.entries(CONDITIONS)) {
    Deno.test(`service notices at the next request that an account (${condition}) was ${what}`, async () => {
      await using fixture = await Fixture.open();
      const { other, ids: [id = "", stranger = ""] } = fixture;
      await prepare(fixture);
      assertEquals((await other.accounts.usage(id)).leased > 0, /^leased|^far/.test(condition));
      const before = fixture.stored("items", "items_by").length;
      let changed: object | null = null;
      const change = async () => void (changed = await apply(other.accounts, id, stranger));
      await (whileSent ?? ((_, change) => change()))(fixture, change);

      const replies = [await fixture.send(POST, HAMMER), await fixture.send("PATCH /v1/things/1", {})];

      const outcome = expected[condition === "banned" ? 2 : used === 60 ? 1 : 0];
      const outcomes = [outcome, next(outcome)];
      assertEquals(replies.map(outcomeOf), outcomes);
      const { apiKey = undefined } = Object(changed);
      if (withNewKey) {
        outcomes.push(withNewKey[condition === "banned" ? 2 : used === 60 ? 1 : 0]);
        replies.push(await fixture.send("GET /v1/things", undefined, apiKey));
      }
      assertEquals(replies.map(outcomeOf), outcomes);
      const admitted = replies.filter(({ code }) => code === "").length;
      assertEquals(fixture.stored("items", "items_by").length - before, replies[0]?.code === "" ? 4 : 0);
      assertEquals(await fixture.counts(), [(what === "reset" ? 0 : used) + admitted, 0]);
    });
  }
}

for (const [what, apply, [outcome]] of CHANGES) {
  const isRefused = /^[a-z_]+$/.test(outcome);
  Deno.test(`service ${isRefused ? "writes nothing" : "writes, and charges once,"} if an account is ${what} while a slow body arrives`, async () => {
    for (const ms of [1_001, 3_000]) {
      await using fixture = await Fixture.open();
      const { time, other, ids: [id = "", stranger = ""] } = fixture;
      await fixture.read(11);
      const { reply, sendBody } = fixture.startAdding();
      await time.advance(ms);
      await apply(other.accounts, id, stranger);
      const before = fixture.stored("items", "items_by").length;
      sendBody();

      const { status, code } = await time.until(reply, 1_000);

      assertEquals(
        [status, code],
        isRefused ? [code === "account_suspended" ? 403 : 401, outcome] : [201, ""],
      );
      assertEquals(fixture.stored("items", "items_by").length - before, isRefused ? 0 : 4);
      assertEquals(await fixture.counts(), [what === "reset" ? 0 : 13, 0]);
    }
  });
}

Deno.test("service reads an account again only if a body takes longer than a second to arrive", async () => {
  await using fixture = await Fixture.open();
  const { reply, sendBody } = fixture.startAdding();
  await fixture.time.advance(1_000);
  await fixture.other.accounts.rotate(fixture.ids[0] ?? "");
  sendBody();

  assertEquals((await fixture.time.until(reply, 1_000)).status, 201);
});

Deno.test("service refuses no request of another process wrongly because a slow body ended unused", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, ids: [id = ""], keys: [key] } = fixture;
  await fixture.read(9);
  const { reply, sendBody } = fixture.startAdding({});
  await time.advance(10);
  await fixture.read(49);
  const issued = await other.accounts.rotate(id, 60_000);
  const ask = () => time.until(call(other, issued?.apiKey), 10_000);
  assertEquals((await ask()).code, "rate_limit_minute");
  await time.advance(4_000);

  sendBody();
  const { status } = await time.until(reply, 1_000);

  assertEquals([status, await fixture.counts()], [400, [60, 0]]);
  assertEquals((await ask()).code, "rate_limit_minute");
  assertEquals((await time.until(call(service, key), 10_000)).code, "rate_limit_minute");
});

for (const { operation, target, request } of SAMPLES) {
  if (operation.access !== ACCESS.key) continue;
  Deno.test(`service does not carry out ${target} if another process has closed the leased account`, async () => {
    await using fixture = await Fixture.open();
    const { time, service, other, ids: [id = ""], keys: [key] } = fixture;
    await fixture.read(11);
    await other.accounts.close(id);
    const before = fixture.stored();

    const { code } = await time.until(call(service, key, target, request), 1_000);

    assertEquals([code, fixture.stored()], ["invalid_api_key", before]);
  });
}

Deno.test("service notices a change within MAX_STALENESS_MS, and at once when it writes", async () => {
  await using fixture = await Fixture.open({ maxStalenessMs: 10_000 });
  const { time, other, ids: [id = ""] } = fixture;
  const outcomes: string[] = [];
  const read = async (ms: number) => {
    await time.advance(ms);
    outcomes.push((await fixture.send("GET /v1/things")).code);
  };
  await fixture.read(11);

  await other.accounts.suspend(id, NOON);
  await read(0);
  await read(10_001);
  await other.accounts.suspend(id, null);
  await read(10_001);
  await fixture.read(3); // From now on, it has a lease again.
  await other.accounts.close(id);
  for (const target of ["PATCH /v1/things/1", POST]) outcomes.push((await fixture.send(target, {})).code);

  assertEquals(outcomes, ["", "account_suspended", "", "invalid_api_key", "invalid_api_key"]);
});

Deno.test("service loses no request if the account changes while many are in flight", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 500, day: 1_000 });

  const replies = await Promise.all(
    upTo(8).map(async (round) => {
      await other.accounts.change(id, { name: `${round}` });
      return await callAtOnce(50, [service], apiKey);
    }),
  );

  assertEquals(tally(replies.flat()), { 200: 400 });
  assertEquals((await call(service, apiKey)).remaining, 99);
});

Deno.test("service retries a charge for up to five seconds while the account keeps changing", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, ids: [id = ""], keys: [key] } = fixture;
  let changes = 0;
  service.disturbance = {
    commit: async (commit) => {
      await pause(50);
      if (++changes !== 20) await other.accounts.change(id, { name: `${changes}` });
      return await carryOut(commit);
    },
  };

  await time.advance(5_000);
  assertEquals([(await fixture.send("GET /v1/things")).remaining, changes], [58, 20]);
  await time.advance(5_000);
  service.expectsErrors = true;
  const late = await time.until(call(service, key), 6_000);
  service.disturbance = {};

  assertEquals([late.status, late.code], [503, "store_unavailable"]);
  await time.advance(5_000);
  assertEquals((await fixture.send("GET /v1/things")).remaining, 57);
});

Deno.test("service charges a request once if it is answered as the minute ends", async () => {
  await using fixture = await Fixture.open();
  await fixture.read(11);
  const times = [NOON + 59_999];
  Object.defineProperty(fixture.service, "now", { get: () => times.shift() ?? NOON + 60_000 });

  const reply = await fixture.send(POST, HAMMER);

  assertEquals([reply.status, reply.remaining], [201, 59]);
  assertEquals((await fixture.send("GET /v1/things")).remaining, 58);
});

Deno.test("service admits a request whose key expires while it waits for a permit", async () => {
  await using fixture = await Fixture.open();
  const { time, service, ids: [id = ""] } = fixture;
  await service.accounts.rotate(id, 60_000, NOON);
  await time.advance(5_000);
  service.now = NOON + 59_999;
  service.disturbance = { read: () => void (service.now = NOON + 60_000) };
  service.forget();

  const { status } = await fixture.send("GET /v1/things");

  assertEquals([status, service.reads.length < 10], [200, true], `${service.reads.length} reads`);
});

Deno.test("service counts a request once in the metrics, even if it is admitted again", async () => {
  await using fixture = await Fixture.open();
  await fixture.read(11);
  await fixture.other.accounts.change(fixture.ids[0] ?? "", { name: "new" });

  for (const json of [HAMMER, {}, HAMMER]) await fixture.send(POST, json);

  assertEquals(/\{plan="free"\} (\d+)$/m.exec(fixture.service.metrics.admitted.text())?.[1], "15");
});

Deno.test("service refuses a revoked key even if its account is read while a request waits", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, ids: [id = ""], keys: [key, stranger] } = fixture;
  await time.advance(5_000);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  service.disturbance = {
    commit: async (commit) => {
      const result = await carryOut(commit);
      await promise;
      return result;
    },
  };
  const before = call(service, key);
  await time.advance(1);
  await other.accounts.close(id);

  const after = call(service, key);
  call(service, stranger); // Its check of versions shows that an account has changed.
  await time.advance(1);

  assertEquals((await fixture.send("GET /v1/things")).code, "invalid_api_key");
  release();
  assertEquals((await time.until(before, 1_000)).status, 200);
  assertEquals((await time.until(after, 1_000)).code, "invalid_api_key");
});

/** A KV whose reads of usage are delayed and return older rows. */
class LateKv extends FakeKv {
  /** Resolves when a read may return. */
  held: () => Promise<void> | undefined = () => undefined;

  override connect(network: Network = calmNetwork()): Deno.Kv {
    const kv = super.connect(network);
    const getMany = kv.getMany.bind(kv);
    return Object.assign(kv, {
      getMany: async (keys: Deno.KvKey[]) => {
        const rows = await getMany(keys);
        if (keys.some(([table]) => table === "usage")) await this.held();
        return rows;
      },
    });
  }
}

for (const [target, json, status] of [["GET /v1/things", undefined, 200], [POST, HAMMER, 201]] as const) {
  Deno.test(`service admits ${target} after a ban was lifted, even if an earlier request has read the ban`, async () => {
    const kv = new LateKv();
    await using fixture = await Fixture.open({}, kv);
    const { time, service, other, ids: [id = ""], keys: [key = ""] } = fixture;
    await time.advance(3_000);
    await time.until(getBanned(other, key), 5_000);
    await time.advance(3_000);
    kv.held = () => pause(100);
    const first = call(service, key);
    await time.advance(150);
    kv.held = () => undefined;
    await time.until(other.accounts.changeUsage(id, (usage) => reset(pardon(usage), NOON)), 10);
    kv.held = () => pause(100);

    assertEquals((await fixture.send(target, json)).status, status);
    await time.until(first, 5_000);
  });
}

Deno.test("service refuses a write with a revoked key even if an older read of its account arrives late", async () => {
  const kv = new LateKv();
  await using fixture = await Fixture.open({}, kv);
  const { time, service, other, ids: [id = "", stranger = ""], keys: [previous] } = fixture;
  const { apiKey: key = "" } = await other.accounts.rotate(id, 60_000, NOON) ?? {};
  for (let count = 0; count < 6; count++) await fixture.send("GET /v1/things", undefined, key);

  await other.accounts.rotate(stranger, 0, NOON);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  kv.held = () => promise;
  const first = call(service, previous, POST, { json: HAMMER });
  await time.advance(10);
  kv.held = () => undefined;
  await time.until(other.accounts.close(id), 1_000);
  const second = call(service, key, POST, { json: HAMMER });
  release();

  const [, { code }] = await time.until(Promise.all([first, second]), 10_000);

  assertEquals(code, "invalid_api_key");
});
