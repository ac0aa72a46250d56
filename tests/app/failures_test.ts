// The store fails, is late, or has rows that cannot be read; and what runs beside requests.
import { assert, assertEquals } from "@std/assert";
import manifest from "../../deno.json" with { type: "json" };
import type { ErrorRecord, Log } from "../../src/app/log.ts";
import { type Sweep, sweepAll, Sweeper } from "../../src/app/sweeper.ts";
import { HOUR, MINUTE, pause } from "../../src/base/time.ts";
import { encodeJson, encodeText } from "../../src/engine/row.ts";
import { ACCESS, UNAVAILABLE } from "../../src/service/mod.ts";
import { ApiError, ERRORS } from "../../src/web/error.ts";
import { assertError } from "../support/assertions.ts";
import { call, callAtOnce, tally, upTo } from "../support/client.ts";
import { carryOut, type Commit, type Disturbance, fail, hang } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, SAMPLES } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { NOON, VirtualTime } from "../support/time.ts";

Deno.test.each<[table: string, isKnown: boolean]>([
  ["usage", false],
  ["usage", true],
  ["accounts", false],
  ["accounts", true],
  ["api_keys", false], // The account ID of a key is read once.
])(
  "service fails only requests of an account with a corrupt row in %s, in use: %s",
  async (table, isKnown) => {
    await using service = await Harness.open();
    service.expectsErrors = true;
    const accounts = await Promise.all(upTo(5).map(() => service.createAccount("free")));
    const callAll = () => Promise.all(accounts.map(({ apiKey }) => call(service, apiKey)));
    if (isKnown) await callAll();
    const { id = "", keyHash = "" } = accounts[2]?.account ?? {};
    const key = [table, table === "api_keys" ? keyHash : id];
    const { value: before } = await service.kv.get(key);
    await service.kv.set(key, encodeText("{"));
    // Makes every process read accounts again.
    if (table === "accounts") await service.accounts.change(accounts[0]?.account.id ?? "", { name: "x" });

    assertEquals((await callAll()).map(({ status }) => status), [200, 200, 500, 200, 200]);
    assertEquals(service.errors.map(({ error }) => error), ["CorruptRow"]);

    // Transactions in the background would fail requests that join them.
    await service.app.close();
    await service.kv.set(key, before);
    assertEquals(tally(await callAll()), { 200: 5 });
  },
);

Deno.test("service does not charge a request that still waits for a permit when its check of versions fails", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  await call(service, apiKey);
  await time.advance(5_000);
  service.expectsErrors = true;
  service.disturbance = {
    read: fail,
    commit: async ({ apply }) => (await pause(100), await apply()),
  };

  const first = call(service, apiKey); // Its charge is being committed.
  await time.advance(10);
  const second = call(service, apiKey);
  const replies = await time.until(Promise.all([first, second]), 5_000);
  service.disturbance = {};
  await time.advance(5_000);

  assertEquals(tally(replies), { "503 store_unavailable": 2 });
  assertEquals((await service.accounts.usage(id)).used, 2);
});

/** Tables that requests write to, except counts. */
const TABLES: readonly Deno.KvKeyPart[] = ["items", "items_by", "idempotency", "accounts", "api_keys"];

/** Whether a commit changes more than permits. */
function isChange({ keys }: Commit): boolean {
  return keys.some(([table = ""]) => TABLES.includes(table));
}

/** Every request that writes, with and without an Idempotency-Key if it accepts one. */
const CHANGES = SAMPLES.flatMap(({ operation, target, request, changes }) => {
  // An operator's command continues after its response has begun.
  if (changes.length === 0 || operation.access === ACCESS.operator) return [];
  const plain = { operation, target, what: target, request };
  if (!operation.errors.includes(ERRORS.idempotency_key_reused)) return [plain];
  const headers = { "idempotency-key": "1" };
  const once = { ...plain, what: `${target} with an Idempotency-Key`, request: { ...request, headers } };
  // A thing is added without a read that could be slow.
  return operation.id === "createThing" ? [once] : [plain, once];
});

for (const { operation, target, what, request } of CHANGES) {
  Deno.test(`service starts no write for ${what} after it has returned 503`, async () => {
    await using service = await RecordingService.open(ALL);
    service.expectsErrors = true;
    const { time } = service;
    const { account: { id }, apiKey } = await service.createAccount();
    await time.until(service.fetch("POST /v1/things", { key: apiKey, json: HAMMER }), 1_000);
    await time.until(addKnownAccounts(service, id), 1_000);
    await time.advance(3_000);
    // Each operation is in time, but not all of them together.
    service.disturbance = {
      read: () => pause(3_000),
      commit: (commit) => pause(3_000).then(() => carryOut(commit)),
    };
    service.forget();

    const sent = service.fetch(target, { ...credentialFor(operation, apiKey), ...request });
    const { status } = await time.until(sent, 6_000);
    const before = service.commits.filter(isChange).length;
    await time.advance(20_000);

    assertEquals(status, 503);
    assertEquals(service.commits.filter(isChange).length - before, 0);
  });
}

