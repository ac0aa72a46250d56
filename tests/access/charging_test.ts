import { assertEquals } from "@std/assert";
import { Harness, type HarnessRequest, NOON } from "../harness.ts";

const PET = { name: "Rex", categoryId: 1 };

interface Case {
  readonly target: string;
  readonly request?: HarnessRequest;
  /** Status with a valid key. */
  readonly status: number;
  /** Status without a key; the same where it is not given. */
  readonly anonymous?: number;
  readonly charged: boolean;
}

const cases: readonly Case[] = [
  { target: "GET /v1/pets", status: 200, anonymous: 401, charged: true },
  { target: "HEAD /v1/pets", status: 200, anonymous: 401, charged: true },
  { target: "GET /v1/pets?limit=0", status: 400, anonymous: 401, charged: true },
  { target: "GET /v1/pets/1", status: 200, anonymous: 401, charged: true },
  { target: "GET /v1/pets/999", status: 404, anonymous: 401, charged: true },
  { target: "GET /v1/pets/abc", status: 404, anonymous: 401, charged: true },
  { target: "POST /v1/pets", request: { json: PET }, status: 201, anonymous: 401, charged: true },
  { target: "POST /v1/pets", request: { json: {} }, status: 400, anonymous: 401, charged: true },
  {
    target: "POST /v1/pets",
    request: { body: "x".repeat(70_000) },
    status: 400,
    anonymous: 401,
    charged: true,
  },
  {
    target: "POST /v1/pets",
    request: { body: "x".repeat(70_000), headers: { "content-type": "application/json" } },
    status: 413,
    anonymous: 401,
    charged: true,
  },
  {
    target: "POST /v1/messages",
    request: { json: { message: "hi" } },
    status: 202,
    anonymous: 401,
    charged: true,
  },
  { target: "GET /v1/nowhere", status: 404, charged: true },
  { target: "GET /v1", status: 404, charged: true },
  { target: "GET /v1/", status: 404, charged: true },
  { target: "GET /v1/%zz", status: 404, charged: true },
  { target: "PUT /v1/pets", status: 405, charged: true },
  { target: "DELETE /v1/pets/1", status: 405, charged: true },
  { target: "GET /v1/messages", status: 405, charged: true },
  { target: "PROPFIND /v1/pets", status: 405, charged: true },
  { target: "OPTIONS /v1/pets", status: 204, charged: false },
  { target: "OPTIONS /v1/nowhere", status: 404, charged: false },
];

const LIMIT_HEADERS = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

function limitHeaders({ headers }: Response): (string | null)[] {
  return LIMIT_HEADERS.map((name) => headers.get(name));
}

const RESET = `${NOON / 1_000 + 60}`;

Deno.test("createApp() charges a request to its key, and says so on every response", async (t) => {
  for (const { target, request, status, charged } of cases) {
    await t.step(`${target} ${status}`, async () => {
      using service = await Harness.open();
      const { key: { id }, secret: key } = await service.issueKey("business");
      await service.fetch("POST /v1/pets", { key, json: PET });

      const response = await service.fetch(target, { ...request, key });
      await response.body?.cancel();

      assertEquals(response.status, status);
      const expected = charged ? ["1000", "998", RESET] : ["60", "60", RESET];
      assertEquals(limitHeaders(response), expected);
      assertEquals((await service.keys.find(id))?.usage.minuteUsed, charged ? 2 : 1);
    });
  }
});

Deno.test("createApp() charges a request without a key to its address, and says so on every response", async (t) => {
  for (const { target, request, status, anonymous = status, charged } of cases) {
    await t.step(`${target} ${anonymous}`, async () => {
      using service = await Harness.open();

      const response = await service.fetch(target, request);
      await response.body?.cancel();

      assertEquals(response.status, anonymous);
      assertEquals(limitHeaders(response), ["60", charged ? "59" : "60", RESET]);
      const next = await service.fetch("GET /v1/pets");
      await next.body?.cancel();
      assertEquals(limitHeaders(next), ["60", charged ? "58" : "59", RESET]);
    });
  }
});

Deno.test("createApp() charges no request outside the base path, and says nothing of limits there", async (t) => {
  for (
    const target of [
      "GET /health",
      "GET /ready",
      "GET /docs/deprecations",
      "GET /nowhere",
      "GET /v10",
      "PUT /health",
    ]
  ) {
    await t.step(target, async () => {
      using service = await Harness.open();
      const { key: { id }, secret: key } = await service.issueKey("business");

      for (const request of [{}, { key }]) {
        const response = await service.fetch(target, request);
        await response.body?.cancel();
        assertEquals(limitHeaders(response), [null, null, null]);
        assertEquals(response.headers.has("ratelimit"), false);
      }

      assertEquals((await service.keys.find(id))?.usage.minuteUsed, 0);
      assertEquals((await service.fetch("GET /v1/pets")).headers.get("x-ratelimit-remaining"), "59");
    });
  }
});

Deno.test("createApp() refuses misses and wrong methods of an exhausted key like any request", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey({ minute: 1, day: 10 });
  await service.fetch("GET /v1/pets", { key });

  for (
    const [target, code] of [["GET /v1/nowhere", "rate_limit_minute"], [
      "PUT /v1/pets",
      "key_banned",
    ]] as const
  ) {
    const response = await service.fetch(target, { key });

    assertEquals(response.status, 429);
    assertEquals((await response.json()).code, code);
  }
});

Deno.test("createApp() stores nothing of a request that is refused", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey({ minute: 1, day: 10 });
  await service.fetch("GET /v1/pets", { key });

  const response = await service.fetch("POST /v1/pets", {
    key,
    json: PET,
    headers: { "idempotency-key": "1" },
  });

  assertEquals(response.status, 429);
  for (const name of ["pets", "catalogue", "idempotency"]) {
    assertEquals((await Array.fromAsync(service.kv.list({ prefix: [name] }))).length, 0);
  }
});

Deno.test("createApp() logs the id of the key that was charged, and no other", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: key } = await service.issueKey();
  const revoked = await service.issueKey();
  await service.keys.revoke(revoked.key.id, service.now);

  for (const request of [{ key }, { key: revoked.secret }, {}]) await service.fetch("GET /v1/pets", request);

  assertEquals(service.accesses.map(({ keyId, status }) => [keyId, status]), [[id, 200], ["", 401], [
    "",
    401,
  ]]);
});
