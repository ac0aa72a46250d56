import { assert, assertEquals, assertMatch } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { assertError } from "../support/assertions.ts";
import { call, callAtOnce } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const DAY = 86_400_000;
const JSON_TYPE = { "content-type": "application/json" };

Deno.test("getAccount() and getUsage() describe the key's account, and forbid caching", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 3, day: 9 });
  await callAtOnce(4, [service], key);
  service.now = NOON + DAY;

  const account = await service.fetch("GET /v1/account", { key });
  const usage = await service.fetch("GET /v1/account/usage?days=3", { key });
  const month = await service.fetch("GET /v1/account/usage", { key });

  for (const { headers } of [account, usage]) assertEquals(headers.get("cache-control"), "no-store");
  assertEquals(await account.json(), {
    id,
    name: "tests",
    plan: "enterprise",
    limits: { minute: 3, day: 9 },
    usage: {
      minute: { used: 1, reset: "2027-01-16T12:01:00.000Z" },
      day: { used: 1, reset: "2027-01-17T00:00:00.000Z" },
    },
    bannedUntil: null,
    createdAt: "2027-01-15T12:00:00.000Z",
    previousKeyExpiresAt: null,
  });
  const days = [["2027-01-16", 2, 0], ["2027-01-15", 3, 1], ["2027-01-14", 0, 0]];
  assertEquals(await usage.json(), days.map(([date, admitted, refused]) => ({ date, admitted, refused })));
  assertEquals((await month.json()).length, 30);
});

for (const roundTrip of [0, 20]) {
  Deno.test(`getAccount() and getUsage() count used permits, not leased ones, ${roundTrip} ms from the KV`, async () => {
    await using service = await RecordingService.open();
    const { time } = service;
    const { account: { id }, apiKey: key } = await service.createAccount({ minute: 1_000, day: 2_000 });
    service.disturbance = {
      read: () => pause(roundTrip),
      commit: async ({ apply }) => {
        await pause(roundTrip / 2);
        const result = await apply();
        await pause(roundTrip / 2);
        return result;
      },
    };
    let leased = 0;

    for (let round = 0; round < 150; round++) {
      await time.until(call(service, key), 1_000);
      await time.advance(round % 3);
      const account = await time.until(service.fetch("GET /v1/account", { key }), 1_000);
      const usage = await time.until(service.fetch("GET /v1/account/usage?days=1", { key }), 1_000);

      const { usage: { minute, day } } = await account.json();
      const [today] = await usage.json();
      const used = 2_000 - Number(dayLeft(account));
      assertEquals([minute.used, day.used], [used, used]);
      assertEquals(today.admitted, 2_000 - Number(dayLeft(usage)));
      leased += (await time.until(service.accounts.find(id), 1_000))?.usage.leased ?? 0;
    }

    assert(leased > 0);
  });
}

/** The remaining requests of the day, from the headers of a response. */
function dayLeft({ headers }: Response): string | undefined {
  return /"day";r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1];
}

Deno.test("rotateKey() returns a new key, and ends the previous one after graceSeconds, or all at once if that is 0", async () => {
  await using service = await Harness.open();
  let { apiKey: key } = await service.createAccount();
  for (
    const [seconds, request] of [
      [60, {}],
      [60, { headers: { ...JSON_TYPE, "content-length": "0" } }],
      [60, { json: {} }],
      [3, { json: { graceSeconds: 3 } }],
    ] as const
  ) {
    const response = await service.fetch("POST /v1/account/key", { key, ...request });

    assertEquals([response.status, response.headers.get("cache-control")], [201, "no-store"]);
    const { apiKey, previousKeyExpiresAt } = await response.json();
    assertMatch(apiKey, /^as_test_\w{38}$/);
    assertEquals(previousKeyExpiresAt, new Date(service.now + seconds * 1_000).toISOString());
    service.now += seconds * 1_000 - 1;
    assertEquals(await statusesOf(service, [key, apiKey]), [200, 200]);
    service.now += 1;
    assertEquals(await statusesOf(service, [key, apiKey]), [401, 200]);
    key = apiKey;
  }
  const rotate = async (key: string, json: object) =>
    await (await service.fetch("POST /v1/account/key", { key, json })).json();

  const second = await rotate(key, {});
  const third = await rotate(second.apiKey, { graceSeconds: 0 });

  assertEquals(third.previousKeyExpiresAt, null);
  assertEquals(await statusesOf(service, [key, second.apiKey, third.apiKey]), [401, 401, 200]);
});

