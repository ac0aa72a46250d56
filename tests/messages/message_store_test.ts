import { assert, assertEquals } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import type { Message } from "../../src/messages/message_store.ts";
import { MAX_WAITING, MessageStore } from "../../src/messages/message_store.ts";
import { Harness, NOON } from "../harness.ts";
import { RoughStore } from "../kv/rough_store.ts";

async function create(messages: MessageStore, text: string, now = NOON): Promise<Message> {
  const message = await messages.create({ message: text, accountId: "a" }, now);
  assert(message);
  return message;
}

Deno.test("forget() leaves the count of an account that has a message after all", async () => {
  await using service = await Harness.open();
  const messages = new MessageStore(service.store);
  const { id } = await create(messages, "late");

  await messages.forget("a");
  await messages.remove([id]);
  assertEquals([await messages.countWaiting("a"), await messages.countWaiting()], [0, 0]);

  await messages.forget("a");
  assertEquals((await service.kv.get(["messages_waiting", "a"])).value, null);
});

Deno.test("forget() leaves the count of an account whose message comes meanwhile", async () => {
  using rough = await RoughStore.open();
  const messages = new MessageStore(rough.store);
  const { id } = await create(messages, "first");
  await messages.remove([id]);
  rough.disturbance = {
    async commit({ apply }) {
      rough.disturbance = {};
      await create(messages, "late");
      return await apply();
    },
  };

  await messages.forget("a");

  assertEquals(await messages.countWaiting("a"), 1);
});

Deno.test("list() gives the oldest messages in the order of creation, whatever the clock did", async () => {
  await using service = await Harness.open();
  const messages = new MessageStore(service.store);
  const texts = Array.from({ length: 230 }, (_, number) => `Hello ${number}`);
  const atOnce = await Promise.all(texts.map((text) => create(messages, text)));
  const back = await create(messages, "back", NOON - 60_000);
  const ahead = await create(messages, "ahead", NOON + 1);
  const elsewhere = await create(new MessageStore(service.store), "elsewhere", NOON + 2);
  const every = [...atOnce, back, ahead, elsewhere];
  const list = (count: number) => Array.fromAsync(messages.list(count));

  for (const count of [1, 100, 105, 200, 233, 1_000]) assertEquals(await list(count), every.slice(0, count));
  await messages.remove(every.slice(0, 220).map(({ id }) => id));

  assertEquals(await list(1_000), every.slice(220));
  assertEquals(back.createdAt, new Date(NOON - 60_000).toISOString());
});

Deno.test("create() accepts messages in one commit that share their check, where KV takes ten", async () => {
  await using service = await Harness.open({ maxChecks: 10 });
  const messages = new MessageStore(service.store);
  const shared = { key: ["shared"], versionstamp: null };
  const along = () => ({ checks: [shared], sets: [] });
  const newMessage = { message: "Hello", accountId: "a" };

  await Promise.all(Array.from({ length: 30 }, () => messages.create(newMessage, NOON, along)));

  const rows = await Array.fromAsync(service.kv.list({ prefix: ["messages"] }));
  assertEquals(rows.length, 30);
  assertEquals(new Set(rows.map(({ versionstamp }) => versionstamp)).size, 1);
});

Deno.test("create() accepts exactly as many messages of an account as may wait, however many come at once", async () => {
  await using service = await Harness.open();
  const [one, two] = [new MessageStore(service.store), new MessageStore(service.store)];
  const accept = async (messages: MessageStore): Promise<boolean> => {
    try {
      return await messages.create({ message: "Hello", accountId: "a" }, NOON) !== null ||
        await accept(messages);
    } catch (error) {
      assertEquals(error instanceof ApiError && [error.code, error.headers], ["queue_full", {
        "retry-after": "60",
      }]);
      return false;
    }
  };

  const accepted = await Promise.all(
    Array.from({ length: MAX_WAITING + 40 }, (_, index) => accept(index % 2 ? one : two)),
  );

  assertEquals(accepted.filter((isAccepted) => isAccepted).length, MAX_WAITING);
  assertEquals(await one.countWaiting("a"), MAX_WAITING);
  const [first] = await Array.fromAsync(one.list(1));
  assert(first);
  await one.remove([first.id, first.id, "msg_unknown"]);
  await one.remove([first.id]);
  assertEquals(await one.countWaiting("a"), MAX_WAITING - 1);
  assertEquals(await accept(two), true);
  assertEquals(await accept(two), false);
  assertEquals(await two.countWaiting(), MAX_WAITING);
});
