import { assertEquals } from "@std/assert";
import type { ErrorRecord, Log } from "../../src/app/log.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { type Sweep, sweepAll, Sweeper } from "../../src/app/sweeper.ts";
import { Harness } from "../support/harness.ts";
import { NOON, VirtualTime } from "../support/time.ts";

function logTo(errors: ErrorRecord[]): Log {
  return {
    error: (record) => errors.push(record),
    operator() {},
    event() {},
    flushed: () => Promise.resolve(),
  };
}

Deno.test("sweepAll() repeats each sweep to its end, at most 1,000 times, and continues after a failure", async () => {
  using time = new VirtualTime();
  const steps: unknown[] = [];
  const errors: ErrorRecord[] = [];
  const sweeps: Sweep[] = [
    (now) => Promise.resolve(steps.push(["one", now]) < 3),
    () => Promise.reject(new TypeError("database is on fire")),
    () => Promise.resolve(steps.push("endless") > 0),
  ];

  await time.until(sweepAll(sweeps, NOON, logTo(errors)), 10_000);

  assertEquals(steps, [...new Array(3).fill(["one", NOON]), ...new Array(1_000).fill("endless")]);
  assertEquals(errors.map(({ at: _, ...record }) => record), [
    { time: "2027-01-15T12:00:00.000Z", id: "", route: "sweep", error: "TypeError" },
  ]);
});

Deno.test("sweepAll() pauses after each step for three times its duration, at most 500 ms", async () => {
  using time = new VirtualTime();
  const begun: number[] = [];
  const lengths = [10, 100, 1_000, 1];
  const sweep = async () => {
    const length = lengths[begun.push(time.now) - 1];
    await new Promise((resolve) => setTimeout(resolve, length));
    return begun.length < lengths.length;
  };

  await time.until(sweepAll([sweep], NOON, logTo([])), 10_000);

  assertEquals(begun, [0, 40, 440, 1_940]);
  assertEquals(time.now, 1_941);
});

Deno.test("createService() sweeps expired rows of every kind", async () => {
  await using service = await Harness.open();
  const expired = [
    ["commits", "a process that was killed", 1],
    ["idempotency_by_expiry", 1, "acct_a", "createThing", "once"],
    ["idempotency_counts", 1, "acct_a"],
    ["sign_ups", 1, "acct_a"],
    ["sign_ups_by_day", 1],
    ["sign_ups_by_hour", 1, "192.0.2.1"],
    ["usage_days", 1, "acct_a"],
  ];
  for (const key of expired) await service.kv.set(key, encodeJson({ commit: 1, at: 1 }));
  const errors: ErrorRecord[] = [];

  await sweepAll(service.app.sweeps, NOON, logTo(errors));

  const left = await Promise.all(expired.map((key) => service.kv.get(key)));
  assertEquals(left.filter(({ versionstamp }) => versionstamp !== null), []);
  assertEquals(errors, []);
});

Deno.test("Sweeper sweeps once a minute by its clock, on its timer or after a request", async () => {
  using time = new VirtualTime();
  const swept: number[] = [];
  const sweep = async (now: number) => {
    swept.push(now - NOON);
    if (swept.length === 1) throw new TypeError("database is on fire");
    await new Promise<void>((resolve) => setTimeout(resolve, 5_000));
    return false;
  };
  const sweeper = new Sweeper([sweep], () => NOON + time.now, logTo([]));

  await time.advance(59_999);
  sweeper.sweepIfDue();
  assertEquals(swept, []);
  await time.advance(1_001);
  assertEquals(swept, [61_000]);
  await time.advance(61_000);
  assertEquals(swept, [61_000, 122_000]);
  await time.advance(60_000);
  sweeper.sweepIfDue();
  sweeper.sweepIfDue();
  assertEquals(swept, [61_000, 122_000, 182_000]);
  await time.advance(5_000);
  await sweeper.stop();
  sweeper.sweepIfDue();
  await time.advance(600_000);
  assertEquals(swept.length, 3);
});

Deno.test("Sweeper sweeps even after its clock was set back by an hour", async () => {
  using _ = new VirtualTime();
  let now = NOON;
  const swept: number[] = [];
  const sweep = (now: number) => Promise.resolve(swept.push(now - NOON) < 0);
  const sweeper = new Sweeper([sweep], () => now, logTo([]));

  now -= 3_600_000;
  sweeper.sweepIfDue();
  await sweeper.stop();

  assertEquals(swept, [-3_600_000]);
});

Deno.test("Sweeper.stop() waits for the current step, and starts no other", async () => {
  using time = new VirtualTime();
  const step = Promise.withResolvers<boolean>();
  const taken: string[] = [];
  const sweeps: Sweep[] = [
    () => (taken.push("first"), step.promise),
    () => Promise.resolve(taken.push("second") < 0),
  ];
  const sweeper = new Sweeper(sweeps, () => NOON + time.now, logTo([]));
  await time.advance(61_000);

  let isStopped = false;
  const stopped = sweeper.stop().then(() => isStopped = true);
  await time.advance(600_000);
  assertEquals([taken, isStopped], [["first"], false]);
  step.resolve(true);
  await time.until(stopped, 0);
  await time.advance(600_000);

  assertEquals(taken, ["first"]);
});
