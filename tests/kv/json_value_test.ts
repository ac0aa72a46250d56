import { assertEquals, assertInstanceOf } from "@std/assert";
import { keyRow, secretRow, usageRow } from "../../src/access/key_rows.ts";
import { hashSecret } from "../../src/access/secret.ts";
import { UNUSED } from "../../src/access/usage.ts";
import { decodeJson, encodeJson } from "../../src/kv/json_value.ts";
import { MessageStore } from "../../src/messages/message_store.ts";
import { Harness } from "../harness.ts";

const REX = { name: "Rex", categoryId: 7 };
const NOTE = { message: "Is Rex still there?" };
const ONCE = { "idempotency-key": "once" };

Deno.test.each([
  ["an object", { a: [1, "é", null, true] }],
  ["a text", "key_1"],
  ["a number", 7],
])("decodeJson() reads %s, encoded or as it is", (_, value) => {
  assertEquals(decodeJson<unknown>(encodeJson(value)), value);
  assertEquals(decodeJson<unknown>(value), value);
});

Deno.test("app() keeps nothing but bytes, which every version of Deno can read", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: key } = await service.issueKey();
  for (const [target, json] of [["POST /v1/pets", REX], ["POST /v1/messages", NOTE]] as const) {
    for (const headers of [{}, ONCE]) {
      const response = await service.fetch(target, { key, json, headers });
      await response.body?.cancel();
    }
  }
  await service.keys.rotate(id, 1_000, service.now);

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  // The marks of commits are of use to the process alone that wrote them.
  const kept = rows.filter(({ key: [name] }) => name !== "commits");
  assertEquals(kept.length, 16);
  for (const { value } of kept) assertInstanceOf(value, Uint8Array);
});

Deno.test("app() goes on from rows that hold values", async () => {
  using service = await Harness.open();
  const { key, secret } = await service.issueKey("free");
  const usage = { ...UNUSED, minute: service.now, minuteUsed: 57, dayUsed: 57 };
  await service.kv.set(keyRow(key.id), key);
  await service.kv.set(usageRow(key.id), usage);
  await service.kv.set(secretRow(hashSecret(secret)), key.id);
  await service.kv.set(["catalogue"], { lastId: 6 });
  await service.kv.set(["message_log"], { lastId: 6 });
  const message = { id: "msg_6", message: "Hello", status: "queued", createdAt: "2027-01-15T12:00:00.000Z" };
  await service.kv.set(["messages", 6], message);

  const pet = await service.fetch("POST /v1/pets", { key: secret, json: REX });
  const note = await service.fetch("POST /v1/messages", { key: secret, json: NOTE });

  assertEquals([pet.status, note.status], [201, 202]);
  assertEquals(note.headers.get("x-ratelimit-remaining"), "1");
  assertEquals((await pet.json()).id, 7);
  assertEquals((await note.json()).id, "msg_7");
  const taken: string[] = [];
  await new MessageStore(service.store).take(9, ({ id }) => Promise.resolve(void taken.push(id)));
  assertEquals(taken, ["msg_6", "msg_7"]);
});
