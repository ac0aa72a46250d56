// What the next request finds after another process has changed its account, whatever this process holds of it.
import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { pardon, reset } from "../../src/limits/usage.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import { call, callAtOnce, getBanned, JSON_TYPE, type Reply } from "../support/client.ts";
import { carryOut, FakeKv } from "../support/fake_kv.ts";
import { type HarnessOptions, RecordingService } from "../support/harness.ts";
import { HAMMER, PLANS } from "../support/things.ts";
import { NOON, VirtualTime } from "../support/time.ts";

const HOUR = 3_600_000;
const GET = "GET /v1/things";
const POST = "POST /v1/things";

/** A process with an account on the Free plan that has added a thing, another account, and another process. */
class Fixture extends RecordingService {
  readonly other: RecordingService = this.beside();
  id: string = "";
  key: string = "";
  /** The ID and the key of the other account. */
  stranger: { readonly id: string; readonly key: string } = { id: "", key: "" };

  static override async open(options?: HarnessOptions, fake: FakeKv = new FakeKv()): Promise<Fixture> {
    const fixture = new Fixture(new VirtualTime(), fake, options);
    const [own, other] = [await fixture.createAccount("free"), await fixture.createAccount("free")];
    const stranger = { id: other.account.id, key: other.apiKey };
    Object.assign(fixture, { id: own.account.id, key: own.apiKey, stranger });
    await fixture.send(POST, HAMMER);
    return fixture;
  }

  /** Sends a request of the account. */
  send(target: string, json?: object, key: string = this.key): Promise<Reply> {
    return this.time.until(call(this, key, target, json && { json }), 6_000);
  }

  /** Sends requests that only read, one after the other, so that the process gets a lease. */
  async read(count: number): Promise<void> {
    for (let sent = 0; sent < count; sent++) await this.send(GET);
  }

  /** Starts to add a thing. `sendBody()` sends its body. */
  startAdding(thing: object = HAMMER): { reply: Promise<Reply>; sendBody: () => void } {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    return {
      reply: call(this, this.key, POST, { body: readable, headers: JSON_TYPE }),
      sendBody: () => void new Blob([JSON.stringify(thing)]).stream().pipeTo(writable),
    };
  }

  /** Number of rows of things: four for each. */
  get rows(): number {
    return [...this.fake.rows.values()].filter(({ key: [table] }) => /^items/.test(String(table))).length;
  }

  /** What the account's row counts once everything is given back. */
  async counts(): Promise<[used: number, leased: number]> {
    await this.time.until(this.app.settle(), 5_000);
    await this.time.advance(4_000);
    const { used, leased } = await this.other.accounts.usage(this.id);
    return [used, leased];
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.other[Symbol.asyncDispose]();
    await super[Symbol.asyncDispose]();
  }
}

/** How the account is used before its next request, and when it is changed: by default before that. */
interface Condition {
  readonly prepare: (fixture: Fixture) => Promise<unknown>;
  /** Permits that are used then. */
  readonly used: 12 | 60;
  readonly whileSent?: (fixture: Fixture, change: () => Promise<void>) => Promise<void> | void;
}

const LEASED: Condition = { used: 12, prepare: (fixture) => fixture.read(11) };

const CONDITIONS: Readonly<Record<string, Condition>> = {
  "leased": LEASED,
  "leased, while another account's request notices it": {
    ...LEASED,
    whileSent: async (fixture, change) => {
      await change();
      await fixture.send(GET, undefined, fixture.stranger.key);
    },
  },
  "waiting for a permit": {
    ...LEASED,
    prepare: async (fixture) => {
      await fixture.read(11);
      await fixture.time.advance(5_000);
    },
    whileSent: (fixture, change) => {
      fixture.disturbance = {
        commit: async (commit) => {
          fixture.disturbance = {};
          await change();
          return await carryOut(commit);
        },
      };
    },
  },
  "far away": {
    ...LEASED,
    whileSent: async (fixture, change) => {
      await change();
      const { commit = carryOut } = fixture.disturbance;
      fixture.disturbance = { read: () => pause(100), commit: (some) => pause(100).then(() => commit(some)) };
    },
  },
  "exhausted": { used: 60, prepare: (fixture) => callAtOnce(69, [fixture], fixture.key) },
  "banned": { used: 60, prepare: (fixture) => getBanned(fixture, fixture.key) },
};

/** The next response: remaining requests, or the error code. */
type Outcomes = readonly [open: string, exhausted: string, banned: string];

const ENDED: Outcomes = ["invalid_api_key", "invalid_api_key", "invalid_api_key"];
const SUSPENDED: Outcomes = ["account_suspended", "account_suspended", "account_suspended"];
const SAME: Outcomes = ["47 of 60", "rate_limit_minute", "key_banned"];
const AFTER_IT: Outcomes = ["45 of 60", "rate_limit_minute", "key_banned"];
const HIGHER: Outcomes = ["287 of 300", "239 of 300", "key_banned"];
const LOWER: Outcomes = ["7 of 20", "rate_limit_minute", "key_banned"];
const UNBANNED: Outcomes = ["47 of 60", "rate_limit_minute", "rate_limit_minute"];
const RESET: Outcomes = ["59 of 60", "59 of 60", "key_banned"];

