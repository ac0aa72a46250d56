import { assertEquals } from "@std/assert";
import { pause } from "../../../src/base/time.ts";
import { call } from "../../support/client.ts";
import { carryOut, FakeKv } from "../../support/fake_kv.ts";
import { RecordingService } from "../../support/harness.ts";
import { VirtualTime } from "../../support/time.ts";
import { testService } from "../../model/model.ts";
import { onServer } from "./server.ts";
import { KEYS } from "../../support/things.ts";

testService("a server", onServer);

const TRIP = 100;
const LIST = "GET /v1/things?limit=1";
const ADD = "POST /v1/things";
const HAMMER = { json: { name: "Hammer", weight: 1 } };

/** A service in virtual time, with a round trip of 100 ms to its KV. */
class FarService extends RecordingService {
  constructor(time: VirtualTime = new VirtualTime(), fake: FakeKv = new FakeKv()) {
    super(time, fake, { backend: onServer });
    this.disturbance = {
      read: () => pause(TRIP),
      commit: async (commit) => {
        await pause(TRIP);
        return await carryOut(commit);
      },
    };
  }

  /** Creates an account, and returns its key. */
  async createKey(plan: "free" | "business" = "business"): Promise<string> {
    return (await this.time.until(this.createAccount(plan), 10_000)).apiKey;
  }

  /** The status of a request, and the number of its round trips to KV. */
  async trips(key: string, target: string, request = {}): Promise<string> {
    const started = this.time.now;
    const { status } = await this.time.until(call(this, key, target, request), 10_000);
    // A round waits up to a millisecond for further requests.
    return `${status} after ${Math.floor((this.time.now - started) / TRIP)}`;
  }

  /** Sends a request twice, at the same time. */
  async twice(key: string, target: string, request = {}): Promise<void> {
    await this.time.until(Promise.all([1, 2].map(() => call(this, key, target, request))), 10_000);
  }

  /** Creates an account, opens lanes, takes IDs, and caches the key and the page. */
  async warmUp(key?: string): Promise<string> {
    key ??= await this.createKey();
    for (let count = 0; count < 4; count++) {
      await this.twice(key, ADD, HAMMER);
      await this.time.until(call(this, key, LIST), 10_000);
    }
    await this.time.advance(5_000);
    return key;
  }

  /** Sends requests until there is a lease. */
  async lease(key: string): Promise<void> {
    for (let count = 0; count < 6; count++) await this.twice(key, LIST);
  }
}

Deno.test("service responds to a read after one round trip, and to a write after two, with or without a lease", async () => {
  await using service = new FarService();
  const key = await service.warmUp();

  for (const lease of [() => {}, () => service.lease(key)]) {
    await lease();
    assertEquals(await service.trips(key, LIST), "200 after 1");
    await service.time.advance(5_000);
    await lease();
    assertEquals(await service.trips(key, ADD, HAMMER), "201 after 2");
  }
});

Deno.test("service creates an item in two round trips even with an Idempotency-Key, and replays in two after one in three", async () => {
  await using service = new FarService();
  const key = await service.warmUp();
  const create = (name: string) =>
    service.trips(key, ADD, { ...HAMMER, headers: { "idempotency-key": name } });

  assertEquals(await create("one"), "201 after 2");
  assertEquals(await create("two"), "201 after 2");
  assertEquals(await create("one"), "201 after 3");
  assertEquals(await create("one"), "201 after 2");
});

Deno.test("service needs three round trips for a key's first request, one for an unknown key, and one more after another account changed", async () => {
  await using service = new FarService();
  await using other = service.beside();
  const key = await service.warmUp();
  const { account, apiKey } = await service.time.until(service.createAccount(), 10_000);

  assertEquals(await service.trips(apiKey, "GET /v1/nowhere"), "404 after 3");
  assertEquals(await service.trips(KEYS.create("staging"), LIST), "401 after 1");
  await service.lease(key);
  for (const [target, request, trips] of [[LIST, {}, "200 after 2"], [ADD, HAMMER, "201 after 3"]] as const) {
    await other.accounts.rotate(account.id, 0, service.now);
    assertEquals(await service.trips(key, target, request), trips);
  }
});
