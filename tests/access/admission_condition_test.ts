import { assertEquals } from "@std/assert";
import { ACCESS_VERSION, type Account } from "../../src/access/account.ts";
import type { AccountStore } from "../../src/access/account_store.ts";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { reset } from "../../src/access/usage.ts";
import { type HarnessOptions, type HarnessRequest, NOON } from "../harness.ts";
import { type Commit, fail } from "../kv/disturbed_kv.ts";
import { FakeKv } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";
import { NotedService } from "./noted_service.ts";
import { call, type Reply, tally, upTo } from "./replies.ts";

const REX = { name: "Rex", categoryId: 1 };
const POST = "POST /v1/pets";

/** Two processes. In one an account holds a lease: it has two animals, and has used 10 of 60 requests. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly service: NotedService;
  readonly other: NotedService;
  #account: Account | undefined;
  #key = "";

  private constructor(options: HarnessOptions) {
    this.service = new NotedService(this.time, this.kv, options);
    this.other = new NotedService(this.time, this.kv);
  }

  static async open(options: HarnessOptions = {}): Promise<Fixture> {
    const fixture = new Fixture(options);
    const { account, apiKey } = await fixture.service.createAccount("free");
    fixture.#account = account;
    fixture.#key = apiKey;
    for (let count = 0; count < 2; count++) await fixture.send(POST, { json: REX });
    for (let count = 2; count < 10; count++) await fixture.send("GET /v1/pets");
    fixture.service.forget();
    return fixture;
  }

  get id(): string {
    return this.#account?.id ?? "";
  }

  /** Sends a request to the process that holds the lease. */
  send(target: string, request: HarnessRequest = {}): Promise<Reply> {
    return this.time.until(call(this.service, this.#key, target, request), 1_000);
  }

  /** What is stored of animals, messages and replies. */
  stored(): unknown[] {
    const tables: Deno.KvKeyPart[] = ["pets", "pets_by_status", "messages", "idempotency"];
    return [...this.kv.rows.values()].filter(({ key: [table = ""] }) => tables.includes(table));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.other[Symbol.asyncDispose]();
    this.time[Symbol.dispose]();
  }
}

type Change = (accounts: AccountStore, id: string) => Promise<unknown>;

const ENDED = "401 invalid_api_key";
const REFUSED = "429 rate_limit_minute";

/** What is done to the account, what its next request is told if it is in order, and what the one after that. */
const CHANGES: readonly (readonly [what: string, change: Change, told: string, next: string])[] = [
  ["renamed", (accounts, id) => accounts.change(id, { name: "new" }), "49 of 60", "48 of 60"],
  ["closed", (accounts, id) => accounts.change(id, { closedAt: NOON }), ENDED, ENDED],
  ["given a new key", (accounts, id) => accounts.rotate(id, 0, NOON), ENDED, ENDED],
  [
    "moved to a higher plan",
    (accounts, id) => accounts.change(id, { limits: PLAN_LIMITS.pro }),
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
    "moved to a plan with one place left",
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

/** Requests that change something, or would, and the status that they get from an account in order. */
const REQUESTS:
  readonly (readonly [what: string, target: string, request: HarnessRequest, status: number])[] = [
    ["adds an animal", POST, { json: REX }, 201],
    ["adds one with an Idempotency-Key", POST, { json: REX, headers: { "idempotency-key": "1" } }, 201],
    ["would add one without a name", POST, { json: {} }, 400],
    ["changes an animal", "PATCH /v1/pets/1", { json: { name: "Tom" } }, 200],
    ["changes nothing", "PATCH /v1/pets/1", { json: { name: "Rex" } }, 200],
    ["would change one that is not there", "PATCH /v1/pets/9", { json: { name: "Tom" } }, 404],
    ["removes an animal", "DELETE /v1/pets/2", {}, 204],
    ["queues a message", "POST /v1/messages", { json: { message: "hello" } }, 202],
  ];

for (const [change, apply, told, next] of CHANGES) {
  for (const [what, target, request, status] of REQUESTS) {
    Deno.test(`createApp() answers whoever ${what} by the account as it is, when it was ${change} elsewhere`, async () => {
      await using fixture = await Fixture.open();
      const before = fixture.stored();
      await apply(fixture.other.accounts, fixture.id);

      const reply = await fixture.send(target, request);

      const { code, remaining, limit } = reply;
      const isRefused = told === ENDED || told === REFUSED;
      assertEquals(isRefused ? `${reply.status} ${code}` : `${remaining} of ${limit}`, told);
      if (isRefused) assertEquals(fixture.stored(), before);
      else assertEquals(reply.status, status);
      const after = await fixture.send("GET /v1/pets");
      assertEquals(
        after.code ? `${after.status} ${after.code}` : `${after.remaining} of ${after.limit}`,
        next,
      );
    });
  }
}

const LOOK = [ACCESS_VERSION, ["catalogue"]];

Deno.test("Gate.enter() costs whoever changes something no look beside its commit, while it has a lease", async (t) => {
  const costs: Record<string, [reads: Deno.KvKey[][], commits: number]> = {
    "adds an animal": [[], 1],
    "would add one without a name": [[LOOK], 0],
    "changes an animal": [[[["pets", 1]]], 1],
    "changes nothing": [[[["pets", 1]], LOOK], 0],
    "removes an animal": [[[["pets", 2]]], 1],
    "queues a message": [[[["messages_waiting"]]], 1],
  };
  for (const [what, target, request] of REQUESTS.filter(([what]) => what in costs)) {
    await t.step(what, async () => {
      await using fixture = await Fixture.open();

      await fixture.send(target, request);

      const { reads, commits } = fixture.service;
      const expected = costs[what]?.[0].map((keys) => keys.map(([table]) => table));
      assertEquals(reads.map((keys) => keys.map(([table]) => table)), expected);
      assertEquals(commits.length, costs[what]?.[1]);
    });
  }
});

Deno.test("createApp() adds nothing for an account that was closed, however old its view of others may be", async () => {
  await using fixture = await Fixture.open({ maxStalenessMs: 60_000 });
  const before = fixture.stored();
  await fixture.other.accounts.change(fixture.id, { closedAt: NOON });

  const replies = await Promise.all(upTo(5).map(() => fixture.send(POST, { json: REX })));

  assertEquals(tally(replies), { [ENDED]: 5 });
  assertEquals(fixture.stored(), before);
});

Deno.test("createApp() adds nothing for an account that was closed, when another's request has seen that something changed", async () => {
  await using fixture = await Fixture.open();
  const { apiKey } = await fixture.service.createAccount("free");
  const before = fixture.stored();
  await fixture.other.accounts.change(fixture.id, { closedAt: NOON });
  assertEquals((await call(fixture.service, apiKey)).status, 200);

  const reply = await fixture.send(POST, { json: REX });

  assertEquals(reply.code, "invalid_api_key");
  assertEquals(fixture.stored(), before);
});

Deno.test("createApp() adds animals in one commit that come at once, where KV takes ten checks", async () => {
  await using fixture = await Fixture.open({ maxChecks: 10 });

  const replies = await Promise.all(upTo(5).map(() => fixture.send(POST, { json: REX })));

  assertEquals(tally(replies), { 201: 5 });
  const added = fixture.service.commits.map(({ keys }) => keys.filter(([table]) => table === "pets").length);
  // The second takes numbers for those who wait for the first.
  assertEquals(added.filter((count) => count > 0), [1, 1, 3]);
});

Deno.test("createApp() charges an animal once that is added as the minute ends", async () => {
  await using fixture = await Fixture.open();
  const { service } = fixture;
  const times = [NOON + 59_999];
  Object.defineProperty(service, "now", { get: () => times.shift() ?? NOON + 60_000 });

  const reply = await fixture.send(POST, { json: REX });

  assertEquals([reply.status, reply.remaining], [201, 59]);
  assertEquals((await fixture.send("GET /v1/pets")).remaining, 58);
});

Deno.test("createApp() does not do again what may have been done, though the account has changed", async () => {
  await using fixture = await Fixture.open();
  const { service, other, id } = fixture;
  const before = fixture.stored().length;
  service.disturbance = {
    commit: async ({ apply }: Commit) => {
      service.disturbance = {};
      await apply();
      await other.accounts.change(id, { name: "new" });
      return await fail();
    },
  };

  const reply = await fixture.send(POST, { json: REX });

  assertEquals([reply.status, reply.code], [503, "store_unavailable"]);
  assertEquals(fixture.stored().length, before + 2);
});
