import { assertEquals } from "@std/assert";
import { Harness, type HarnessRequest, NOON } from "../harness.ts";
import { call, callAtOnce } from "./replies.ts";

const PET = { name: "Rex", categoryId: 1 };
const JSON_TYPE = { "content-type": "application/json" };
const RESET = `${NOON / 1_000 + 60}`;

/** Who pays for a request: the account whose key it carries, else the address; always the address; or nobody. */
type Payer = "key" | "address" | "nobody";

/** A request, its status with a valid key and without, and who pays for it. */
type Case = readonly [
  target: string,
  request: HarnessRequest,
  withKey: number,
  without: number,
  payer: Payer,
];

const cases: readonly Case[] = [
  ["GET /v1/pets", {}, 200, 401, "key"],
  ["HEAD /v1/pets", {}, 200, 401, "key"],
  ["GET /v1/pets", { headers: { "if-none-match": "*" } }, 304, 401, "key"],
  ["GET /v1/pets?limit=0", {}, 400, 401, "key"],
  ["GET /v1/pets/1", {}, 200, 401, "key"],
  ["GET /v1/pets/999", {}, 404, 401, "key"],
  ["POST /v1/pets", { json: PET }, 201, 401, "key"],
  ["POST /v1/pets", { json: {} }, 400, 401, "key"],
  ["POST /v1/pets", { body: "x".repeat(70_000), headers: JSON_TYPE }, 413, 401, "key"],
  ["PATCH /v1/pets/1", { json: { status: "sold" } }, 200, 401, "key"],
  ["PATCH /v1/pets/1", { json: {}, headers: { "if-match": '"x"' } }, 412, 401, "key"],
  ["DELETE /v1/pets/1", {}, 204, 401, "key"],
  ["POST /v1/messages", { json: { message: "hi" } }, 202, 401, "key"],
  ["GET /v1/account", {}, 200, 401, "key"],
  ["HEAD /v1/account", {}, 200, 401, "key"],
  ["DELETE /v1/account", {}, 204, 401, "key"],
  ["POST /v1/account/key", { json: {} }, 201, 401, "key"],
  ["POST /v1/account/key", { json: { graceSeconds: -1 } }, 400, 401, "key"],
  ["GET /v1/account/usage", {}, 200, 401, "key"],
  ["GET /v1/nowhere", {}, 404, 404, "key"],
  ["GET /v1", {}, 404, 404, "key"],
  ["GET /v1/", {}, 404, 404, "key"],
  ["GET /v1/%zz", {}, 404, 404, "key"],
  ["PUT /v1/pets", {}, 405, 405, "key"],
  ["PROPFIND /v1/account", {}, 405, 405, "key"],
  ["GET /v1/accounts", {}, 405, 405, "key"],
  ["POST /v1/accounts", { json: {} }, 400, 400, "address"],
  ["OPTIONS /v1/pets", {}, 204, 204, "nobody"],
  ["OPTIONS /v1/accounts", {}, 204, 204, "nobody"],
  ["OPTIONS /v1/nowhere", {}, 404, 404, "nobody"],
];

function limitHeaders({ headers }: Response): (string | null)[] {
  return ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
}

/** What the next request without a key is told that its address has left; it takes one of them. */
async function leftOfAddress(service: Harness): Promise<number> {
  return (await call(service)).remaining;
}

for (const [target, request, withKey, without, payer] of cases) {
  Deno.test(`createApp() charges ${target} ${withKey} to ${payer}, and says so`, async () => {
    await using service = await Harness.open();
    const { account: { id }, apiKey: key } = await service.createAccount("business");
    await service.fetch("POST /v1/pets", { key, json: PET });

    const response = await service.fetch(target, { ...request, key });
    await response.body?.cancel();

    assertEquals(response.status, withKey);
    const paid = payer === "key" ? ["1000", "998"] : ["60", payer === "address" ? "59" : "60"];
    assertEquals(limitHeaders(response), [...paid, RESET]);
    await service.app.settle();
    const usage = await service.desk.usage(id);
    assertEquals([usage.used, usage.usedToday], payer === "key" ? [2, 2] : [1, 1]);
    assertEquals(await leftOfAddress(service), payer === "address" ? 58 : 59);
  });

  Deno.test(`createApp() charges ${target} ${without} without a key to ${payer}, and says so`, async () => {
    await using service = await Harness.open();

    const response = await service.fetch(target, request);
    await response.body?.cancel();

    assertEquals(response.status, without);
    const isFree = payer === "nobody";
    assertEquals(limitHeaders(response), ["60", isFree ? "60" : "59", RESET]);
    assertEquals(await leftOfAddress(service), isFree ? 59 : 58);
  });
}

for (
  const [target, status] of [
    ...[["GET /health", 200], ["GET /ready", 200], ["GET /docs/deprecations", 200]] as const,
    ...[["GET /nowhere", 404], ["GET /v10", 404], ["PUT /health", 405]] as const,
  ]
) {
  Deno.test(`createApp() charges nobody for ${target}, says nothing of limits, and asks for no key`, async () => {
    await using service = await Harness.open();
    const { account: { id }, apiKey } = await service.createAccount("business");

    for (const request of [{}, { key: apiKey }]) {
      const response = await service.fetch(target, request);
      await response.body?.cancel();
      assertEquals(limitHeaders(response), [null, null, null]);
      assertEquals(response.headers.has("ratelimit"), false);
    }

    assertEquals((await service.desk.usage(id)).used, 0);
    assertEquals(await leftOfAddress(service), 59);
    await callAtOnce(60, [service]);
    const response = await service.fetch(target, { key: "nonsense" });
    await response.body?.cancel();
    assertEquals(response.status, status);
  });
}

Deno.test("createApp() refuses misses and wrong methods of an exhausted key like any request", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount({ minute: 1, day: 10 });

  const targets = ["GET /v1/pets", "GET /v1/nowhere", "PUT /v1/pets"];
  const codes = [];
  for (const target of targets) codes.push((await call(service, apiKey, target)).code);

  assertEquals(codes, ["", "rate_limit_minute", "key_banned"]);
});

Deno.test("createApp() stores nothing of a request that is refused", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount({ minute: 1, day: 10 });
  await call(service, key);

  const headers = { "idempotency-key": "1" };
  const response = await service.fetch("POST /v1/pets", { key, json: PET, headers });
  await response.body?.cancel();

  assertEquals(response.status, 429);
  for (const table of ["pets", "catalogue", "ids", "idempotency"]) {
    assertEquals(await Array.fromAsync(service.kv.list({ prefix: [table] })), []);
  }
});