/** The statuses of requests with these keys. */
function statusesOf(service: Harness, keys: readonly string[]): Promise<number[]> {
  return Promise.all(keys.map(async (key) => (await call(service, key)).status));
}

Deno.test("rotateKey() rejects an Idempotency-Key, and does not change the key", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  const refused = await service.fetch("POST /v1/account/key", {
    key,
    headers: { "idempotency-key": "once" },
  });

  await assertError(refused, 400, "invalid_request", /Idempotency-Key/);
  assertEquals((await call(service, key)).status, 200);
});

Deno.test("rotateKey() replaces the key of the request, so a client can retry after a lost response", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const rotate = (graceSeconds: number) =>
    service.fetch("POST /v1/account/key", { key, json: { graceSeconds } }).then((response) =>
      response.json()
    );

  const { apiKey: lost } = await rotate(60);
  service.now += 30_000;
  const { apiKey: got, previousKeyExpiresAt } = await rotate(60);

  assertEquals(previousKeyExpiresAt, "2027-01-15T12:01:30.000Z");
  const keys = [key, lost, got];
  assertEquals(await statusesOf(service, keys), [200, 401, 200]);
  await rotate(0);
  assertEquals(await statusesOf(service, keys), [401, 401, 401]);
});

Deno.test("rotateKey() returns one new key to simultaneous requests without a grace period", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { apiKey: key } = await service.createAccount();

  const sent = [service, other, service, other].map((process) =>
    process.fetch("POST /v1/account/key", { key, json: { graceSeconds: 0 } })
  );
  const responses = await Promise.all(sent);

  assertEquals(responses.map(({ status }) => status).sort(), [201, 401, 401, 401]);
  const { apiKey } = await responses.find(({ status }) => status === 201)?.json();
  assertEquals((await call(other, apiKey)).status, 200);
});

Deno.test("closeAccount() closes the account, whose key is then invalid", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount();

  const statuses = [];
  for (let count = 0; count < 2; count++) {
    statuses.push((await call(service, key, "DELETE /v1/account")).status);
  }

  assertEquals(statuses, [204, 401]);
  assertEquals((await service.accounts.find(id))?.holder.closedAt, NOON);
});

Deno.test("service serves openapi.json, security.txt and robots.txt, and a 404 links to the document", async () => {
  const contact = "mailto:security@things.example";
  await using service = await Harness.open({
    securityContact: contact,
    publicUrl: "https://things.example/workshop",
  });
  await using silent = await Harness.open();

  const missing = await service.fetch("GET /v1/nowhere");
  const document = await (await service.fetch("GET /v1/openapi.json")).json();
  const security = await service.fetch("GET /.well-known/security.txt");
  const robots = await service.fetch("GET /robots.txt");

  const link = '<https://things.example/workshop/v1/openapi.json>; rel="service-desc"';
  assertEquals(missing.headers.get("link"), link);
  assertMatch(document.openapi, /^3\./);
  assertEquals(document.servers[0].url.startsWith("https://things.example/workshop"), true);
  assertEquals(await security.text(), `Contact: ${contact}\nExpires: 2028-01-15T12:00:00.000Z\n`);
  assertMatch(await robots.text(), /^Disallow: \/v1\/$/m);
  await assertError(await silent.fetch("GET /.well-known/security.txt"), 404, "not_found");
});
