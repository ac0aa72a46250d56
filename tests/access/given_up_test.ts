import { assertEquals } from "@std/assert";
import { createApiKey } from "../../src/accounts/api_key.ts";
import { pause } from "../../src/kv/retried.ts";
import type { Commit } from "../kv/disturbed_kv.ts";
import { FakeKv } from "../kv/fake_kv.ts";
import { credentialFor, SAMPLES } from "../operations.ts";
import { VirtualTime } from "../virtual_time.ts";
import { NotedService } from "./noted_service.ts";

const PET = { name: "Rex", categoryId: 1 };

for (const { operation, target, request, changes } of SAMPLES) {
  // An operator's command goes on after its answer has begun.
  if (changes.length === 0 || operation.access === "operator") continue;
  Deno.test(`createApp() begins no change for ${target} once it has said 503`, async () => {
    using time = new VirtualTime();
    await using service = new NotedService(time, new FakeKv());
    const { apiKey } = await service.createAccount();
    await time.until(service.fetch("POST /v1/pets", { key: apiKey, json: PET }), 1_000);
    await time.advance(3_000);
    // Each in time by itself, but not all of them together.
    service.disturbance = { read: () => pause(3_000) };
    service.forget();
    const headers = operation.errors.includes("idempotency_key_reused") ? { "idempotency-key": "1" } : {};

    const sent = service.fetch(target, { ...credentialFor(operation, apiKey), ...request, headers });
    const { status } = await time.until(sent, 6_000);
    const before = service.commits.length;
    await time.advance(20_000);

    assertEquals(status, 503);
    assertEquals(service.commits.length - before, 0);
  });
}

Deno.test("createApp() logs nothing of a key that turns out to be wrong once it has said 503", async () => {
  using time = new VirtualTime();
  let isAnswered = false;
  const clientAddress = () => {
    if (isAnswered) throw new TypeError("Request closed"); // As Deno does.
    return "192.0.2.1";
  };
  await using service = new NotedService(time, new FakeKv(), { clientAddress });
  service.disturbance = { read: () => pause(3_000) };

  const asked = service.fetch("GET /v1/pets", { key: createApiKey("staging") });
  const { status } = await time.until(asked, 6_000);
  isAnswered = true;
  await time.advance(20_000);

  assertEquals([status, service.errors], [503, []]);
});

Deno.test("createApp() does not try again to create what was refused once it has said 503", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time, new FakeKv());
  const { apiKey: key } = await service.createAccount();
  await time.until(service.fetch("POST /v1/pets", { key, json: PET }), 1_000);
  await time.advance(3_000);
  const creations = () => service.commits.filter(isCreation).length;
  service.forget();
  const looked = time.now + 2_000;
  service.disturbance = {
    read: () => time.now < looked ? pause(2_000) : undefined,
    async commit(commit) {
      if (!isCreation(commit)) return await commit.apply();
      await pause(3_500);
      return { ok: false };
    },
  };

  const response = await time.until(service.fetch("POST /v1/pets", { key, json: PET }), 6_000);
  const before = creations();
  await time.advance(20_000);

  assertEquals([response.status, before, creations()], [503, 1, 1]);
});

function isCreation({ keys }: Commit): boolean {
  return keys.some(([table]) => table === "pets");
}
