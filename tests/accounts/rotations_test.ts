import { assert, assertEquals, assertThrows } from "@std/assert";
import { countRotation } from "../../src/accounts/account.ts";
import { ApiError } from "../../src/web/error.ts";
import { assertError, limitHeadersOf } from "../support/assertions.ts";
import { call, callAtOnce, getBanned, tally } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { jumpAhead, NOON } from "../support/time.ts";

const ROTATE = "POST /v1/account/key";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LIMITED = "429 rotation_limit";

Deno.test("rotateKey() allows an account ten rotations per UTC hour, and returns Retry-After", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount();
  service.now = NOON + HOUR / 2;
  let key = apiKey;

  for (let count = 0; count < 10; count++) {
    const response = await service.fetch(ROTATE, { key, json: { graceSeconds: 0 } });
    assertEquals(response.status, 201);
    key = (await response.json()).apiKey;
  }
  service.now = NOON + HOUR - 1_500;
  const refused = await service.fetch(ROTATE, { key });
  assertEquals(limitHeadersOf(refused), {
    "retry-after": "2",
    "x-ratelimit-limit": "10",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": `${(NOON + HOUR) / 1_000}`,
    "ratelimit-policy": '"hour";q=10;w=3600',
    "ratelimit": '"hour";r=0;t=2',
  });
  await assertError(refused, 429, "rotation_limit", /at most 10 times in an hour\. .* 2 s\.$/);
  assertEquals((await call(service, key)).status, 200);
  await service.app.settle();
  assertEquals((await service.accounts.find(id))?.usage.usedToday, 12);

  service.now = NOON + HOUR;
  assertEquals((await call(service, key, ROTATE)).status, 201);
});

Deno.test("rotateKey() replaces a leaked key, and charges nothing, while its thief uses up the limit or is banned", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 3, day: 9 });
  const rotate = async (key: string): Promise<string> => {
    const response = await service.fetch(ROTATE, { key, json: { graceSeconds: 0 } });
    assertEquals([response.status, response.headers.get("x-ratelimit-remaining")], [201, "0"]);
    return (await response.json()).apiKey;
  };
  await callAtOnce(5, [service], apiKey);

  const second = await rotate(apiKey);
  await getBanned(service, second, 3);
  const third = await rotate(second);

  const codes = await Promise.all(
    [apiKey, second, third].map(async (key) => (await call(service, key)).code),
  );
  assertEquals(codes, ["invalid_api_key", "invalid_api_key", "key_banned"]);
  await service.app.settle();
  assertEquals((await service.accounts.find(id))?.usage.usedToday, 3);
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
  await service.app.settle();
  const { strikes, refused } = await service.accounts.usage(id);
  assertEquals([strikes, refused], [1, 2]);

  service.now = NOON + HOUR;
  assertEquals(tally([await attempt(), await attempt()]), { "400 invalid_request": 2 });
});

Deno.test("rotateKey() takes a permit if there is one, and is not spared for a suspended account", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount({ minute: 2, day: 9 });

  assertEquals((await call(service, apiKey, ROTATE)).remaining, 1);
  await callAtOnce(2, [service], apiKey);
  await service.accounts.suspend(id, NOON);

  assertEquals((await call(service, apiKey, ROTATE)).code, "account_suspended");
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
  await service.app.settle();
  await other.app.settle();
  await started.app.settle();
  assertEquals((await service.accounts.find(id))?.usage.usedToday, 28);
});

Deno.test("rotateKey() counts neither refused requests nor those of another account", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const { apiKey: other } = await service.createAccount();
  await callAtOnce(10, [service], other, ROTATE);

  for (let count = 0; count < 20; count++) {
    const refused = await service.fetch(ROTATE, { key, json: { graceSeconds: -1 } });
    assertEquals(refused.status, 400);
    const repeatable = await service.fetch(ROTATE, { key, headers: { "idempotency-key": "1" } });
    assertEquals(repeatable.status, 400);
  }

  assertEquals(tally(await callAtOnce(11, [service], key, ROTATE)), { 201: 10, [LIMITED]: 1 });
});

Deno.test("rotate() neither counts nor limits rotations by operators, which can end a key at once", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount();
  await callAtOnce(10, [service], apiKey, ROTATE);

  let key = "";
  for (let count = 0; count < 11; count++) {
    const issued = await service.accounts.rotate(id, 0, service.now);
    assert(issued);
    key = issued.apiKey;
  }

  assertEquals((await call(service, apiKey)).status, 401);
  assertEquals(tally([await call(service, key, ROTATE)]), { [LIMITED]: 1 });
  service.now += HOUR;
  assertEquals((await call(service, key, ROTATE)).status, 201);
});

Deno.test("countRotation() continues an hour slightly ahead of the clock, but not one further ahead", () => {
  const hour = NOON / HOUR;

  assertEquals(countRotation(undefined, NOON), { hour, count: 1 });
  assertEquals(countRotation({ hour, count: 9 }, NOON + HOUR - 1), { hour, count: 10 });
  assertEquals(countRotation({ hour, count: 10 }, NOON + HOUR), { hour: hour + 1, count: 1 });
  assertEquals(countRotation({ hour, count: 3 }, NOON - 1), { hour, count: 4 });
  assertEquals(countRotation({ hour, count: 10 }, NOON - HOUR - 1), { hour: hour - 2, count: 1 });
  const { headers } = assertThrows(() => countRotation({ hour, count: 10 }, NOON - 1_000), ApiError);
  assertEquals([headers["retry-after"], headers["x-ratelimit-reset"]], ["3601", `${(NOON + HOUR) / 1_000}`]);
});
