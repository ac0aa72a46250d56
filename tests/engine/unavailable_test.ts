import { ACCESS } from "../../src/resource/access.ts";
import { assert, assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { fail, hang } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { ALL, SAMPLES } from "../support/operations.ts";
import { NOON } from "../support/time.ts";

const WITH_KEY = SAMPLES.filter(({ operation }) => operation.access === ACCESS.key);
const NOWHERE = "GET /v1/nothing";

for (
  const [what, trouble, logged, limits] of [
    ["hangs", (ended: Promise<void>) => ended.then(fail), "DeadlineExceeded", [
      "5",
      "4",
      NOON + 12 * 3_600_000,
    ]],
    // What is known of the account is forgotten, so these are the limits of the address.
    ["fails", fail, "StoreUnavailable (TypeError)", ["60", "60", NOON + 60_000]],
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

    const responses = Promise.all(targets.map((target) => service.fetch(target, { key, headers })));

    for (const response of await service.time.until(responses, 10_000)) {
      const { headers } = response;
      const shown = ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
      assertEquals(shown, [limits[0], limits[1], `${limits[2] / 1_000}`]);
      assertEquals([headers.get("retry-after"), headers.get("x-request-id")], ["5", "r1"]);
      await assertError(
        response,
        503,
        "store_unavailable",
        /^The store does not respond\. Try again shortly\.$/,
      );
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
