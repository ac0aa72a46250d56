import { assertEquals } from "@std/assert";
import {
  replyCountKey,
  type ReplyName,
  replyRows,
  ReplyStore,
  type StoredReply,
} from "../../src/idempotency/reply_store.ts";
import { Connection } from "../../src/kv/connection.ts";
import { Store } from "../../src/kv/store.ts";
import { carryOut, type Commit, disturbed } from "../kv/disturbed_kv.ts";

const NOW = 1_000_000;
const DAY = 86_400_000;

function repliesOn(kv: Deno.Kv, maxChecks = 10): ReplyStore {
  return new ReplyStore(new Store(new Connection([kv]), { maxChecks, clock: () => NOW }));
}

function nameOf(number: number): ReplyName {
  return ["a", "createPet", `${number}`];
}

function replyUntil(expiresAt: number): StoredReply {
  return { fingerprint: "f", status: 201, headers: { etag: '"a"' }, body: '{"a":"b"}\n', expiresAt };
}

async function save(kv: Deno.Kv, name: ReplyName, expiresAt: number): Promise<void> {
  for (const [key, value] of replyRows(name, replyUntil(expiresAt))) await kv.set(key, value);
}

async function countRows(kv: Deno.Kv): Promise<number[]> {
  const kinds = ["idempotency", "idempotency_by_expiry"];
  return await Promise.all(
    kinds.map(async (kind) => (await Array.fromAsync(kv.list({ prefix: [kind] }))).length),
  );
}

Deno.test("sweep() removes what has expired, in ten commits a step, each of what it can check", async () => {
  using kv = await Deno.openKv(":memory:");
  const checks: number[] = [];
  const commit = (commit: Commit) => (checks.push(commit.checks), carryOut(commit));
  const replies = repliesOn(disturbed(kv, { commit }), 3);
  for (let number = 0; number < 25; number++) await save(kv, nameOf(number), NOW - 1 - number);
  await save(kv, nameOf(99), NOW);

  const steps: unknown[] = [];
  for (let step = 0; step < 4; step++) steps.push([await replies.sweep(NOW), ...await countRows(kv)]);

  assertEquals(steps, [[true, 6, 6], [false, 1, 1], [false, 1, 1], [false, 1, 1]]);
  assertEquals(Math.max(...checks), 3);
  assertEquals((await replies.find(nameOf(99), NOW)).reply, replyUntil(NOW));
});

Deno.test("sweep() keeps a KV on this machine no longer than one commit a step", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = repliesOn(kv, 11);
  for (let number = 0; number < 15; number++) await save(kv, nameOf(number), NOW - 1 - number);

  const steps: unknown[] = [];
  for (let step = 0; step < 2; step++) steps.push([await replies.sweep(NOW), ...await countRows(kv)]);

  assertEquals(steps, [[true, 5, 5], [false, 0, 0]]);
});

Deno.test("sweep() begins with the reply that expired first", async () => {
  using kv = await Deno.openKv(":memory:");
  const numbers = Array.from({ length: 11 }, (_, number) => number);
  for (const number of numbers) await save(kv, nameOf(number), 900 - number);

  await repliesOn(kv, 2).sweep(NOW);

  const left = await Promise.all(numbers.map((number) => repliesOn(kv).find(nameOf(number), NOW)));
  assertEquals(left.map(({ reply }) => reply), [replyUntil(900), ...Array(10).fill(null)]);
});

Deno.test("sweep() spares the newer reply of a key that was used again", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = repliesOn(kv);
  await save(kv, nameOf(1), NOW - 1);
  await save(kv, nameOf(1), NOW + 1);

  await replies.sweep(NOW);

  assertEquals((await replies.find(nameOf(1), NOW)).reply, replyUntil(NOW + 1));
  assertEquals(await countRows(kv), [1, 1]);
  await replies.sweep(NOW + 2);
  assertEquals(await countRows(kv), [0, 0]);
});

Deno.test("sweep() removes no reply that was renewed while it looked", async () => {
  using kv = await Deno.openKv(":memory:");
  await save(kv, nameOf(1), NOW - 1);
  const commit = async ({ apply, checks }: Commit) => {
    if (checks > 1) await save(kv, nameOf(1), NOW + 1);
    return await apply();
  };
  const replies = repliesOn(disturbed(kv, { commit }));

  const more = await replies.sweep(NOW);

  assertEquals(more, true);
  assertEquals((await replies.find(nameOf(1), NOW)).reply, replyUntil(NOW + 1));
});

Deno.test("sweep() forgets how many replies there were before yesterday", async () => {
  using kv = await Deno.openKv(":memory:");
  const days = [3, 2, 1, 0].map((ago) => 10 * DAY - ago * DAY + 1);
  for (const day of days) await kv.set(replyCountKey("a", day), new Deno.KvU64(7n));
  const replies = repliesOn(kv);

  assertEquals(await replies.sweep(10 * DAY + 1), false);

  assertEquals(await Promise.all(days.map(async (day) => (await replies.find(nameOf(1), day)).count)), [
    0,
    0,
    7,
    7,
  ]);
});