type Apply = (accounts: RemoteAccounts, id: string, other: string) => Promise<object | null>;

/** A change, the next response to the old key, and then to a new one. */
const CHANGES: readonly (readonly [what: string, expected: Outcomes, apply: Apply, withNewKey?: Outcomes])[] =
  [
    ["closed", ENDED, (accounts, id) => accounts.close(id)],
    ["suspended", SUSPENDED, (accounts, id) => accounts.suspend(id, NOON)],
    ["suspended and resumed", SAME, async (accounts, id) => {
      await accounts.suspend(id, NOON);
      return await accounts.suspend(id, null);
    }],
    ["given a new key", ENDED, (accounts, id) => accounts.rotate(id), SAME],
    ["given a new key with a grace", SAME, (accounts, id) => accounts.rotate(id, HOUR), AFTER_IT],
    ["moved to a higher plan", HIGHER, (accounts, id) => accounts.change(id, { limits: PLANS.limits.pro })],
    [
      "moved to a lower plan",
      LOWER,
      (accounts, id) => accounts.change(id, { limits: { minute: 20, day: 99 } }),
    ],
    ["unbanned", UNBANNED, (accounts, id) => accounts.changeUsage(id, pardon)],
    ["reset", RESET, (accounts, id) => accounts.changeUsage(id, (usage) => reset(usage, NOON))],
    [
      "left as it was, and another renamed",
      SAME,
      (accounts, _, other) => accounts.change(other, { name: "new" }),
    ],
  ];

function outcomeOf({ code, remaining, limit }: Reply): string {
  return code || `${remaining} of ${limit}`;
}

/** The outcome of the request after one with this outcome. */
function next(outcome: string): string {
  return outcome.replace(/^\d+(?= of)/, (remaining) => `${Number(remaining) - 1}`);
}

for (const [what, expected, apply, withNewKey] of CHANGES) {
  for (const [condition, { prepare, used, whileSent }] of Object.entries(CONDITIONS)) {
    Deno.test(`service notices at the next request that an account (${condition}) was ${what}`, async () => {
      await using fixture = await Fixture.open();
      const { other, id, stranger, rows } = fixture;
      const index = condition === "banned" ? 2 : used === 60 ? 1 : 0;
      await prepare(fixture);
      assertEquals((await other.accounts.usage(id)).leased > 0, /^leased|^far/.test(condition));
      let changed: object | null = null;
      const change = async () => void (changed = await apply(other.accounts, id, stranger.id));
      await (whileSent ?? ((_, change) => change()))(fixture, change);

      const replies = [await fixture.send(POST, HAMMER), await fixture.send("PATCH /v1/things/1", {})];
      const { apiKey = undefined } = Object(changed);
      if (withNewKey) replies.push(await fixture.send(GET, undefined, apiKey));

      const outcomes = [expected[index], next(expected[index]), ...(withNewKey ? [withNewKey[index]] : [])];
      assertEquals(replies.map(outcomeOf), outcomes);
      const admitted = replies.filter(({ code }) => code === "").length;
      assertEquals(fixture.rows - rows, replies[0]?.code === "" ? 4 : 0);
      assertEquals(await fixture.counts(), [(what === "reset" ? 0 : used) + admitted, 0]);
    });
  }
}

for (const [what, [outcome], apply] of CHANGES) {
  const isRefused = /^[a-z_]+$/.test(outcome);
  Deno.test(`service ${isRefused ? "writes nothing" : "writes, and charges once,"} if an account is ${what} while a slow body arrives`, async () => {
    for (const ms of [1_001, 3_000]) {
      await using fixture = await Fixture.open();
      const { time, other, id, stranger, rows } = fixture;
      await fixture.read(11);
      const { reply, sendBody } = fixture.startAdding();
      await time.advance(ms);
      await apply(other.accounts, id, stranger.id);
      sendBody();

      const { status, code } = await time.until(reply, 1_000);

      const refused = [outcome === "account_suspended" ? 403 : 401, outcome];
      assertEquals([status, code], isRefused ? refused : [201, ""]);
      assertEquals(fixture.rows - rows, isRefused ? 0 : 4);
      assertEquals(await fixture.counts(), [what === "reset" ? 0 : 13, 0]);
    }
  });
}

Deno.test("service notices a change within MAX_STALENESS_MS, and at once when it writes", async () => {
  await using fixture = await Fixture.open({ maxStalenessMs: 10_000 });
  const { time, other, id } = fixture;
  const outcomes: string[] = [];
  const read = async (ms: number) => {
    await time.advance(ms);
    outcomes.push((await fixture.send(GET)).code);
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
