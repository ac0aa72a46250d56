import { assertEquals } from "@std/assert";
import type { Account } from "../../src/accounts/account.ts";
import { type Limits, reset } from "../../src/limits/usage.ts";
import { pause } from "../../src/base/time.ts";
import { call, type HarnessRequest, type Reply, tally, upTo } from "../support/client.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import { carryOut, type Commit, type CommitResult, slowly } from "../support/fake_kv.ts";
import { type HarnessOptions, RecordingService } from "../support/harness.ts";
import { NOON, type VirtualTime } from "../support/time.ts";
import { PLANS } from "../support/things.ts";

const HAMMER = { name: "Hammer", weight: 1 };
const POST = "POST /v1/things";

/** Two processes. One holds a lease of an account, which has two things, and has used 10 of 60 requests. */
class Fixture implements AsyncDisposable {
  readonly service: RecordingService;
  readonly other: RecordingService;
  key: string = "";
  #account: Account | undefined;

  private constructor(service: RecordingService) {
    this.service = service;
    this.other = service.beside();
  }

  static async open(options?: HarnessOptions, limits?: Limits): Promise<Fixture> {
    const fixture = new Fixture(await RecordingService.open(options));
    const { account, apiKey } = await fixture.service.createAccount(limits ?? "free");
    fixture.#account = account;
    fixture.key = apiKey;
    for (let count = 0; count < 2; count++) await fixture.send(POST, { json: HAMMER });
    for (let count = 2; count < 10; count++) await fixture.send("GET /v1/things");
    fixture.service.forget();
    return fixture;
  }

  get time(): VirtualTime {
    return this.service.time;
  }

  get id(): string {
    return this.#account?.id ?? "";
  }

  /** Sends a request to the process that holds the lease. */
  send(target: string, request: HarnessRequest = {}): Promise<Reply> {
    return this.time.until(call(this.service, this.key, target, request), 1_000);
  }

  /** Starts to add a thing. `sendBody()` sends its body. */
  startAdding(thing: object = HAMMER): { reply: Promise<Reply>; sendBody: () => void } {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const headers = { "content-type": "application/json" };
    return {
      reply: call(this.service, this.key, POST, { body: readable, headers }),
      sendBody: () => void new Blob([JSON.stringify(thing)]).stream().pipeTo(writable),
    };
  }

  /** The stored things and replies. */
  stored(): unknown[] {
    const tables: Deno.KvKeyPart[] = ["items", "items_by", "idempotency"];
    return [...this.service.fake.rows.values()].filter(({ key: [table = ""] }) => tables.includes(table));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.other[Symbol.asyncDispose]();
    await this.service[Symbol.asyncDispose]();
  }
}

type Change = (accounts: RemoteAccounts, id: string) => Promise<unknown>;

const ENDED = "401 invalid_api_key";
const SUSPENDED = "403 account_suspended";
const REFUSED = "429 rate_limit_minute";

/** A change of the account, and the responses to its next request, if that is valid, and to the one after it. */
const CHANGES: readonly (readonly [what: string, change: Change, outcome: string, next: string])[] = [
  ["renamed", (accounts, id) => accounts.change(id, { name: "new" }), "49 of 60", "48 of 60"],
  ["closed", (accounts, id) => accounts.close(id), ENDED, ENDED],
  ["suspended", (accounts, id) => accounts.suspend(id, NOON), SUSPENDED, SUSPENDED],
  ["given a new key", (accounts, id) => accounts.rotate(id), ENDED, ENDED],
  [
    "moved to a higher plan",
    (accounts, id) => accounts.change(id, { limits: PLANS.limits.pro }),
    "289 of 300",
    "288 of 300",
  ],
  [
    "moved to a lower plan",
    (accounts, id) => accounts.change(id, { limits: { minute: 10, day: 99 } }),
    REFUSED,
    REFUSED,
  ],
  [
    "moved to a plan with one request left",
    (accounts, id) => accounts.change(id, { limits: { minute: 11, day: 99 } }),
    "0 of 11",
    REFUSED,
  ],
  [
    "reset",
    (accounts, id) => accounts.changeUsage(id, (usage) => reset(usage, NOON)),
    "59 of 60",
    "58 of 60",
  ],
];

/** Requests that write, or try to, and their status for an open account. */
const REQUESTS:
  readonly (readonly [what: string, target: string, request: HarnessRequest, status: number])[] = [
    ["adds a thing", POST, { json: HAMMER }, 201],
    ["adds one with an Idempotency-Key", POST, { json: HAMMER, headers: { "idempotency-key": "1" } }, 201],
    ["tries to add one without a name", POST, { json: {} }, 400],
    ["changes a thing", "PATCH /v1/things/1", { json: { name: "Tom" } }, 200],
    ["changes nothing", "PATCH /v1/things/1", { json: { name: "Hammer" } }, 200],
    ["tries to change a missing one", "PATCH /v1/things/9", { json: { name: "Tom" } }, 404],
    ["removes a thing", "DELETE /v1/things/2", {}, 204],
  ];

