// Sign-up, and the keys of accounts.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { countRotation } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { sweepCounts, sweepSignUps } from "../../src/accounts/sign_up.ts";
import { DAY, HOUR } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { ApiError } from "../../src/web/error.ts";
import { limitHeadersOf } from "../support/assertions.ts";
import {
  call,
  callAtOnce,
  getBanned,
  type HarnessRequest,
  JSON_TYPE,
  tally,
  upTo,
} from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { KEYS, PLANS } from "../support/things.ts";
import { jumpAhead, NOON } from "../support/time.ts";

/** When accounts that signed up at noon, and sent no request, are removed. */
const MONTH_LATER = NOON + 30 * DAY + 1;

/** Sweeps the sign-ups of a service. */
function sweep({ store, accounts }: Harness, now: number): Promise<boolean> {
  return sweepSignUps(store, (id, condition) => accounts.remove(id, condition), PLANS, now);
}

/** Signs up. Returns the response with its body. */
async function signUp(
  service: Harness,
  request: HarnessRequest = { json: { name: "Zoë" } },
): Promise<{ status: number; headers: Headers; body: Record<string, string> }> {
  const response = await service.fetch("POST /v1/accounts", request);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

Deno.test("createAccount() creates an account on the Free plan and returns its key", async () => {
  await using service = await Harness.open();

  const { status, headers, body } = await signUp(service);

  assertEquals(status, 201);
  assertEquals(headers.get("cache-control"), "no-store");
  const { id = "", apiKey = "", ...rest } = body;
  assertMatch(id, /^acct_[0-9A-Za-z]{16}$/);
  assertEquals(rest, { name: "Zoë", plan: "free" });
  assertEquals((await call(service, apiKey)).limit, 60);
  const account = (await service.accounts.find(id))?.holder;
  assertEquals([account?.environment, account?.signedUp, account?.createdAt], ["staging", true, NOON]);
});

Deno.test("createAccount() allows an address five accounts per hour, and returns how many are left", async () => {
  await using service = await Harness.open();
  service.now = NOON + 1_000;

  const limits = (remaining: number) => ({
    "ratelimit": `"hour";r=${remaining};t=3599`,
    "ratelimit-policy": '"hour";q=5;w=3600',
    "x-ratelimit-limit": "5",
    "x-ratelimit-remaining": `${remaining}`,
    "x-ratelimit-reset": `${(NOON + HOUR) / 1_000}`,
  });

  for (const remaining of [4, 3, 2, 1, 0]) {
    const made = await signUp(service);
    assertEquals([made.status, limitHeadersOf(made)], [201, limits(remaining)]);
  }

  const refused = await signUp(service);
  const message = "At most 5 accounts can be created in an hour from one address. Try again in 3599 s.";
  assertEquals([refused.status, refused.body.code, refused.body.message], [429, "sign_up_limit", message]);
  assertEquals(limitHeadersOf(refused), { ...limits(0), "retry-after": "3599" });
  assertEquals(await service.countRows("accounts"), 5);

  service.address = "198.51.100.7";
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
  service.address = "192.0.2.1";
  service.now = NOON + HOUR - 1;
  assertEquals((await signUp(service)).headers.get("retry-after"), "1");
  service.now = NOON + HOUR;
  assertEquals((await signUp(service)).headers.get("x-ratelimit-remaining"), "4");
});

Deno.test("createAccount() creates at most 1,000 accounts per day in total", async () => {
  await using service = await Harness.open();
  const midnight = NOON + DAY / 2;
  const day = ["sign_ups_by_day", NOON / DAY - 0.5];
  await signUp(service);
  assert((await service.kv.get(day)).versionstamp);
  await service.kv.set(day, new TextEncoder().encode("999"));

  assertEquals((await signUp(service)).status, 201);
  const refused = await signUp(service);

  const message = "At most 1,000 accounts can be created in a day. Try again in 43200 s.";
  assertEquals([refused.status, refused.body.code, refused.body.message], [429, "sign_up_limit", message]);
  assertEquals(refused.headers.get("ratelimit-policy"), '"day";q=1000;w=86400');
  service.now = midnight;
  assertEquals((await signUp(service)).status, 201);
});

Deno.test("sweepSignUps() removes accounts that signed up over 30 days ago, sent no request, and were not changed", async () => {
  await using service = await Harness.open();
  const made = [];
  for (service.address of ["idle", "used", "moved", "suspended", "referred"]) {
    made.push((await signUp(service)).body);
  }
  const [idle, used, moved, suspended, referred] = made.map(({ id = "", apiKey = "" }) => ({ id, apiKey }));
  assert(idle && used && moved && suspended && referred);
  await call(service, used.apiKey);
  await service.accounts.change(moved.id, { plan: "pro", limits: PLANS.limits.pro });
  await service.accounts.suspend(suspended.id, NOON);
  await service.accounts.change(referred.id, { reference: "7" });
  const { account: { id: operators } } = await service.createAccount();
  service.now = NOON + 1;
  const { id: late } = (await signUp(service)).body;

  assertEquals(await sweep(service, MONTH_LATER - 1), false);
  assertEquals((await service.accounts.list()).length, 7);
  assertEquals(await sweep(service, MONTH_LATER), false);

  const left = (await service.accounts.list()).map(({ holder }) => holder.id);
  assertEquals(left, [used.id, moved.id, suspended.id, referred.id, operators, late].sort());
  assertEquals((await call(service, idle.apiKey)).code, "invalid_api_key");
  assertEquals(await service.countRows("sign_ups"), 1);
});

Deno.test("sweepSignUps() works in steps of 20 sign-ups", async () => {
  await using service = await Harness.open();
  for (const number of upTo(40)) await service.kv.set(["sign_ups", NOON, `acct_${number}`], encodeJson({}));

  const steps: unknown[] = [];
  for (let step = 0; step < 3; step++) {
    steps.push([await sweep(service, MONTH_LATER), await service.countRows("sign_ups")]);
  }

  assertEquals(steps, [[true, 20], [true, 0], [false, 0]]);
});

Deno.test("sweepCounts() removes the counts of hours and days before the previous one", async () => {
  await using service = await Harness.open();
  for (const now of [NOON, NOON + HOUR, NOON + DAY]) {
    service.now = now;
    assertEquals((await signUp(service)).status, 201);
  }
  const counts =
    async () => [await service.countRows("sign_ups_by_hour"), await service.countRows("sign_ups_by_day")];

  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR - 1), false);
  assertEquals(await counts(), [3, 2]);
  assertEquals(await sweepCounts(service.store, NOON + 2 * HOUR), false);
  assertEquals(await counts(), [2, 2]);
  await sweepCounts(service.store, NOON + 2 * DAY);
  assertEquals(await counts(), [0, 1]);
});

