// Requests without a valid key, and what the next request finds after another process has changed its account.
import { StatementSync } from "node:sqlite";
import { openStore } from "../../src/engine/open.ts";
import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { pardon, reset } from "../../src/limits/usage.ts";
import type { RemoteAccounts } from "../support/accounts.ts";
import {
  call,
  callAtOnce,
  getBanned,
  JSON_TYPE,
  remainders,
  type Reply,
  tally,
  upTo,
} from "../support/client.ts";
import { carryOut, FakeKv } from "../support/fake_kv.ts";
import { Harness, type HarnessOptions, RecordingService } from "../support/harness.ts";
import { HAMMER, KEYS, PLANS } from "../support/things.ts";
import { NOON, VirtualTime } from "../support/time.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const CHALLENGE = 'Bearer realm="thing-store"';
const MISSING = "Send your API key as 'Authorization: Bearer <API_KEY>'.";
const TWICE = "The Authorization header was sent twice: send it once.";
const INVALID = "The API key is not valid.";
const MISTYPED = "The API key is mistyped: its checksum is wrong.";
const QUOTED = "The API key is in quotes; send it without them.";
const OTHER_FORM =
  "This is not an API key. An API key is as_test_ or as_live_ followed by 38 letters and digits.";

/** Status, challenge and body of the response to an invalid key. */
function badKey(message: string = INVALID): unknown[] {
  const body = { code: "invalid_api_key", message, status: 401 };
  return [401, `${CHALLENGE}, error="invalid_token"`, body];
}

/** Status, challenge and body of the response to a request with this header. */
async function answer(service: Harness, authorization?: string): Promise<unknown[]> {
  const headers = authorization === undefined ? {} : { authorization };
  const response = await service.fetch("GET /v1/things", { headers });
  return [response.status, response.headers.get("www-authenticate"), await response.json()];
}

Deno.test("service returns 401 missing_api_key if there is no bearer token", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount();

  for (
    const [message, ...forms] of [
      [MISSING, undefined, "", "KEY", "Bearer", "Bearer ", "Basic KEY", "Token KEY", "BearerKEY"],
      [MISSING, "Bearer KEY KEY", "Bearer KEY, KEY", 'Digest username="a", realm="b"'],
      [TWICE, "Bearer KEY, Bearer KEY", "Basic a, Bearer KEY"],
    ]
  ) {
    for (const form of forms) {
      const body = { code: "missing_api_key", message, status: 401 };
      assertEquals(await answer(service, form?.replaceAll("KEY", apiKey)), [401, CHALLENGE, body], form);
    }
  }
});

Deno.test("service explains malformed keys, and returns the same message for all other invalid keys", async () => {
  await using service = await Harness.open();
  const { account, apiKey } = await service.createAccount();
  const closed = await service.createAccount();
  await service.accounts.change(closed.account.id, { closedAt: service.now });
  const replaced = await service.createAccount();
  await service.accounts.rotate(replaced.account.id, 0, service.now);
  const typo = apiKey.slice(0, -1) + (apiKey.endsWith("0") ? "1" : "0");

  for (
    const [message, ...keys] of [
      [MISTYPED, typo],
      [INVALID, KEYS.create("staging"), replaced.apiKey, closed.apiKey],
      ["This is a production key; this service is staging.", KEYS.create("production")],
      [OTHER_FORM, apiKey.slice(0, -1), `${apiKey}0`, `${apiKey.slice(0, -1)}-`, apiKey.toUpperCase()],
      [OTHER_FORM, account.id, "<API_KEY>", "x".repeat(100_000)],
      [QUOTED, `"${apiKey}"`, `'${apiKey}'`, `"${apiKey}`, `${apiKey}'`],
    ] as const
  ) {
    for (const key of keys) assertEquals(await answer(service, `Bearer ${key}`), badKey(message), key);
  }
});