for (const [change, apply, outcome, next] of CHANGES) {
  for (const [what, target, request, status] of REQUESTS) {
    Deno.test(`service notices that an account was ${change} in another process when a client ${what}`, async () => {
      await using fixture = await Fixture.open();
      const before = fixture.stored();
      await apply(fixture.other.accounts, fixture.id);

      const reply = await fixture.send(target, request);

      const { code, remaining, limit } = reply;
      const isRefused = [ENDED, SUSPENDED, REFUSED].includes(outcome);
      assertEquals(isRefused ? `${reply.status} ${code}` : `${remaining} of ${limit}`, outcome);
      if (isRefused) assertEquals(fixture.stored(), before);
      else assertEquals(reply.status, status);
      const after = await fixture.send("GET /v1/things");
      assertEquals(
        after.code ? `${after.status} ${after.code}` : `${after.remaining} of ${after.limit}`,
        next,
      );
    });
  }
}

/** Maximum KV operations of these requests, including the check of versions. */
const COSTS: Readonly<Record<string, { reads: number; commits: number }>> = {
  "adds a thing": { reads: 1, commits: 1 },
  "tries to add one without a name": { reads: 1, commits: 0 },
  "changes a thing": { reads: 2, commits: 1 },
  "changes nothing": { reads: 2, commits: 0 },
  "removes a thing": { reads: 2, commits: 1 },
};

for (const [change, apply, outcome] of CHANGES) {
  const isRefused = [ENDED, SUSPENDED].includes(outcome);
  Deno.test(`service ${isRefused ? "writes nothing" : "writes, and charges once,"} if an account is ${change} while a slow body arrives`, async () => {
    await using fixture = await Fixture.open();
    const { time, service, other, id } = fixture;
    const before = fixture.stored();
    const { reply, sendBody } = fixture.startAdding();
    await time.advance(1_001);
    await apply(other.accounts, id);
    sendBody();

    const { status, code } = await time.until(reply, 1_000);

    assertEquals(isRefused ? `${status} ${code}` : status, isRefused ? outcome : 201);
    if (isRefused) assertEquals(fixture.stored(), before);
    await time.until(service.app.settle(), 1_000);
    const { used, leased } = await other.accounts.usage(id);
    assertEquals([used, leased], [change === "reset" ? 0 : 11, 0]);
  });
}

Deno.test("service refuses no request of another process wrongly because a slow body ended unused", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, id, key } = fixture;
  const { reply, sendBody } = fixture.startAdding({});
  await time.advance(10);
  const used = await Promise.all(upTo(49).map(() => fixture.send("GET /v1/things")));
  const issued = await other.accounts.rotate(id, 60_000);
  const ask = () => time.until(call(other, issued?.apiKey), 10_000);
  assertEquals((await ask()).code, "rate_limit_minute");
  await time.advance(4_000);

  sendBody();
  const { status } = await time.until(reply, 1_000);
  await time.until(service.app.settle(), 1_000);

  assertEquals([status, tally(used)], [400, { 200: 49 }]);
  assertEquals([(await other.accounts.usage(id)).used, (await ask()).code], [60, "rate_limit_minute"]);
  assertEquals((await time.until(call(service, key), 10_000)).code, "rate_limit_minute");
});

Deno.test("service reads an account again only if a body takes longer than a second to arrive", async () => {
  for (const [ms, status] of [[1_000, 201], [1_001, 401]] as const) {
    await using fixture = await Fixture.open();
    const { reply, sendBody } = fixture.startAdding();
    await fixture.time.advance(ms);
    await fixture.other.accounts.rotate(fixture.id);
    sendBody();

    assertEquals((await fixture.time.until(reply, 1_000)).status, status);
  }
});

Deno.test("service adds only a check of versions to a write while its account has a lease", async (t) => {
  for (const [what, target, request] of REQUESTS.filter(([what]) => what in COSTS)) {
    await t.step(what, async () => {
      await using fixture = await Fixture.open();

      await fixture.send(target, request);

      fixture.service.assertCost(COSTS[what] ?? { reads: 0, commits: 0 });
    });
  }
});

Deno.test("service adds nothing for a closed account, regardless of MAX_STALENESS_MS", async () => {
  await using fixture = await Fixture.open({ maxStalenessMs: 60_000 });
  const before = fixture.stored();
  await fixture.other.accounts.close(fixture.id);

  const replies = await Promise.all(upTo(5).map(() => fixture.send(POST, { json: HAMMER })));

  assertEquals(tally(replies), { [ENDED]: 5 });
  assertEquals(fixture.stored(), before);
});

