import { assertEquals } from "@std/assert";
import type { ErrorRecord, Log } from "../../src/http/log.ts";
import { ReplyStore } from "../../src/idempotency/reply_store.ts";
import { startSweeper, sweepAll } from "../../src/idempotency/sweeper.ts";
import { Store } from "../../src/kv/store.ts";
import { Harness } from "../harness.ts";

const DAY = 86_400_000;

Deno.test("sweepAll() removes every expired reply, in as many steps as it takes", async () => {
  using service = await Harness.open();
  await createPets(service, 12);
  service.now += DAY / 2;
  await createPets(service, 3);
  const errors: ErrorRecord[] = [];

  await sweepAll(
    new ReplyStore(new Store(service.kv, { maxChecks: 5 })),
    service.now + DAY / 2 + 1,
    logTo(errors),
  );

  assertEquals(await countReplies(service), 3);
  assertEquals(errors, []);
});

Deno.test("sweepAll() logs a failure and resolves", async () => {
  const kv = await Deno.openKv(":memory:");
  kv.close();
  const errors: ErrorRecord[] = [];

  await sweepAll(new ReplyStore(new Store(kv, { maxChecks: 5 })), Date.UTC(2027, 0, 15), logTo(errors));

  assertEquals(errors.map(({ at: _, ...record }) => record), [
    { time: "2027-01-15T00:00:00.000Z", id: "", route: "sweep", error: "StoreUnavailable (BadResource)" },
  ]);
});

Deno.test("startSweeper() sweeps by its clock once a minute until it is stopped", async () => {
  using service = await Harness.open();
  await createPets(service, 2);
  const timers = captureIntervals();
  const stop = startSweeper(new ReplyStore(service.store), () => service.now, logTo([]));
  timers.restore();

  await timers.fire();
  const early = await countReplies(service);
  service.now += DAY + 1;
  await timers.fire();

  assertEquals([early, await countReplies(service)], [2, 0]);
  assertEquals(timers.periods, [60_000]);
  stop();
});

async function createPets(service: Harness, count: number): Promise<void> {
  const { secret: key } = await service.issueKey();
  for (let number = 0; number < count; number++) {
    const headers = { "idempotency-key": `${number}` };
    await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 }, headers });
  }
}

async function countReplies({ kv }: Harness): Promise<number> {
  return (await Array.fromAsync(kv.list({ prefix: ["idempotency"] }))).length;
}

function logTo(errors: ErrorRecord[]): Log {
  return { error: (record) => errors.push(record) };
}

/** Takes hold of the intervals that are set until `restore()`. They are real, so that a leak is noticed. */
function captureIntervals() {
  const original = globalThis.setInterval;
  const callbacks: (() => unknown)[] = [];
  const periods: unknown[] = [];
  globalThis.setInterval = Object.assign((callback: () => unknown, ms?: number) => {
    callbacks.push(callback);
    periods.push(ms);
    return original(callback, ms);
  }, original);
  return {
    periods,
    fire: () => Promise.all(callbacks.map((callback) => callback())),
    restore: () => {
      globalThis.setInterval = original;
    },
  };
}
