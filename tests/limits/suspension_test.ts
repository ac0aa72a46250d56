import { ACCESS } from "../../src/resource/access.ts";
import { assert, assertEquals } from "@std/assert";
import { call, callAtOnce, tally } from "../support/client.ts";
import { carryOut, type Commit } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { SAMPLES } from "../support/operations.ts";
import { NOON } from "../support/time.ts";

const HOUR = 3_600_000;
const HAMMER = { name: "Hammer", weight: 1 };
const SUSPENDED = {
  code: "account_suspended",
  message: "The account is suspended. Ask the operator of the service to resume it.",
  status: 403,
};

Deno.test("service returns 403 for every operation of a suspended account, and charges the address", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.accounts.suspend(id, NOON);
  let left = 60;

  for (const { operation, target } of SAMPLES) {
    if (operation.access !== ACCESS.key) continue;
    const response = await service.fetch(target, { key });

    assertEquals(response.status, 403);
    assertEquals(response.headers.get("x-ratelimit-limit"), "60");
    assertEquals(response.headers.get("x-ratelimit-remaining"), `${--left}`);
    assertEquals(response.headers.get("www-authenticate"), null);
    assertEquals(await response.json(), SUSPENDED);
  }

  assert(left < 52);
  assertEquals(tally(await callAtOnce(60, [service], key)), {
    "403 account_suspended": left,
    "429 rate_limit_minute": 60 - left,
  });
  await service.app.settle();
  assertEquals((await service.accounts.find(id))?.usage.used, 0);
});

Deno.test("service returns 404 and 405 to a suspended account, and lets its client sign up", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.accounts.suspend(id, NOON);

  const statuses = [];
  for (const target of ["GET /v1/nowhere", "PUT /v1/things", "OPTIONS /v1/things", "GET /health"]) {
    const response = await service.fetch(target, { key });
    await response.body?.cancel();
    statuses.push(response.status);
  }
  const signUp = await call(service, key, "POST /v1/accounts", { json: { name: "New" } });

  assertEquals([...statuses, signUp.status], [404, 405, 204, 200, 201]);
});

Deno.test("service returns 403 to the previous key of a suspended account during its grace period", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: before } = await service.createAccount();
  const issued = await service.accounts.rotate(id, HOUR, NOON);
  await service.accounts.suspend(id, NOON);
  const codes = async () => [(await call(service, before)).code, (await call(service, issued?.apiKey)).code];

  assertEquals(await codes(), ["account_suspended", "account_suspended"]);
  service.now += HOUR;
  assertEquals(await codes(), ["invalid_api_key", "account_suspended"]);
});

Deno.test("service serves a resumed account with its key and its things", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount("free");
  await call(service, key, "POST /v1/things", { json: HAMMER });
  await service.accounts.suspend(id, NOON);
  await call(service, key);
  const { apiKey: other } = await service.createAccount();
  const list = await service.fetch("GET /v1/things", { key: other });
  assertEquals((await list.json()).length, 1);

  await service.accounts.suspend(id, null);

  const reply = await call(service, key, "PATCH /v1/things/1", { json: { state: "lost" } });
  assertEquals([reply.status, reply.remaining], [200, 58]);
});

Deno.test("service gives leased permits back if the account was suspended in another process", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  for (let count = 0; count < 10; count++) await call(service, apiKey);
  assert((await other.accounts.find(id))?.usage.leased);

  await other.accounts.suspend(id, NOON);
  await time.advance(3_000);

  const usage = (await other.accounts.find(id))?.usage;
  assertEquals([usage?.used, usage?.leased], [10, 0]);
});

Deno.test("service admits no request that waits for a permit while another process suspends its account", async () => {
  await using service = await RecordingService.open();
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await call(service, apiKey);
  await time.advance(5_000);
  service.disturbance = {
    commit: async (commit: Commit) => {
      service.disturbance = {};
      await other.accounts.suspend(id, NOON);
      return await carryOut(commit);
    },
  };

  const replies = callAtOnce(3, [service], apiKey);

  assertEquals(tally(await time.until(replies, 1_000)), { "403 account_suspended": 3 });
  assertEquals((await other.accounts.find(id))?.usage.used, 1);
});

Deno.test("service notices a suspension, and its end, within MAX_STALENESS_MS", async () => {
  await using service = await RecordingService.open({ maxStalenessMs: 10_000 });
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await time.until(call(service, apiKey), 1_000);
  const replies = [];

  for (const since of [NOON, null]) {
    await other.accounts.suspend(id, since);
    await time.advance(10_001);
    replies.push(await time.until(call(service, apiKey), 1_000));
  }

  assertEquals(replies.map(({ status }) => status), [403, 200]);
});