Deno.test("service notices that another process has removed an account when it reads its row", async () => {
  await using fixture = await Fixture.open({ maxStalenessMs: 60_000 });
  const { accounts } = fixture.other;
  await call(fixture.other, fixture.key);
  await fixture.time.advance(1_500);
  for (let count = 0; count < 3; count++) await fixture.send("GET /v1/things");
  await accounts.close(fixture.id);
  await accounts.remove(fixture.id, () => true);
  await fixture.time.advance(3_000);

  const reply = await fixture.send("GET /v1/things");

  assertEquals([reply.status, reply.code], [401, "invalid_api_key"]);
});

Deno.test("service adds nothing for a closed account after another account's request noticed a change", async () => {
  await using fixture = await Fixture.open();
  const { apiKey } = await fixture.service.createAccount("free");
  const before = fixture.stored();
  await fixture.other.accounts.close(fixture.id);
  assertEquals((await call(fixture.service, apiKey)).status, 200);

  const reply = await fixture.send(POST, { json: HAMMER });

  assertEquals(reply.code, "invalid_api_key");
  assertEquals(fixture.stored(), before);
});

Deno.test("service adds simultaneous things in one commit", async () => {
  await using fixture = await Fixture.open();

  const replies = await Promise.all(upTo(5).map(() => fixture.send(POST, { json: HAMMER })));

  assertEquals(tally(replies), { 201: 5 });
  const added = fixture.service.commits.map(({ keys }) => keys.filter(([table]) => table === "items").length);
  assertEquals(added.filter((count) => count > 0), [5]);
});

Deno.test("service charges a request once if it is answered as the minute ends", async () => {
  await using fixture = await Fixture.open();
  const { service } = fixture;
  const times = [NOON + 59_999];
  Object.defineProperty(service, "now", { get: () => times.shift() ?? NOON + 60_000 });

  const reply = await fixture.send(POST, { json: HAMMER });

  assertEquals([reply.status, reply.remaining], [201, 59]);
  assertEquals((await fixture.send("GET /v1/things")).remaining, 58);
});

Deno.test("service charges a request once if it is admitted again after its lease was settled", async () => {
  for (const limits of [{ minute: 60, day: 99 }, { minute: 11, day: 99 }]) {
    await using fixture = await Fixture.open({}, limits);
    const { time, other } = fixture;
    const { account: { id: stranger } } = await other.createAccount("free");
    const { reply, sendBody } = fixture.startAdding();
    await time.advance(3_000);
    await other.accounts.change(stranger, { name: "new" });

    sendBody();

    const { status, remaining } = await time.until(reply, 1_000);
    assertEquals([status, remaining], [201, limits.minute - 11]);
    await time.until(fixture.service.app.settle(), 1_000);
    const usage = await other.accounts.usage(fixture.id);
    assertEquals([usage.used, usage.leased], [11, 0]);
  }
});

/** Replies to a commit 20 ms after it has applied. */
async function replyLate({ apply }: Commit): Promise<CommitResult> {
  const result = await apply();
  await pause(20);
  return result;
}

Deno.test("service refuses a key revoked while another request's commit was under way", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, id } = fixture;
  service.disturbance = { commit: replyLate };
  const before = call(service, fixture.key, POST, { json: HAMMER });
  await time.advance(5);
  await other.accounts.rotate(id, 0, NOON);
  await time.advance(5);
  const { reply, sendBody } = fixture.startAdding({});
  const { status } = await time.until(before, 1_000);

  sendBody();

  assertEquals([status, (await time.until(reply, 1_000)).code], [201, "invalid_api_key"]);
});

Deno.test("service refuses a key revoked while its request waited for a lease", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, id, key } = fixture;
  await time.advance(3_000); // The lease is given back.
  await time.until(Promise.all(upTo(5).map(() => call(service, key))), 1_000);
  service.disturbance = { commit: replyLate };
  const before = call(service, key, POST, { json: HAMMER });
  await time.advance(5);
  await other.accounts.rotate(id, 0, NOON);
  await time.advance(5);

  const after = call(service, key, POST, { json: HAMMER });
  const replies = await time.until(Promise.all([before, after]), 1_000);

  assertEquals(replies.map(({ status }) => status), [201, 401]);
});

Deno.test("service admits requests that wait for a lease, even if another account changes", async () => {
  await using fixture = await Fixture.open();
  const { time, service, other, key } = fixture;
  const { account: { id: stranger } } = await other.createAccount("free");
  await time.advance(3_000); // The lease is given back.
  await time.until(Promise.all(upTo(5).map(() => call(service, key))), 1_000);
  service.disturbance = { commit: slowly };

  const replies = [call(service, key)];
  await time.advance(5);
  await other.accounts.change(stranger, { name: "new" });
  for (let count = 0; count < 2; count++) {
    replies.push(call(service, key));
    await time.advance(5);
  }

  assertEquals(tally(await time.until(Promise.all(replies), 1_000)), { 200: 3 });
});

