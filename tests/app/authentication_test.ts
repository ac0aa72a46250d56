// Requests without a valid key: what they are told, and how many an address may send.
import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, remainders, type Reply, tally, upTo } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const CHALLENGE = 'Bearer realm="thing-store"';
const MISSING = "Send your API key as 'Authorization: Bearer <API_KEY>'.";
const TWICE = "The Authorization header was sent twice.";
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
    const why = "More than 60 requests in a minute without a valid API key. Try again in 60 s.";
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
