import { assertEquals } from "@std/assert";
import {
  type ReplyName,
  replyRows,
  ReplyStore,
  type StoredReply,
} from "../../src/idempotency/reply_store.ts";
import { Store } from "../../src/kv/store.ts";

const NOW = 1_000_000;

Deno.test("sweep() removes expired replies, no more in a step than a commit can check", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 10 }));
  for (let number = 0; number < 25; number++) await save(kv, nameOf(number), NOW - 1 - number);
  await save(kv, nameOf(99), NOW + 1);

  const steps: [more: boolean, replies: number, expiries: number][] = [];
  for (let step = 0; step < 4; step++) {
    const more = await replies.sweep(NOW);
    steps.push([more, await countRows(kv, "idempotency"), await countRows(kv, "idempotency_by_expiry")]);
  }

  assertEquals(steps, [[true, 16, 16], [true, 6, 6], [false, 1, 1], [false, 1, 1]]);
  assertEquals((await replies.find(nameOf(99)))?.value, replyUntil(NOW + 1));
});

Deno.test("sweep() begins with the reply that expired first", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 2 }));
  for (const [number, expiresAt] of [900, 100, 500].entries()) await save(kv, nameOf(number), expiresAt);

  await replies.sweep(NOW);

  assertEquals(await replies.find(nameOf(1)), null);
  assertEquals(await replies.find(nameOf(2)), null);
  assertEquals((await replies.find(nameOf(0)))?.value, replyUntil(900));
});

Deno.test("sweep() spares the newer reply of a key that was used again", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 10 }));
  await save(kv, nameOf(1), NOW - 1);
  await save(kv, nameOf(1), NOW + 1);

  await replies.sweep(NOW);

  assertEquals((await replies.find(nameOf(1)))?.value, replyUntil(NOW + 1));
  assertEquals(await countRows(kv, "idempotency_by_expiry"), 1);
  await replies.sweep(NOW + 2);
  assertEquals(await countRows(kv, "idempotency") + await countRows(kv, "idempotency_by_expiry"), 0);
});

Deno.test("sweep() commits nothing when nothing has expired", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 10 }));
  await save(kv, nameOf(1), NOW + 1);
  const before = await Array.fromAsync(kv.list({ prefix: [] }));

  assertEquals(await replies.sweep(NOW), false);

  assertEquals(await Array.fromAsync(kv.list({ prefix: [] })), before);
});

Deno.test("find() tells replies of other keys, operations and API keys apart", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 10 }));
  await save(kv, ["key_1", "createPet", "a"], NOW);

  assertEquals((await replies.find(["key_1", "createPet", "a"]))?.value, replyUntil(NOW));
  assertEquals(await replies.find(["key_2", "createPet", "a"]), null);
  assertEquals(await replies.find(["key_1", "createMessage", "a"]), null);
  assertEquals(await replies.find(["key_1", "createPet", "A"]), null);
});

Deno.test("find() reads rows that hold objects", async () => {
  using kv = await Deno.openKv(":memory:");
  const replies = new ReplyStore(new Store(kv, { maxChecks: 10 }));
  const reply = replyUntil(NOW);
  await kv.set(["idempotency", ...nameOf(1)], { ...reply, body: new TextEncoder().encode(reply.body) });
  await kv.set(["idempotency_by_expiry", NOW, ...nameOf(1)], true);

  assertEquals((await replies.find(nameOf(1)))?.value, reply);
  assertEquals(await replies.sweep(NOW + 1), false);
  assertEquals(await replies.find(nameOf(1)), null);
});

async function save(kv: Deno.Kv, name: ReplyName, expiresAt: number): Promise<void> {
  for (const [key, value] of replyRows(name, replyUntil(expiresAt))) await kv.set(key, value);
}

async function countRows(kv: Deno.Kv, kind: string): Promise<number> {
  return (await Array.fromAsync(kv.list({ prefix: [kind] }))).length;
}

function nameOf(number: number): ReplyName {
  return ["key_1", "createPet", `${number}`];
}

function replyUntil(expiresAt: number): StoredReply {
  return { fingerprint: "f", status: 201, headers: {}, body: '{"a":"b"}\n', expiresAt };
}
