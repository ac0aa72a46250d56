import { ACCESS, needsToken } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import type { DeclaredOperation } from "../../src/web/operation.ts";
import { call, callAtOnce, getBanned, type HarnessRequest } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, SAMPLES } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { NOON } from "../support/time.ts";

const RESET = `${NOON / 1_000 + 60}`;

/** How a request is charged: to the account of its key or else the address, only to the address, or not at all. */
type Access = DeclaredOperation["access"];

/** A request, its status with a credential and without, and how it is charged. */
type Case = readonly [
  target: string,
  request: HarnessRequest,
  withKey: number,
  without: number,
  access: Access,
];

const CASES: readonly Case[] = [
  ...SAMPLES.map(({ operation: { access }, target, request, status }): Case => {
    return [target, request, status, access.hasCredential ? 401 : status, access];
  }),
  ["HEAD /v1/things", {}, 200, 401, ACCESS.key],
  ["GET /v1/things", { headers: { "if-none-match": "*" } }, 304, 401, ACCESS.key],
  ["GET /v1/things?limit=0", {}, 400, 401, ACCESS.key],
  ["GET /v1/things/999", {}, 404, 401, ACCESS.key],
  ["POST /v1/things", { json: {} }, 400, 401, ACCESS.key],
  ["POST /v1/things", { body: "x".repeat(70_000), headers: JSON_TYPE }, 413, 401, ACCESS.key],
  ["PATCH /v1/things/1", { json: {}, headers: { "if-match": '"x"' } }, 412, 401, ACCESS.key],
  ["GET /v1/nowhere", {}, 404, 404, ACCESS.key],
  ["GET /v1", {}, 404, 404, ACCESS.key],
  ["GET /v1/", {}, 404, 404, ACCESS.key],
  ["GET /v1/%zz", {}, 404, 404, ACCESS.key],
  ["PUT /v1/things", {}, 405, 405, ACCESS.key],
  ["PROPFIND /v1/account", {}, 405, 405, ACCESS.key],
  ["GET /v1/accounts", {}, 405, 405, ACCESS.key],
  ["POST /v1/accounts", { json: {} }, 400, 400, ACCESS.address],
  ["OPTIONS /v1/things", {}, 204, 204, ACCESS.public],
  ["OPTIONS /v1/accounts", {}, 204, 204, ACCESS.public],
  ["OPTIONS /v1/nowhere", {}, 404, 404, ACCESS.public],
  ["GET /nowhere", {}, 404, 404, ACCESS.public],
  ["GET /v10", {}, 404, 404, ACCESS.public],
  ["PUT /health", {}, 405, 405, ACCESS.public],
];

/** Asserts that a response describes these limits, or none if its path has none. */
function assertLimits(target: string, { headers, status }: Response, limit: number, remaining: number): void {
  // After a sign-up, the headers describe another limit.
  if (target === "POST /v1/accounts" && status === 201) return;
  const isLimited = / \/v1(\/|$)/.test(target);
  const values = ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
  assertEquals(values, isLimited ? [`${limit}`, `${remaining}`, RESET] : [null, null, null]);
  assertEquals(headers.has("ratelimit"), isLimited);
}

/** Remaining requests of the address, according to another request without a key, which counts. */
async function leftOfAddress(service: Harness): Promise<number> {
  return (await call(service)).remaining;
}

for (const [target, request, withKey, without, access] of CASES) {
  const payer = access === ACCESS.key || access === ACCESS.address ? access.name : "nobody";
  Deno.test(`service charges ${target} (${withKey}) to ${payer}, and describes its limits`, async () => {
    await using service = await Harness.open(ALL);
    const { account: { id }, apiKey: key } = await service.createAccount("business");
    await service.fetch("POST /v1/things", { key, json: HAMMER });
    await addKnownAccounts(service);
    const credential = needsToken(access) ? credentialFor({ access }, key) : { key };

    const response = await service.fetch(target, { ...request, ...credential });
    await response.text(); // A command ends with its response.

    assertEquals(response.status, withKey);
    const [limit, left] = payer === "address" ? [60, 59] : [1_000, payer === "key" ? 998 : 999];
    assertLimits(target, response, limit, left);
    await service.app.settle();
    const usage = await service.accounts.usage(id);
    assertEquals([usage.used, usage.usedToday], payer === "key" ? [2, 2] : [1, 1]);
    assertEquals(await leftOfAddress(service), payer === "address" ? 58 : 59);
  });

  Deno.test(`service charges ${target} (${without}) without credentials, and describes its limits`, async () => {
    await using service = await Harness.open(ALL);

    const response = await service.fetch(target, request);
    await response.body?.cancel();

    assertEquals(response.status, without);
    const isFree = access === ACCESS.public;
    assertLimits(target, response, 60, isFree ? 60 : 59);
    assertEquals(await leftOfAddress(service), isFree ? 59 : 58);
  });

  if (access !== ACCESS.public || withKey === 204) continue;
  Deno.test(`service serves ${target} to a spent address`, async () => {
    await using service = await Harness.open(ALL);
    await callAtOnce(60, [service]);

    const response = await service.fetch(target, { key: "nonsense" });
    await response.text();

    assertEquals(response.status, withKey);
  });
}

Deno.test("service refuses unknown paths and methods with an exhausted key like any other request", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount({ minute: 1, day: 10 });

  const targets = ["GET /v1/things", "GET /v1/nowhere", "PUT /v1/things"];
  const codes = [];
  for (const target of targets) codes.push((await call(service, apiKey, target)).code);

  assertEquals(codes, ["", "rate_limit_minute", "rate_limit_minute"]);
});

Deno.test("service shows an uncharged request the limits of its account if that is in memory, else of its address", async () => {
  await using service = await Harness.open();
  const { account, apiKey: key } = await service.createAccount({ minute: 2, day: 10 });
  const shown = async (apiKey?: string) => {
    const { limit, remaining } = await call(service, apiKey, "OPTIONS /v1/things");
    return [limit, remaining];
  };

  assertEquals(await shown(key), [60, 60]);
  assertEquals((await call(service, key)).remaining, 1);
  assertEquals([await shown(key), await shown(), await shown("nonsense")], [[2, 1], [60, 60], [60, 60]]);
  for (const status of [200, 429]) assertEquals((await call(service, key)).status, status);
  assertEquals(await shown(key), [2, 0]);
  service.now += 60_000;
  assertEquals(await shown(key), [2, 2]);
  await service.accounts.suspend(account.id, service.now);
  assertEquals((await call(service, key)).status, 403);
  assertEquals(await shown(key), [60, 59]);
});

Deno.test("service shows an uncharged request when the ban of its account ends", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount({ minute: 2, day: 10 });
  await getBanned(service, key, 2);
  const refused = await call(service, key);

  const { remaining, reset } = await call(service, key, "OPTIONS /v1/things");

  assertEquals([refused.code, remaining, reset], ["key_banned", 0, refused.reset]);
});

Deno.test("service stores nothing for a refused request", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount({ minute: 1, day: 10 });
  await call(service, key);

  const headers = { "idempotency-key": "1" };
  const response = await service.fetch("POST /v1/things", { key, json: HAMMER, headers });
  await response.body?.cancel();

  assertEquals(response.status, 429);
  for (const table of ["items", "items_by", "ids", "idempotency"]) {
    assertEquals(await Array.fromAsync(service.kv.list({ prefix: [table] })), []);
  }
});