Deno.test("service charges nothing to a key that it finds after it has returned 503", async () => {
  await using service = await RecordingService.open({ deadline: 8_000 });
  service.expectsErrors = true;
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await callAtOnce(60, [service]);
  service.disturbance = { read: ([key]) => key?.[0] === "api_keys" ? pause(6_000) : undefined };

  // Five look the key up, and the others wait for them.
  const replies = await time.until(callAtOnce(9, [service], apiKey), 6_000);
  await time.advance(20_000);
  await time.until(service.app.close(), 1_000);

  assertEquals(tally(replies), { "503 store_unavailable": 9 });
  const reasons = new Set(service.errors.map(({ error, reason }) => `${error}: ${reason}`));
  assertEquals(reasons, new Set(["OutOfTime: The handler could not be called in time"]));
  assertEquals((await service.accounts.usage(id)).used, 0);
});

/** What a handler of an adopter can do wrong, the status of the response, and what the log says. */
const FAULTS: readonly (readonly [what: string, handle: () => unknown, status: number, logged: object])[] = [
  ["returns nothing", () => undefined, 500, { reason: "The handler returned no Response" }],
  ["returns no Response", () => "text", 500, { reason: "The handler returned no Response" }],
  ["resolves to nothing", () => Promise.resolve(), 500, { reason: "The handler returned no Response" }],
  ["returns a Response that nobody can change", () => Response.redirect("http://things.example"), 500, {
    error: "TypeError",
  }],
  ["resolves to such a Response", () => Promise.resolve(Response.error()), 500, { error: "TypeError" }],
  ["never ends", () => new Promise(() => {}), 503, { reason: "The handler did not finish" }],
  ["throws an ApiError of 5xx", () => Promise.reject(UNAVAILABLE), 503, {
    error: "ApiError",
    code: "store_unavailable",
  }],
];

for (const [what, respond, status, logged] of FAULTS) {
  Deno.test(`service answers ${status} with an Error body, and logs one line, if a handler ${what}`, async () => {
    await using service = await RecordingService.open();
    service.expectsErrors = true;
    const { apiKey: key } = await service.createAccount();
    Object.assign(service.app.operations.find(({ id }) => id === "listThings") ?? {}, { respond });

    const response = await service.time.until(service.fetch("GET /v1/things", { key }), 6_000);

    const { code, status: inBody } = await response.json();
    assertEquals([response.status, inBody, typeof code], [status, status, "string"]);
    const route = "/v1/things";
    assertEquals(service.errors.map((line) => ({ ...line, ...logged, route })), service.errors);
    assertEquals(service.errors.length, 1);
  });
}

Deno.test("service does not log that it refuses a request because it is overloaded or stopping", async () => {
  await using service = await RecordingService.open();
  const { apiKey: key } = await service.createAccount();
  const overloaded = () =>
    Promise.reject(new ApiError(ERRORS.overloaded, "Too many bodies.", { "retry-after": "1" }));
  Object.assign(service.app.operations.find(({ id }) => id === "listThings") ?? {}, { respond: overloaded });

  const { status } = await service.fetch("GET /v1/things", { key });

  assertEquals([status, service.errors], [503, []]);
});

const WITH_KEY = SAMPLES.filter(({ operation }) => operation.access === ACCESS.key);
const NOWHERE = "GET /v1/nothing";

