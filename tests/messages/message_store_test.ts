import { assertEquals, assertRejects } from "@std/assert";
import { Store } from "../../src/kv/store.ts";
import type { Message } from "../../src/messages/message.ts";
import { MessageStore } from "../../src/messages/message_store.ts";

const CREATED_AT = "2027-01-15T12:00:00.000Z";

Deno.test("create() gives messages at once unique ids, in the order of the calls", async () => {
  using store = await openStore();

  const created = await createMany(new MessageStore(store), 30);

  assertEquals(created.slice(0, 2), [
    { id: "msg_1", message: "Hello 1", status: "queued", createdAt: CREATED_AT },
    { id: "msg_2", message: "Hello 2", status: "queued", createdAt: CREATED_AT },
  ]);
  assertEquals(created.map((message) => message.id), idsTo(30));
});

Deno.test("take() hands out the oldest messages once, in the order of creation", async () => {
  using store = await openStore();
  const messages = new MessageStore(store);
  const created = await createMany(messages, 12);

  const first = await takeAll(messages, 5);
  const rest = await takeAll(messages, 100);
  const none = await takeAll(messages, 100);

  assertEquals(first, created.slice(0, 5));
  assertEquals(rest, created.slice(5));
  assertEquals(none, []);
});

Deno.test("take() takes as many as it is told to, also beyond a hundred", async () => {
  using store = await openStore();
  const messages = new MessageStore(store);
  await createMany(messages, 210);

  const taken = await messages.take(205, () => Promise.resolve());

  assertEquals(taken, 205);
  assertEquals((await takeAll(messages, 100)).map((message) => message.id), idsTo(210).slice(205));
});

Deno.test("take() keeps the message that could not be sent, and those after it", async () => {
  using store = await openStore();
  const messages = new MessageStore(store);
  const created = await createMany(messages, 3);

  await assertRejects(
    () =>
      messages.take(
        3,
        ({ id }) => id === "msg_2" ? Promise.reject(new TypeError("broken pipe")) : Promise.resolve(),
      ),
    TypeError,
    "broken pipe",
  );

  assertEquals(await takeAll(messages, 3), created.slice(1));
});

Deno.test("create() does not use the id of a message that was taken", async () => {
  using store = await openStore();
  await createMany(new MessageStore(store), 2);
  await takeAll(new MessageStore(store), 2);

  const created = await new MessageStore(store).create({ message: "Hello", createdAt: CREATED_AT });

  assertEquals(created?.id, "msg_3");
});

async function openStore(): Promise<Store> {
  return new Store(await Deno.openKv(":memory:"), { maxChecks: 10 });
}

async function createMany(messages: MessageStore, count: number): Promise<Message[]> {
  const created = await Promise.all(
    idsTo(count).map((_, index) => messages.create({ message: `Hello ${index + 1}`, createdAt: CREATED_AT })),
  );
  return created.filter((message) => message !== undefined);
}

async function takeAll(messages: MessageStore, count: number): Promise<Message[]> {
  const taken: Message[] = [];
  await messages.take(count, (message) => {
    taken.push(message);
    return Promise.resolve();
  });
  return taken;
}

function idsTo(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `msg_${index + 1}`);
}
