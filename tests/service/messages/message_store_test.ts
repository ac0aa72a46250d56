import { assert, assertEquals } from "@std/assert";
import { ApiError } from "../../../src/http/error.ts";
import type { Store } from "../../../src/kv/store.ts";
import { MAX_WAITING, type Message, MessageStore } from "../../../src/messages/message_store.ts";
import { Transactions } from "../../../src/store/transactions.ts";
import { FlakyStore } from "../../support/fake_kv.ts";
import { Harness } from "../../support/harness.ts";
import { NOON } from "../../support/time.ts";

/** The messages as one process reads and writes them. */
class Messages {
  readonly store: MessageStore;
  readonly #transactions: Transactions;

  constructor(store: Store) {
    this.store = new MessageStore(store);
    this.#transactions = new Transactions(store, () => NOON);
  }

  async create(text: string, now = NOON): Promise<Message> {
    return (await this.#transactions.run(this.store.queuing({ message: text, accountId: "a" }, now))).result;
  }

  async remove(messages: readonly Message[]): Promise<void> {
    await Promise.all(messages.map((message) => this.#transactions.run(this.store.removing(message))));
  }

  async forget(): Promise<void> {
    await this.#transactions.run(this.store.forgetting("a"));
  }
}

Deno.test("forget() keeps the count of an account that has a message", async () => {
  await using service = await Harness.open();
  const messages = new Messages(service.store);
  const message = await messages.create("late");

  await messages.forget();
  await messages.remove([message]);
  assertEquals([await messages.store.countWaiting("a"), await messages.store.countWaiting()], [0, 0]);

  await messages.forget();
  assertEquals((await service.kv.get(["messages_waiting", "a"])).value, null);
});

Deno.test("forget() keeps the count of an account if another process queues a message concurrently", async () => {
  using flaky = await FlakyStore.open();
  const [messages, other] = [new Messages(flaky.store), new Messages(flaky.store)];
  const message = await messages.create("first");
  await messages.remove([message]);
  flaky.disturbance = {
    async commit({ apply }) {
      flaky.disturbance = {};
      await other.create("late");
      return await apply();
    },
  };

  await messages.forget();

  assertEquals(await messages.store.countWaiting("a"), 1);
});

Deno.test("list() returns the oldest messages in order of creation, even if the clock goes back", async () => {
  await using service = await Harness.open();
  const messages = new Messages(service.store);
  const texts = Array.from({ length: 230 }, (_, number) => `Hello ${number}`);
  const atOnce = await Promise.all(texts.map((text) => messages.create(text)));
  const back = await messages.create("back", NOON - 60_000);
  const ahead = await messages.create("ahead", NOON + 1);
  const other = await new Messages(service.store).create("other", NOON + 2);
  const every = [...atOnce, back, ahead, other];
  const list = (count: number) => Array.fromAsync(messages.store.list(count));

  for (const count of [1, 100, 105, 200, 233, 1_000]) assertEquals(await list(count), every.slice(0, count));
  await messages.remove(every.slice(0, 220));

  assertEquals(await list(1_000), every.slice(220));
  assertEquals(back.createdAt, new Date(NOON - 60_000).toISOString());
});

Deno.test("create() accepts exactly MAX_WAITING simultaneous messages of an account", async () => {
  await using service = await Harness.open();
  const [one, two] = [new Messages(service.store), new Messages(service.store)];
  const accept = async (messages: Messages): Promise<boolean> => {
    try {
      await messages.create("Hello");
      return true;
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
  assertEquals(await one.store.countWaiting("a"), MAX_WAITING);
  const [first] = await Array.fromAsync(one.store.list(1));
  assert(first);
  await one.remove([first, first, { ...first, id: "msg_unknown" }]);
  await one.remove([first]);
  assertEquals(await one.store.countWaiting("a"), MAX_WAITING - 1);
  assertEquals(await accept(two), true);
  assertEquals(await accept(two), false);
  assertEquals(await two.store.countWaiting(), MAX_WAITING);
});