Deno.test("service accepts the scheme in any case, and any number of spaces around the key", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount();

  for (const form of ["Bearer KEY", "bearer KEY", "BEARER KEY", "Bearer    KEY", "Bearer KEY  "]) {
    // Twice, because the second request uses the cached header.
    for (let count = 0; count < 2; count++) {
      const [status] = await answer(service, form.replace("KEY", apiKey));
      assertEquals([form, status], [form, 200]);
    }
  }
});

Deno.test("service accepts a key from another process at once, even if it was invalid before", async () => {
  await using service = await Harness.open();
  await using origin = await Harness.open();
  const { apiKey } = await origin.createAccount();
  for (let count = 0; count < 2; count++) assertEquals(await answer(service, `Bearer ${apiKey}`), badKey());

  for await (const { key, value } of origin.kv.list({ prefix: [] })) await service.kv.set(key, value);

  assertEquals((await call(service, apiKey)).status, 200);
});

/** Sends requests, each with a different unknown key. */
function callWithUnknownKeys(count: number, service: Harness): Promise<Reply[]> {
  return Promise.all(upTo(count).map(() => call(service, KEYS.create("staging"))));
}

Deno.test.each([
  ["no key", "missing_api_key", undefined],
  ["a mistyped key", "invalid_api_key", "as_test_mistyped"],
  ["an unknown key", "invalid_api_key", KEYS.create("staging")],
  ["a key for the other environment", "invalid_api_key", KEYS.create("production")],
])(
  "service returns 401 to an address with %s 60 times a minute, and then 429, but never a ban",
  async (_, code, key) => {
    await using service = await RecordingService.open();
    const { apiKey } = await service.createAccount("free");
    await call(service, apiKey);

    for (const [minute, refused] of [310, 10].entries()) {
      service.now = NOON + minute * MINUTE;
      const replies = await callAtOnce(60 + refused, [service], key);

      assertEquals(tally(replies), { [`401 ${code}`]: 60, "429 rate_limit_minute": refused });
      assertEquals(replies.slice(0, 60).map(({ remaining }) => remaining).sort((a, b) => a - b), upTo(60));
      for (const { status, limit, reset, retryAfter } of replies) {
        assertEquals([limit, reset], [60, service.now / 1_000 + 60]);
        assertEquals(retryAfter, status === 429 ? 60 : undefined);
      }
    }
    assertEquals((await call(service, apiKey)).status, 200);
    const { headers, json } = await call(service);
    assertEquals(headers.get("ratelimit-policy"), '"minute";q=60;w=60');
    assertEquals(headers.get("ratelimit"), '"minute";r=0;t=60');
    const why = "More than 60 requests in a minute without a valid API key or token. Try again in 60 s.";
    assertEquals(json, { code: "rate_limit_minute", message: why, status: 429 });
    service.address = "2001:db8::/64";
    assertEquals((await call(service)).remaining, 59);
  },
);

Deno.test("service serves 100 new keys of one address at once, and charges nothing to it", async () => {
  await using service = await RecordingService.open();
  const accounts = await Promise.all(upTo(100).map(() => service.createAccount()));
  service.disturbance = { read: () => pause(20) };

  const replies = accounts.map(({ apiKey }) => call(service, apiKey));

  assertEquals(tally(await service.time.until(Promise.all(replies), 10_000)), { 200: 100 });
  assertEquals((await call(service)).remaining, 59);
});

Deno.test("service gives an address back its request as soon as the key is found, or if the look-up fails", async () => {
  await using service = await RecordingService.open();
  const { account, apiKey } = await service.createAccount();
  await service.accounts.suspend(account.id, NOON);
  service.expectsErrors = true;
  service.disturbance = { read: () => Promise.reject(new TypeError("connection closed")) };
  const failed = await service.time.until(callWithUnknownKeys(70, service), 10_000);
  service.disturbance = {};

  const { status, remaining } = await call(service, apiKey);

  assertEquals(tally(failed), { "503 store_unavailable": 70 });
  assertEquals([status, remaining], [403, 59]);
});

