import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { type Disturbance, disturbed, fail, hang } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { ALL, SAMPLES } from "../support/operations.ts";
import { NOON } from "../support/time.ts";

const WITH_KEY = SAMPLES.filter(({ operation }) => operation.access === ACCESS.key);

/** A service on the KV of `calm`. Its KV operations hang or fail on demand. */
class RoughService extends Harness {
  readonly calm: Harness;
  override expectsErrors: boolean = true;
  disturbance: Disturbance = {};

  constructor(calm: Harness) {
    const kv = disturbed(calm.kv, {
      read: (keys) => this.disturbance.read?.(keys),
      commit: (commit) => this.disturbance.commit?.(commit) ?? commit.apply(),
    });
    super(kv, { ...ALL, deadline: 500 });
    this.calm = calm;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.disturbance = {};
    await super[Symbol.asyncDispose]();
  }
}

for (
  const [what, trouble, logged, limits] of [
    ["hangs", (ended: Promise<void>) => ended.then(fail), "DeadlineExceeded", [
      "5",
      "4",
      `${NOON / 1_000 + 12 * 3_600}`,
    ]],
    // What is known of the account is forgotten, so these are the limits of the address.
    ["fails", fail, "StoreUnavailable (TypeError)", ["60", "60", `${NOON / 1_000 + 60}`]],
  ] as const
) {
  Deno.test(`service returns 503 with limit headers, logs the error, and counts nothing if KV ${what}`, async () => {
    await using service = new RoughService(await Harness.open());
    const { account, apiKey: key } = await service.createAccount({ minute: 5, day: 5 });
    await service.fetch("GET /v1/nothing", { key });
    const ended = Promise.withResolvers<void>();
    service.disturbance = { read: () => trouble(ended.promise), commit: () => trouble(ended.promise) };
    const targets = [...WITH_KEY.map(({ target }) => target), "GET /v1/nothing", "PUT /v1/things"];
    const headers = { "x-request-id": "r1" };

    const responses = await Promise.all(targets.map((target) => service.fetch(target, { key, headers })));

    for (const response of responses) {
      const { headers } = response;
      const limit = ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
      assertEquals(limit, [...limits]);
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
    assertEquals((await service.fetch("GET /v1/nothing", { key })).headers.get("x-ratelimit-remaining"), "3");
    assertEquals((await service.calm.accounts.find(account.id))?.usage.used, 2);
  });
}

Deno.test("service returns 401 without a key and serves public paths except /ready while KV hangs", async () => {
  await using service = new RoughService(await Harness.open());
  service.disturbance = { read: hang, commit: hang };

  for (const { operation, target, status } of SAMPLES) {
    const isReadiness = operation.id === "getReadiness";
    if (operation.access === ACCESS.address) continue;
    const expected = operation.access.hasCredential ? 401 : isReadiness ? 503 : status;
    const response = await service.fetch(target);
    await response.body?.cancel();
    assertEquals([target, response.status], [target, expected]);
  }
});