const ROTATE = "POST /v1/account/key";
const LIMITED = "429 rotation_limit";

/** Rotates a key. Returns the new one, and when the previous one expires. */
async function rotate(service: Harness, key: string, graceSeconds: number) {
  const response = await service.fetch(ROTATE, { key, json: { graceSeconds } });
  assertEquals(response.status, 201);
  const { apiKey, previousKeyExpiresAt }: Record<string, string> = await response.json();
  assert(apiKey);
  return { apiKey, previousKeyExpiresAt, remaining: response.headers.get("x-ratelimit-remaining") };
}

/** The statuses of requests with these keys. */
function statusesOf(service: Harness, ...keys: string[]): Promise<number[]> {
  return Promise.all(keys.map(async (key) => (await call(service, key)).status));
}

Deno.test.each([
  [60, {}],
  [60, { headers: { ...JSON_TYPE, "content-length": "0" } }],
  [60, { json: {} }],
  [3, { json: { graceSeconds: 3 } }],
])("rotateKey() returns a new key, and ends the previous one after %i s: %j", async (seconds, request) => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  const response = await service.fetch(ROTATE, { key, ...request });

  assertEquals([response.status, response.headers.get("cache-control")], [201, "no-store"]);
  const { apiKey, previousKeyExpiresAt } = await response.json();
  assertMatch(apiKey, /^as_test_\w{38}$/);
  assertEquals(previousKeyExpiresAt, new Date(NOON + seconds * 1_000).toISOString());
  service.now = NOON + seconds * 1_000 - 1;
  const shown = async () =>
    Object((await call(service, apiKey, "GET /v1/account")).json).previousKeyExpiresAt;
  assertEquals([await statusesOf(service, key, apiKey), await shown()], [[200, 200], previousKeyExpiresAt]);
  service.now += 1;
  assertEquals([await statusesOf(service, key, apiKey), await shown()], [[401, 200], null]);
});

