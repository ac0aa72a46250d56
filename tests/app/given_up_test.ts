import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { ERRORS } from "../../src/web/error.ts";
import { callAtOnce, tally } from "../support/client.ts";
import { carryOut, type Commit } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { credentialFor, SAMPLES } from "../support/operations.ts";
import { HAMMER, KEYS } from "../support/things.ts";

/** Every request that writes, with and without an Idempotency-Key if it accepts one. */
const CHANGES = SAMPLES.flatMap(({ operation, target, request, changes }) => {
  // An operator's command continues after its response has begun.
  if (changes.length === 0 || operation.access === ACCESS.operator) return [];
  const plain = { operation, target, what: target, request };
  if (!operation.errors.includes(ERRORS.idempotency_key_reused)) return [plain];
  const headers = { "idempotency-key": "1" };
  const once = { ...plain, what: `${target} with an Idempotency-Key`, request: { ...request, headers } };
  // A thing is added without a read that could be slow.
  return operation.id === "createThing" ? [once] : [plain, once];
});

for (const { operation, target, what, request } of CHANGES) {
  Deno.test(`service starts no write for ${what} after it has returned 503`, async () => {
    await using service = await RecordingService.open();
    const { time } = service;
    const { apiKey } = await service.createAccount();
    await time.until(service.fetch("POST /v1/things", { key: apiKey, json: HAMMER }), 1_000);
    await time.advance(3_000);
    // Each operation is in time, but not all of them together.
    service.disturbance = { read: () => pause(3_000), commit: late };
    service.forget();

    const sent = service.fetch(target, { ...credentialFor(operation, apiKey), ...request });
    const { status } = await time.until(sent, 6_000);
    const before = service.commits.filter(isChange).length;
    await time.advance(20_000);

    assertEquals(status, 503);
    assertEquals(service.commits.filter(isChange).length - before, 0);
  });
}

Deno.test("service logs nothing if a key turns out to be invalid after it has returned 503", async () => {
  let isAnswered = false;
  const clientAddress = () => {
    if (isAnswered) throw new TypeError("Request closed"); // As Deno does.
    return "192.0.2.1";
  };
  await using service = await RecordingService.open({ clientAddress, deadline: 8_000 });
  const { time } = service;
  service.disturbance = { read: () => pause(6_000) };

  const sent = service.fetch("GET /v1/things", { key: KEYS.create("staging") });
  const { status } = await time.until(sent, 6_000);
  isAnswered = true;
  await time.advance(20_000);

  assertEquals([status, service.errors], [503, []]);
});

Deno.test("service charges nothing to a key that it finds after it has returned 503", async () => {
  await using service = await RecordingService.open({ deadline: 8_000 });
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await callAtOnce(60, [service]);
  service.disturbance = { read: ([key]) => key?.[0] === "api_keys" ? pause(6_000) : undefined };

  // Five look the key up, and the others wait for them.
  const replies = await time.until(callAtOnce(9, [service], apiKey), 6_000);
  await time.advance(20_000);
  await time.until(service.app.settle(), 1_000);

  assertEquals(tally(replies), { "503 store_unavailable": 9 });
  assertEquals((await service.accounts.usage(id)).used, 0);
});

/** Tables that requests write to. */
const TABLES: readonly Deno.KvKeyPart[] = ["items", "items_by", "idempotency", "accounts", "api_keys"];

async function late(commit: Commit): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
  await pause(3_000);
  return await carryOut(commit);
}

/** Whether a commit changes more than permits. */
function isChange({ keys }: Commit): boolean {
  return keys.some(([table = ""]) => TABLES.includes(table));
}
