import { assert, assertEquals } from "@std/assert";
import { pause } from "../../../src/base/time.ts";
import { call, callAtOnce } from "../../support/client.ts";
import { carryOut, FakeKv } from "../../support/fake_kv.ts";
import { RecordingService } from "../../support/harness.ts";
import { VirtualTime } from "../../support/time.ts";
import { testService } from "../../model/model.ts";
import { onServer } from "./server.ts";
import type { Issued } from "../../../src/accounts/account.ts";
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

  /** Another process, as far from the same KV. */
  farBeside(): FarService {
    return Object.assign(new FarService(this.time, this.fake), { isFirst: false });
  }

  /** The status of a request, and the number of its round trips to KV. */
  async trips(key: string, target: string, request = {}): Promise<string> {
    const started = this.time.now;
    const { status } = await this.time.until(call(this, key, target, request), 10_000);
    // A round waits up to a millisecond for further requests.
    return `${status} after ${Math.floor((this.time.now - started) / TRIP)}`;
  }

  /** Opens lanes, takes IDs, and caches the key and the page. */
  async warmUp(key: string): Promise<void> {
    for (let count = 0; count < 4; count++) {
      await this.time.until(
        Promise.all([call(this, key, ADD, HAMMER), call(this, key, ADD, HAMMER)]),
        10_000,
      );
      await this.time.until(call(this, key, LIST), 10_000);
    }
    await this.time.advance(5_000);
  }

  /** Sends requests until there is a lease. */
  async lease(key: string): Promise<void> {
    for (let count = 0; count < 6; count++) {
      await this.time.until(Promise.all([call(this, key, LIST), call(this, key, LIST)]), 10_000);
    }
  }
}

async function create(service: FarService, plan: "free" | "business" = "business"): Promise<Issued> {
  return await service.time.until(service.createAccount(plan), 10_000);
}

Deno.test("service responds to a read after one round trip, and to a write after two, with or without a lease", async () => {
  await using service = new FarService();
  const { apiKey } = await create(service);
  await service.warmUp(apiKey);

  for (const lease of [() => {}, () => service.lease(apiKey)]) {
    await lease();
    assertEquals(await service.trips(apiKey, LIST), "200 after 1");
    await service.time.advance(5_000);
    await lease();
    assertEquals(await service.trips(apiKey, ADD, HAMMER), "201 after 2");
  }
});

Deno.test("service needs three round trips for a key's first request, one for an unknown key, and one more after another account changed", async () => {
  await using service = new FarService();
  await using other = service.beside();
  const [{ apiKey }, first] = [await create(service), await create(service)];
  await service.warmUp(apiKey);

  assertEquals(await service.trips(first.apiKey, "GET /v1/nowhere"), "404 after 3");
  assertEquals(await service.trips(KEYS.create("staging"), LIST), "401 after 1");
  await service.lease(apiKey);
  for (const [target, json, trips] of [[LIST, {}, "200 after 2"], [ADD, HAMMER, "201 after 3"]] as const) {
    await other.accounts.rotate(first.account.id, 0, service.now);
    assertEquals(await service.trips(apiKey, target, json), trips);
  }
});

Deno.test("service returns 429 from memory after one check of versions, even for a ban", async () => {
  await using service = new FarService();
  const { apiKey } = await create(service, "free");
  await service.warmUp((await create(service)).apiKey);
  const { time } = service;
  await time.until(callAtOnce(61, [service], apiKey, LIST), 10_000);
  await time.until(call(service, apiKey, LIST), 10_000);
  await time.advance(6_000);

  assertEquals(await service.trips(apiKey, LIST), "429 after 1");
  assertEquals(await service.trips(apiKey, ADD, HAMMER), "429 after 1");
  await time.until(callAtOnce(300, [service], apiKey, LIST), 10_000);
  await time.advance(1_000);
  assertEquals((await time.until(call(service, apiKey), 1_000)).code, "key_banned");
  assertEquals(await service.trips(apiKey, LIST), "429 after 1");
});

Deno.test("service responds to a key's first read within three trips after a pause, and five if others read, too", async () => {
  await using one = new FarService();
  await using two = one.farBeside();
  await using three = one.farBeside();
  const { time } = one;
  const services = [one, two, three];
  const { apiKey } = await create(one);
  for (const service of services) await service.warmUp(apiKey);
  const trips: number[] = [];
  const read = async (service: FarService) => {
    trips.push(Number((await service.trips(apiKey, LIST)).replace("200 after ", "")));
  };

  for (let round = 0; round < 6; round++) {
    await time.advance(6_000);
    for (const service of services) await read(service);
    assert(Math.max(...trips.splice(0)) <= 3);
    await time.advance(6_000);
    const reads = services.map(async (service, index) => {
      await pause(index * round * 20);
      await read(service);
    });
    await time.until(Promise.all(reads), 10_000);
    assert(Math.max(...trips.splice(0)) <= 5);
  }
});

Deno.test("service needs one more round trip if another process takes a permit at the same time", async () => {
  await using one = new FarService();
  await using other = one.farBeside();
  const { time } = one;
  const { apiKey } = await create(one);
  await one.warmUp(apiKey);
  await other.warmUp(apiKey);
  for (const service of [one, other, one]) {
    await service.trips(apiKey, LIST); // It sees that the other process uses the account, too.
    await time.advance(3_000);
  }

  const trips = [one.trips(apiKey, LIST), pause(10).then(() => other.trips(apiKey, LIST))];

  assertEquals(await time.until(Promise.all(trips), 10_000), ["200 after 2", "200 after 3"]);
});
