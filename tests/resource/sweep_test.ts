import { assertEquals, assertGreater } from "@std/assert";
import { carryOut, type Commit, onFile } from "../support/fake_kv.ts";
import type { Harness } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const DAY = 86_400_000;
const COUNTS = "idempotency_counts";

/** Adds a thing with each of these Idempotency-Keys, 1 ms apart. */
async function createAll(workshop: Workshop, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    await create(workshop, key);
    workshop.now++;
  }
}

/** Adds a thing. Returns whether the reply was replayed. */
async function create(workshop: Workshop, key: string): Promise<boolean> {
  const { headers, body } = await workshop.call("POST /v1/things", {
    json: HAMMER,
    headers: { "idempotency-key": key },
  });
  await body?.cancel();
  return headers.get("idempotency-replayed") === "true";
}

function keysUpTo(end: number): string[] {
  return Array.from({ length: end }, (_, number) => `key${number}`);
}

/** Removes some of the replies that have expired by `now`. Returns whether there may be more. */
async function sweep(service: Harness, now: number): Promise<boolean | undefined> {
  return await service.app.sweeps[0]?.(now);
}

async function countRows({ kv }: Harness): Promise<number[]> {
  const kinds = ["idempotency", "idempotency_by_expiry"];
  return await Promise.all(
    kinds.map(async (kind) => (await Array.fromAsync(kv.list({ prefix: [kind] }))).length),
  );
}

async function stepsOf(service: Harness, now: number, count: number): Promise<unknown[]> {
  const steps: unknown[] = [];
  for (let step = 0; step < count; step++) {
    steps.push([await sweep(service, now), ...await countRows(service)]);
  }
  return steps;
}

/** Opens a backend that allows few checks per commit, one of them for the schema version. */
function small(maxChecks: number, lanes: number): typeof onFile {
  return (kv, options) => Object.assign(onFile(kv, options), { maxChecks, lanes });
}

Deno.test("service sweeps expired replies in as many commits per step as there are lanes, each within KV's limit of checks", async () => {
  await using workshop = await Workshop.open();
  const checks: number[] = [];
  const commit = (commit: Commit) => (checks.push(commit.checks), carryOut(commit));
  await using other = workshop.beside({ disturbance: { commit }, backend: small(3, 10) });
  await createAll(workshop, keysUpTo(25));
  workshop.now += DAY;
  const end = workshop.now;
  await create(workshop, "alive");

  const steps = await stepsOf(other, end, 4);

  assertEquals(steps, [[true, 6, 6], [false, 1, 1], [false, 1, 1], [false, 1, 1]]);
  assertEquals(Math.max(...checks), 3);
  assertEquals([await create(workshop, "alive"), await create(workshop, "key0")], [true, false]);
});

Deno.test("service sweeps replies in a file in one commit per step", async () => {
  await using workshop = await Workshop.open();
  await using other = workshop.beside({ backend: small(11, 1) });
  await createAll(workshop, keysUpTo(15));

  assertEquals(await stepsOf(other, workshop.now + DAY, 2), [[true, 5, 5], [false, 0, 0]]);
});

Deno.test("service sweeps replies in the order in which they expired", async () => {
  await using workshop = await Workshop.open();
  await using other = workshop.beside({ backend: small(2, 10) });
  const keys = keysUpTo(11).reverse();
  await createAll(workshop, keys);

  await sweep(other, workshop.now + DAY);

  const left = await Array.fromAsync(workshop.kv.list({ prefix: ["idempotency"] }));
  assertEquals(left.map(({ key }) => key.at(-1)), keys.slice(-1));
});

Deno.test("service keeps the newer reply to a key that was used again", async () => {
  await using workshop = await Workshop.open();
  await create(workshop, "twice");
  workshop.now += DAY;
  await create(workshop, "twice");

  await sweep(workshop, workshop.now + 1);

  assertEquals(await create(workshop, "twice"), true);
  assertEquals(await countRows(workshop), [1, 1]);
  await sweep(workshop, workshop.now + DAY + 1);
  assertEquals(await countRows(workshop), [0, 0]);
});

Deno.test("service sweeps no reply that is renewed during the sweep", async () => {
  await using workshop = await Workshop.open();
  await create(workshop, "twice");
  workshop.now += DAY;
  let renewals = 0;
  const commit = async ({ apply, checks }: Commit) => {
    if (checks > 1 && renewals++ === 0) await create(workshop, "twice");
    return await apply();
  };
  await using other = workshop.beside({ disturbance: { commit } });

  const more = await sweep(other, workshop.now + 1);

  assertGreater(renewals, 0);
  assertEquals(more, true);
  assertEquals(await create(workshop, "twice"), true);
});

Deno.test("service sweeps the counts that 1.0.0 kept before yesterday", async () => {
  await using workshop = await Workshop.open();
  const today = Math.floor(workshop.now / DAY);
  const days = [0, 1, 2, 3].map((ago) => today - ago);
  for (const day of days) await workshop.kv.atomic().sum([COUNTS, day, "a"], 1n).commit();

  assertEquals(await sweep(workshop, workshop.now), false);

  const counts = await Array.fromAsync(workshop.kv.list({ prefix: [COUNTS] }));
  assertEquals(counts.map(({ key }) => key[1]), [today - 1, today]);
});

Deno.test("service sweeps what a rebuild has left that was interrupted more than a day ago", async () => {
  await using workshop = await Workshop.open();
  const began = [workshop.now - DAY, workshop.now - DAY - 1].map((time) => new Date(time).toISOString());
  for (const generation of began) await workshop.kv.set(["generations", "things", generation, "state"], 0);

  for (const step of workshop.app.sweeps) await step(workshop.now);

  const left = await Array.fromAsync(workshop.kv.list({ prefix: ["generations"] }), ({ key }) => key[2]);
  assertEquals(left, began.slice(0, 1));
});