for (
  const [what, trouble, logged, limit, left, reset] of [
    ["hangs", (ended: Promise<void>) => ended.then(fail), "DeadlineExceeded", 5, 4, NOON + 12 * HOUR],
    // What is known of the account is forgotten, so these are the limits of the address.
    ["fails", fail, "StoreUnavailable (TypeError)", 60, 60, NOON + MINUTE],
  ] as const
) {
  Deno.test(`service returns 503 with limit headers, logs the error, and counts nothing if KV ${what}`, async () => {
    await using service = await RecordingService.open({ ...ALL, deadline: 500 });
    const { account, apiKey: key } = await service.createAccount({ minute: 5, day: 5 });
    await service.fetch(NOWHERE, { key });
    const ended = Promise.withResolvers<void>();
    service.disturbance = { read: () => trouble(ended.promise), commit: () => trouble(ended.promise) };
    service.expectsErrors = true;
    const targets = [...WITH_KEY.map(({ target }) => target), NOWHERE, "PUT /v1/things"];
    const headers = { "x-request-id": "r1" };

    const replies = Promise.all(targets.map((target) => call(service, key, target, { headers })));

    for (const { status, headers, json, ...shown } of await service.time.until(replies, 10_000)) {
      assertEquals([shown.limit, shown.remaining, shown.reset], [limit, left, reset / 1_000]);
      assertEquals([headers.get("retry-after"), headers.get("x-request-id")], ["5", "r1"]);
      const message = "The store does not respond. Try again shortly.";
      assertEquals([status, json], [503, { code: "store_unavailable", message, status }]);
    }
    assertEquals(service.errors.map(({ id, error }) => [id, error]), targets.map(() => ["r1", logged]));
    service.disturbance = {};
    ended.resolve();
    assertEquals((await service.fetch(NOWHERE, { key })).headers.get("x-ratelimit-remaining"), "3");
    assertEquals((await service.beside().accounts.find(account.id))?.usage.used, 2);
  });
}

Deno.test("service returns 401 without a key and serves public paths except /ready while KV hangs", async () => {
  await using service = await RecordingService.open(ALL);
  const ended = Promise.withResolvers<void>();
  service.disturbance = { read: () => ended.promise.then(fail), commit: hang };
  service.expectsErrors = true;

  for (const { operation, target, status } of SAMPLES) {
    const isReadiness = operation.id === "getReadiness";
    if (operation.access === ACCESS.address) continue;
    const expected = operation.access.hasCredential ? 401 : isReadiness ? 503 : status;
    const response = await service.time.until(service.fetch(target), 10_000);
    await response.body?.cancel();
    assertEquals([target, response.status], [target, expected]);
  }
  service.disturbance = {};
  ended.resolve();
});

Deno.test("service retries every two seconds to give leased permits back while KV fails", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  for (let calls = 0; calls < 20; calls++) await time.until(call(service, apiKey), 1_000);
  service.disturbance = { read: fail, commit: fail };
  service.forget();

  await time.advance(10_000);
  const attempts = service.reads.length + service.commits.length;
  service.disturbance = {};
  await time.advance(3_000);

  assert(attempts >= 4 && attempts <= 12, `${attempts} times`);
  const { used, leased } = await service.accounts.usage(id);
  assertEquals([used, leased], [20, 0]);
});

Deno.test("/health and /ready report to anyone that the service is alive and ready", async () => {
  await using service = await Harness.open();

  for (const [path, status] of [["/health", "alive"], ["/ready", "ready"]]) {
    const response = await service.fetch(`GET ${path}`);
    assertEquals([response.status, response.headers.get("cache-control")], [200, "no-store"]);
    assertEquals(await response.json(), { status, version: manifest.version });
  }
});

Deno.test("/ready probes KV once a second, however many requests arrive", async () => {
  await using service = await RecordingService.open();
  const counts: number[] = [];

  for (const ms of [0, 998, 2, 1_000]) {
    await service.time.advance(ms);
    service.forget();
    assertEquals(tally(await callAtOnce(50, [service], undefined, "GET /ready")), { 200: 50 });
    counts.push(service.commits.length);
  }

  assertEquals(counts, [1, 0, 1, 1]);
});

Deno.test.each<[string, Disturbance]>([
  ["cannot be read", { read: fail }],
  ["cannot be written", { commit: fail }],
  ["does not respond in time", { commit: () => pause(300).then(fail) }],
])(
  "/ready returns 503 while KV %s and 200 afterwards, and /health always returns 200",
  async (_, disturbance) => {
    await using service = await RecordingService.open({ deadline: 100 });
    const { time } = service;
    const get = (path: string) => time.until(service.fetch(`GET ${path}`), 1_000);
    service.expectsErrors = true;
    service.disturbance = disturbance;

    const failed = await Promise.all([get("/ready"), get("/ready"), get("/health")]);
    service.disturbance = {};
    const tooSoon = await get("/ready");
    await time.advance(1_000);
    const recovered = await get("/ready");

    assertEquals(failed.map(({ status }) => status), [503, 503, 200]);
    assertEquals([tooSoon.status, recovered.status], [503, 200]);
    assertEquals(failed[0]?.headers.get("retry-after"), "5");
    await assertError(tooSoon, 503, "store_unavailable");
    assertEquals(new Set(service.errors.map(({ route }) => route)), new Set(["/ready"]));
  },
);