Deno.test("rotateKey() replaces the key of the request, so a client can retry after a lost response", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  const lost = await rotate(service, key, 60);
  service.now += 30_000;
  const got = await rotate(service, key, 60);

  assertEquals(got.previousKeyExpiresAt, "2027-01-15T12:01:30.000Z");
  assertEquals(await statusesOf(service, key, lost.apiKey, got.apiKey), [200, 401, 200]);
  const last = await rotate(service, key, 0);
  assertEquals(last.previousKeyExpiresAt, null);
  assertEquals(await statusesOf(service, key, lost.apiKey, got.apiKey, last.apiKey), [401, 401, 401, 200]);
});

Deno.test("rotateKey() returns one new key to simultaneous requests without a grace period", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { apiKey: key } = await service.createAccount();

  const replies = await Promise.all(
    [service, other, service, other].map((process) =>
      call(process, key, ROTATE, { json: { graceSeconds: 0 } })
    ),
  );

  assertEquals(tally(replies), { 201: 1, "401 invalid_api_key": 3 });
  const [made] = replies.filter(({ status }) => status === 201);
  assertEquals(await statusesOf(other, Object(made?.json).apiKey), [200]);
});

Deno.test("rotateKey() replaces a leaked key, and charges nothing, while its thief uses up the limit or is banned", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 3, day: 9 });
  await callAtOnce(5, [service], apiKey);

  const second = await rotate(service, apiKey, 0);
  await getBanned(service, second.apiKey, 3);
  const third = await rotate(service, second.apiKey, 0);

  assertEquals([second.remaining, third.remaining], ["0", "0"]);
  assertEquals(await statusesOf(service, apiKey, second.apiKey, third.apiKey), [401, 401, 429]);
  await service.app.close();
  assertEquals((await service.accounts.usage(id)).usedToday, 3);
});

Deno.test("rotateKey() is spared ten times an hour, whether it succeeds or not, and then refused like any request", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 1, day: 9 });
  const attempt = () => call(service, apiKey, ROTATE, { json: { graceSeconds: -1 } });
  await callAtOnce(2, [service], apiKey);
  jumpAhead(5_001);

  for (let count = 0; count < 9; count++) assertEquals((await attempt()).status, 400);
  assertEquals(tally([await attempt(), await attempt()]), {
    "400 invalid_request": 1,
    "429 rate_limit_minute": 1,
  });
  await service.app.close();
  const { strikes, refused } = await service.accounts.usage(id);
  assertEquals([strikes, refused], [1, 2]);

  service.now = NOON + HOUR;
  assertEquals(tally([await attempt(), await attempt()]), { "400 invalid_request": 2 });
});

Deno.test("rotateKey() allows ten rotations across processes, including one that has just started", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { account: { id }, apiKey } = await service.createAccount();
  // All requests use one key, whose grace period starts again each time.
  const replies = await callAtOnce(24, [service, other], apiKey, ROTATE);
  await using started = service.beside();

  assertEquals(tally(replies), { 201: 10, [LIMITED]: 14 });
  assertEquals(tally(await callAtOnce(3, [service, other, started], apiKey, ROTATE)), { [LIMITED]: 3 });
  assertEquals((await call(started, apiKey)).status, 200);
  for (const process of [service, other, started]) await process.app.close();
  assertEquals((await service.accounts.usage(id)).usedToday, 28);
});