Deno.test("service serves a known key from a spent address after accounts have changed", async () => {
  await using service = await RecordingService.open();
  const [known, other] = [await service.createAccount(), await service.createAccount()];
  await call(service, known.apiKey);
  await callWithUnknownKeys(70, service);

  const before = await callAtOnce(20, [service], known.apiKey);
  for (const { account: { id } } of [other, known]) await service.accounts.change(id, { name: "changed" });
  const after = await callAtOnce(20, [service], known.apiKey);

  assertEquals(tally([...before, ...after]), { 200: 40 });
});

Deno.test("service serves a new key from a spent address as soon as it has a read left", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  await callAtOnce(60, [service]);
  await callWithUnknownKeys(5, service);

  const refused = await call(service, apiKey);
  service.now += SECOND;
  const served = await callAtOnce(50, [service], apiKey);
  assertEquals((await call(service)).status, 429); // It was given nothing back.
  await callWithUnknownKeys(10, service);
  const again = await call(service, apiKey);

  assertEquals([refused.status, refused.code, refused.retryAfter], [429, "rate_limit_minute", 60]);
  assertEquals(tally([...served, again]), { 200: 51 });
  assertEquals(remainders([...served, again]), upTo(1_000).slice(-51));
});

const HOUR = 3_600_000;
const GET = "GET /v1/things";
const POST = "POST /v1/things";

/** A process with an account on the Free plan that has added a thing, another account, and another process. */
class Fixture extends RecordingService {
  readonly other: RecordingService = this.beside();
  id: string = "";
  key: string = "";
  /** An added key of the account, and its ID. */
  added: { readonly key: string; readonly id: string } = { key: "", id: "" };
  /** The ID and the key of the other account. */
  stranger: { readonly id: string; readonly key: string } = { id: "", key: "" };