function logTo(errors: ErrorRecord[]): Log {
  return {
    error: (record) => errors.push(record),
    operator() {},
    event() {},
    flushed: () => Promise.resolve(),
  };
}

Deno.test("sweepAll() repeats each sweep to its end, at most 1,000 times, and continues after a failure", async () => {
  await using time = new VirtualTime();
  const steps: unknown[] = [];
  const errors: ErrorRecord[] = [];
  const sweeps: Sweep[] = [
    (now) => Promise.resolve(steps.push(["one", now]) < 3),
    () => Promise.reject(new TypeError("database is on fire")),
    () => Promise.resolve(steps.push("endless") > 0),
  ];

  await time.until(sweepAll(sweeps, NOON, logTo(errors)), 10_000);

  assertEquals(steps, [...new Array(3).fill(["one", NOON]), ...new Array(1_000).fill("endless")]);
  assertEquals(errors.map(({ at: _, ...record }) => record), [
    { time: "2027-01-15T12:00:00.000Z", id: "", route: "sweep", error: "TypeError" },
  ]);
});

Deno.test("sweepAll() pauses after each step for three times its duration, at most 500 ms", async () => {
  await using time = new VirtualTime();
  const begun: number[] = [];
  const lengths = [10, 100, 1_000, 1];
  const sweep = async () => {
    await pause(lengths[begun.push(time.now) - 1] ?? 0);
    return begun.length < lengths.length;
  };

  await time.until(sweepAll([sweep], NOON, logTo([])), 10_000);

  assertEquals(begun, [0, 40, 440, 1_940]);
  assertEquals(time.now, 1_941);
});

Deno.test("createService() sweeps expired rows of every kind", async () => {
  await using service = await Harness.open();
  const expired = [
    ["commits", "a process that was killed", 1],
    ["generations", "things", "1970-01-01T00:00:00.000Z", "state", "new", 1],
    ["idempotency_by_expiry", 1, "acct_a", "createThing", "once"],
    ["idempotency_counts", 1, "acct_a"],
    ["sign_ups", 1, "acct_a"],
    ["sign_ups_by_day", 1],
    ["sign_ups_by_hour", 1, "192.0.2.1"],
    ["usage_days", 1, "acct_a"],
  ];
  for (const key of expired) await service.kv.set(key, encodeJson({ commit: 1, at: 1 }));
  const errors: ErrorRecord[] = [];

  await sweepAll(service.app.sweeps, NOON, logTo(errors));

  const left = await Promise.all(expired.map((key) => service.kv.get(key)));
  assertEquals(left.filter(({ versionstamp }) => versionstamp !== null), []);
  assertEquals(errors, []);
});

Deno.test("Sweeper sweeps once a minute by its clock, even if that is set back, on its timer or after a request", async () => {
  await using time = new VirtualTime();
  let start = NOON;
  const swept: number[] = [];
  const sweep = async (now: number) => {
    swept.push(now - NOON);
    if (swept.length === 1) throw new TypeError("database is on fire");
    await pause(5_000);
    return false;
  };
  const sweeper = new Sweeper([sweep], () => start + time.now, logTo([]));

  for (
    const [ms, expected] of [
      [59_999, []],
      [1_001, [61_000]],
      [61_000, [61_000, 122_000]],
      [60_000, [61_000, 122_000, 182_000]], // Only requests call it then.
    ] as const
  ) {
    await time.advance(ms);
    for (let request = 0; request < 2; request++) sweeper.sweepIfDue();
    assertEquals<readonly number[]>(swept, expected);
  }
  await time.advance(5_000);
  start -= 3_600_000;
  sweeper.sweepIfDue();
  assertEquals(swept.at(-1), 187_000 - 3_600_000);
  await time.until(sweeper.stop(), 5_000);
  sweeper.sweepIfDue();
  await time.advance(600_000);
  assertEquals(swept.length, 4);
});

Deno.test("Sweeper.stop() waits for the current step, and starts no other", async () => {
  await using time = new VirtualTime();
  const step = Promise.withResolvers<boolean>();
  const taken: string[] = [];
  const sweeps: Sweep[] = [
    () => (taken.push("first"), step.promise),
    () => Promise.resolve(taken.push("second") < 0),
  ];
  const sweeper = new Sweeper(sweeps, () => NOON + time.now, logTo([]));
  await time.advance(61_000);

  let isStopped = false;
  const stopped = sweeper.stop().then(() => isStopped = true);
  await time.advance(600_000);
  assertEquals([taken, isStopped], [["first"], false]);
  step.resolve(true);
  await time.until(stopped, 0);
  await time.advance(600_000);

  assertEquals(taken, ["first"]);
});