Deno.test("rotateKey() counts neither refused requests nor rotations of another account or by operators", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount();
  const { apiKey: other } = await service.createAccount();
  await callAtOnce(10, [service], other, ROTATE);
  const wrong = [-1, 7 * 86_400 + 1].map((graceSeconds) => ({ json: { graceSeconds } }));
  for (const request of wrong) {
    const refused = await Promise.all(upTo(11).map(() => call(service, apiKey, ROTATE, request)));
    assertEquals(tally(refused), { "400 invalid_request": 11 });
  }
  let key = "";
  for (let count = 0; count < 11; count++) key = (await service.accounts.rotate(id))?.apiKey ?? "";

  assertEquals(await statusesOf(service, apiKey), [401]);
  assertEquals(tally(await callAtOnce(11, [service], key, ROTATE)), { 201: 10, [LIMITED]: 1 });
  assertEquals(await statusesOf(service, (await service.accounts.rotate(id))?.apiKey ?? ""), [200]);
});

Deno.test("countRotation() continues an hour slightly ahead of the clock, but not one further ahead", () => {
  const hour = NOON / HOUR;

  assertEquals(countRotation(undefined, NOON), { hour, count: 1 });
  assertEquals(countRotation({ hour, count: 9 }, NOON + HOUR - 1), { hour, count: 10 });
  assertEquals(countRotation({ hour, count: 10 }, NOON + HOUR), { hour: hour + 1, count: 1 });
  assertEquals(countRotation({ hour, count: 3 }, NOON - 1), { hour, count: 4 });
  assertEquals(countRotation({ hour, count: 10 }, NOON - HOUR - 1), { hour: hour - 2, count: 1 });
  const { headers } = assertThrows(() => countRotation({ hour, count: 10 }, NOON - 500), ApiError);
  assertEquals(headers, {
    "retry-after": "3601",
    "x-ratelimit-limit": "10",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": `${(NOON + HOUR) / 1_000}`,
    "ratelimit-policy": '"hour";q=10;w=3600',
    "ratelimit": '"hour";r=0;t=3601',
  });
});

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

Deno.test.each(
  [
    ["production", "staging", /^as_live_[0-9A-Za-z]{38}$/],
    ["staging", "production", /^as_test_[0-9A-Za-z]{38}$/],
  ] as const,
)("KeyForm.create() returns a key that is valid only in %s", (environment, other, form) => {
  const key = KEYS.create(environment);

  assertMatch(key, form);
  assertEquals([KEYS.accepts(key, environment), KEYS.accepts(key, other)], [true, false]);
});

Deno.test("KeyForm.accepts() detects every mistyped character, and every swap of adjacent ones", () => {
  for (let count = 0; count < 20; count++) {
    const key = KEYS.create("staging");
    for (const [place, character] of [...key].entries()) {
      const typos = [...BASE62, ..."_- é"].map((other) => key.slice(0, place) + other + key.slice(place + 1));
      const swapped = key.slice(0, place) + key.charAt(place + 1) + character + key.slice(place + 2);
      for (const wrong of [...typos, swapped].filter((one) => one !== key)) {
        assert(!KEYS.accepts(wrong, "staging"), `${key} ${wrong}`);
      }
    }
  }
});

Deno.test("hashApiKey() returns the SHA-256 hash in hex", () => {
  const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assertEquals(hashApiKey("abc"), hash);
});

Deno.test("KeyForm.secret matches keys of both environments anywhere in a text", () => {
  const [live, staging] = [KEYS.create("production"), KEYS.create("staging")];

  const text = `"${live}",x${staging}`.replace(KEYS.secret, "[secret]");

  assertEquals(text, '"[secret]",x[secret]');
});