Deno.test("service changes nothing for an account that it knows to be suspended, even with a lease", async () => {
  await using fixture = await Fixture.open();
  const before = fixture.stored();
  await fixture.other.accounts.suspend(fixture.id, NOON);
  assertEquals((await fixture.send("GET /v1/things")).code, "account_suspended");

  assertEquals((await fixture.send(POST, { json: HAMMER })).code, "account_suspended");

  assertEquals(fixture.stored(), before);
});

Deno.test("service counts the day exactly if a ban refuses a request as the minute ends", async () => {
  await using fixture = await Fixture.open({}, { minute: 400, day: 1_000 });
  const { time, service, other, id } = fixture;
  const { account: { id: stranger } } = await other.createAccount("free");
  await other.accounts.changeUsage(id, (usage) => ({ ...usage, ...{ bannedUntil: NOON + 300_000 } }));
  assertEquals((await fixture.send("GET /v1/things")).status, 200);
  await other.accounts.change(stranger, { name: "new" });
  const times = [NOON + 59_999];
  Object.defineProperty(service, "now", { get: () => times.shift() ?? NOON + 60_000 });

  assertEquals((await fixture.send(POST, { json: {} })).code, "key_banned");

  await time.until(service.app.settle(), 1_000);
  assertEquals((await other.accounts.usage(id)).usedToday, 11);
});

Deno.test("service checks the versions before returning 400 if its last commit preceded the request", async () => {
  await using fixture = await Fixture.open();
  await fixture.send(POST, { json: HAMMER });
  await fixture.time.advance(1);
  await fixture.other.accounts.close(fixture.id);

  assertEquals((await fixture.send(POST, { json: {} })).code, "invalid_api_key");
});

/** Makes commits that add things take 4 s. */
const SLOW_ADDING = {
  commit: async (commit: Commit) => {
    if (commit.keys.some(([table]) => table === "items")) await pause(4_000);
    return await carryOut(commit);
  },
};

for (const [what, stops] of [["was stopped", true], ["ran out of time", false]] as const) {
  Deno.test(`service does nothing more for a request that ${what}`, async () => {
    await using fixture = await Fixture.open();
    const { time, service, other, id } = fixture;
    const slowRead = (keys: readonly Deno.KvKey[]) =>
      keys[0]?.[0] === "idempotency" ? pause(3_000) : undefined;
    service.disturbance = stops ? SLOW_ADDING : { ...SLOW_ADDING, read: slowRead };
    const reply = service.fetch(POST, {
      key: fixture.key,
      json: HAMMER,
      headers: { "idempotency-key": "1" },
    });
    await time.advance(10);
    await other.accounts.change(id, { name: "new" });
    const stopped = stops ? service.stop() : Promise.resolve();

    assertEquals((await time.until(reply, 6_000)).status, 503);
    await time.until(stopped, 1_000);
    await time.advance(1_000);
    service.forget();
    await time.advance(20_000);

    const changed = service.commits.flatMap(({ keys }) => keys).map(([table]) => table);
    assertEquals(changed.filter((table) => table !== "usage"), []);
    assertEquals((await other.accounts.usage(id)).used, 11);
  });
}

Deno.test("service counts a request once in the metrics, even if it is admitted again", async () => {
  await using fixture = await Fixture.open();
  const { admitted } = fixture.service.metrics;
  const count = () => Number(/\{plan="free"\} (\d+)$/m.exec(admitted.text())?.[1]);
  const before = count();
  await fixture.other.accounts.change(fixture.id, { name: "new" });

  const replies = [await fixture.send(POST, { json: HAMMER }), await fixture.send(POST, { json: {} })];
  replies.push(await fixture.send(POST, { json: HAMMER }), await fixture.send("GET /v1/things"));

  assertEquals(replies.map(({ status }) => status), [201, 400, 201, 200]);
  assertEquals(count() - before, 4);
});

Deno.test("service does not repeat a write that may have applied, even if the account has changed", async () => {
  await using fixture = await Fixture.open();
  const { service, other, id } = fixture;
  const before = fixture.stored().length;
  service.expectsErrors = true;
  service.disturbance = {
    commit: async ({ apply }: Commit) => {
      service.disturbance = {};
      const result = await apply();
      await other.accounts.change(id, { name: "new" });
      await pause(7_000);
      return result;
    },
  };

  const reply = await fixture.time.until(call(service, fixture.key, POST, { json: HAMMER }), 6_000);
  await fixture.time.advance(10_000);

  assertEquals(reply.status, 503);
  assertEquals(fixture.stored().length, before + 4); // The thing, and an index row for each combination of filters.
});
