import { assertEquals, assertLessOrEqual } from "@std/assert";
import { pardon, reset } from "../../src/limits/usage.ts";
import { pause } from "../../src/base/time.ts";
import { call, callAtOnce, getBanned, outcome } from "../support/client.ts";
import { calmNetwork, FakeKv, type Network, slowly } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

/** A KV whose reads of usage are delayed and return older rows. */
class LateKv extends FakeKv {
  /** Resolves when a read may return. */
  held: () => Promise<void> | undefined = () => undefined;

  override connect(network: Network = calmNetwork()): Deno.Kv {
    const kv = super.connect(network);
    const getMany = kv.getMany.bind(kv);
    return Object.assign(kv, {
      getMany: async (keys: Deno.KvKey[]) => {
        const rows = await getMany(keys);
        if (keys.some(([table]) => table === "usage")) await this.held();
        return rows;
      },
    });
  }
}

for (const target of ["GET /v1/things", "POST /v1/things"]) {
  Deno.test(`service admits ${target} after a ban was lifted, even if an earlier request has read the ban`, async () => {
    const kv = new LateKv();
    await using service = await RecordingService.open({}, kv);
    await using other = service.beside();
    const { time } = service;
    const { account: { id }, apiKey } = await service.createAccount("free");
    await time.until(call(service, apiKey), 1_000);
    await time.advance(3_000);
    await time.until(getBanned(other, apiKey), 5_000);
    await time.advance(3_000);
    kv.held = () => pause(100);
    const first = call(service, apiKey);
    await time.advance(150);
    kv.held = () => undefined;
    await time.until(other.accounts.changeUsage(id, (usage) => reset(pardon(usage), NOON)), 10);
    kv.held = () => pause(100);

    const request = target.startsWith("POST") ? { json: { name: "Hammer", weight: 1 } } : {};
    const second = await time.until(call(service, apiKey, target, request), 5_000);

    assertEquals(outcome(second), target.startsWith("POST") ? "201" : "200");
    await time.until(first, 5_000);
  });
}

Deno.test("service admits a request whose key expires while it waits for a permit", async () => {
  await using service = await RecordingService.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  await service.accounts.rotate(id, 60_000, NOON);
  service.now = NOON + 59_999;
  service.disturbance = { read: () => void (service.now = NOON + 60_000) };
  service.expectsErrors = true;
  service.forget();

  const { status } = await service.time.until(call(service, apiKey), 10_000);

  assertEquals([status, service.reads.length < 10], [200, true], `${service.reads.length} reads`);
});

Deno.test("Permits.settle() gives back withdrawn permits while requests wait for permits", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 40, day: 99 });
  for (let count = 0; count < 3; count++) await time.until(call(service, key), 1_000);
  const slow = [0, 1].map(() => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const headers = { "content-type": "application/json" };
    const reply = call(service, key, "POST /v1/things", { body: readable, headers });
    return { reply, sendBody: () => void new Blob(["{}"]).stream().pipeTo(writable) };
  });
  await time.advance(10);
  const rest = callAtOnce(45, [service], key);
  await time.advance(1_000);
  service.disturbance = { commit: slowly };
  slow[0]?.sendBody();
  await time.advance(50); // The used permits of the first are being written.
  slow[1]?.sendBody();
  await time.advance(1);

  await time.until(service.app.settle(), 1_000);

  assertEquals((await service.accounts.usage(id)).leased, 0);
  await time.until(Promise.all(slow.map(({ reply }) => reply)), 1_000);
  await time.until(rest, 10_000);
});

Deno.test("service uses up none of a spent address's reads for a key whose account it knows is deleted", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await call(service, apiKey);
  await time.advance(3_000);
  await service.accounts.close(id);
  await service.accounts.remove(id, () => true);
  await callAtOnce(60, [service]);
  await time.until(call(service, apiKey), 1_000);
  service.forget();

  for (let count = 0; count < 50; count++) await time.until(call(service, apiKey), 1_000);

  const accounts = service.reads.flat().filter(([table]) => table === "accounts").length;
  assertLessOrEqual(accounts, 5);
});

Deno.test("service refuses a write with a revoked key even if an older read of its account arrives late", async () => {
  const kv = new LateKv();
  await using service = await RecordingService.open({}, kv);
  await using other = service.beside();
  const { time } = service;
  const [{ account: { id }, apiKey: previous }, bystander] = [
    await service.createAccount(),
    await service.createAccount(),
  ];
  const issued = await other.accounts.rotate(id, 60_000, NOON);
  const key = issued?.apiKey ?? "";
  for (let count = 0; count < 6; count++) await time.until(call(service, key), 1_000);

  await other.accounts.rotate(bystander.account.id, 0, NOON);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  kv.held = () => promise;
  const first = call(service, previous, "POST /v1/things", { json: { name: "Hammer", weight: 1 } });
  await time.advance(10);
  kv.held = () => undefined;
  await time.until(other.accounts.close(id), 1_000);
  const second = call(service, key, "POST /v1/things", { json: { name: "Hammer", weight: 1 } });
  release();

  const replies = await time.until(Promise.all([first, second]), 10_000);

  assertEquals(outcome(replies[1]), "401 invalid_api_key");
});