  static override async open(options?: HarnessOptions, fake: FakeKv = new FakeKv()): Promise<Fixture> {
    const fixture = new Fixture(new VirtualTime(), fake, options);
    const [own, other] = [await fixture.createAccount("free"), await fixture.createAccount("free")];
    const stranger = { id: other.account.id, key: other.apiKey };
    const { key, apiKey } = await fixture.accounts.addKey(own.account.id, {
      label: "a",
      scope: "read/write",
    });
    const added = { key: apiKey, id: key.id };
    Object.assign(fixture, { id: own.account.id, key: own.apiKey, added, stranger });
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
    await this.time.until(this.app.close(), 5_000);
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

type Apply = (accounts: RemoteAccounts, id: string, other: string, keyId: string) => Promise<object | null>;

/** A change, the next response to the old key, and then to a new one. */
type Change = readonly [what: string, expected: Outcomes, apply: Apply, withNewKey?: Outcomes];

const CHANGES: readonly Change[] = [
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

/** The same, if the added key is used. */
const CHANGES_OF_ADDED: readonly Change[] = [
  ...CHANGES.slice(0, 5),
  ["left without it", ENDED, (accounts, id, _, keyId) => accounts.revokeKey(id, keyId)],
];

/** Changes, with a text that says which key is used. */
const CASES = [
  ...CHANGES.map((change) => ["", ...change] as const),
  ...CHANGES_OF_ADDED.map((change) => [" with an added key", ...change] as const),
];

function outcomeOf({ code, remaining, limit }: Reply): string {
  return code || `${remaining} of ${limit}`;
}

/** The outcome of the request after one with this outcome. */
function next(outcome: string): string {
  return outcome.replace(/^\d+(?= of)/, (remaining) => `${Number(remaining) - 1}`);
}

for (const [which, what, expected, apply, withNewKey] of CASES) {
  for (const [condition, { prepare, used, whileSent }] of Object.entries(CONDITIONS)) {
    Deno.test(`service notices at the next request that an account${which} (${condition}) was ${what}`, async () => {
      await using fixture = await Fixture.open();
      if (which !== "") fixture.key = fixture.added.key;
      const { other, id, stranger, rows } = fixture;
      const index = condition === "banned" ? 2 : used === 60 ? 1 : 0;
      await prepare(fixture);
      assertEquals((await other.accounts.usage(id)).leased > 0, /^leased|^far/.test(condition));
      let changed: object | null = null;
      const change = async () =>
        void (changed = await apply(other.accounts, id, stranger.id, fixture.added.id));
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

for (const [which, what, [outcome], apply] of CASES) {
  const isRefused = /^[a-z_]+$/.test(outcome);
  Deno.test(`service ${isRefused ? "writes nothing" : "writes, and charges once,"} if an account${which} is ${what} while a slow body arrives`, async () => {
    for (const ms of [1_001, 3_000]) {
      await using fixture = await Fixture.open();
      if (which !== "") fixture.key = fixture.added.key;
      const { time, other, id, stranger, rows } = fixture;
      await fixture.read(11);
      const { reply, sendBody } = fixture.startAdding();
      await time.advance(ms);
      await apply(other.accounts, id, stranger.id, fixture.added.id);
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

/** Suspends an account, in a process of its own. The arguments are the file and the account's ID. */
const SUSPEND = `
const [path, id] = Deno.args;
const kv = await Deno.openKv(path);
const account = JSON.parse(new TextDecoder().decode((await kv.get(["accounts", id])).value));
const encode = (value) => new TextEncoder().encode(JSON.stringify(value));
const changed = kv.atomic().set(["accounts", id], encode({ ...account, suspendedAt: 1 }));
await changed.set(["versions", "access"], encode({})).commit();
kv.close();
`;

Deno.test.each<[when: string, read: string, afterCommit: string, statuses: number[]]>([
  ["before", "PRAGMA data_version", "another process", [403, 403]],
  ["after", "PRAGMA data_version", "another process", [403, 403]],
  ["before", "SELECT", "this process", [403, 403]],
  ["after", "SELECT", "this process", [200, 403]],
])(
  "service refuses a key that another process suspends right %s the %s of a check, after a commit of %s",
  async (when, read, by, statuses) => {
    const folder = await Deno.makeTempDir();
    const path = `${folder}/store.kv`;
    const { get } = StatementSync.prototype;
    try {
      const store = await openStore(path, { clock: () => NOON, create: true });
      await using service = new Harness(await Deno.openKv(path), { store });
      const { account: { id }, apiKey: key } = await service.createAccount();
      // The first requests take permits, and the last one finds that nothing has changed since.
      for (let count = 0; count < 4; count++) await service.fetch("GET /v1/things", { key });
      // The next check reads the version rows: first the data version, if it does not know that this has changed.
      if (by === "this process") {
        await store.commit((operation) => operation.set(["other"], new Uint8Array()));
      } else await service.kv.set(["other"], 1);
      let suspended: Deno.CommandOutput | undefined;
      const suspend = () => {
        const args = ["eval", "--unstable-kv", SUSPEND, path, id];
        suspended ??= new Deno.Command(Deno.execPath(), { args }).outputSync();
      };
      StatementSync.prototype.get = function (...keys) {
        const isMeant = this.sourceSQL.startsWith(read);
        if (isMeant && when === "before") suspend();
        const row = Reflect.apply(get, this, keys);
        if (isMeant && when === "after") suspend();
        return row;
      };

      for (const status of statuses) {
        assertEquals((await service.fetch("GET /v1/things", { key })).status, status);
      }

      assertEquals(suspended?.success, true);
      StatementSync.prototype.get = get;
      await store.close();
    } finally {
      StatementSync.prototype.get = get;
      await Deno.remove(folder, { recursive: true });
    }
  },
);
