import { assert, assertEquals } from "@std/assert";
import { MINUTE } from "../../src/base/mod.ts";
import { ApiError } from "../../src/web/error.ts";
import type { Store } from "../../src/engine/store.ts";
import { MAX_COUNTED, MAX_WAITING, type Message, MessageStore } from "../../src/messages/message_store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { operate, operated, OPERATOR_TOKEN } from "../support/desk.ts";
import type { Commit } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const GUIDE = new URL("../../src/operator/README.md", import.meta.url);

/** The messages as one process reads and writes them. */
class Messages {
  readonly store: MessageStore;
  readonly #transactions: Transactions;

  constructor(store: Store) {
    this.store = new MessageStore(store);
    this.#transactions = new Transactions(store, { clock: () => NOON });
  }

  async create(message: string, now = NOON, accountId = "a"): Promise<Message> {
    return (await this.#transactions.run(this.store.queuing({ message, accountId }, now))).result;
  }

  async remove(messages: readonly Message[]): Promise<void> {
    await Promise.all(messages.map((message) => this.#transactions.run(this.store.removing(message))));
  }
}

Deno.test("accounts delete keeps an account if a message is queued while its removal is committed", async () => {
  await using service = await Harness.open();
  const messages = new Messages(service.store);
  const { account: { id } } = await service.createAccount();
  await service.accounts.close(id);
  service.now += MINUTE;
  let late: Promise<Message> | undefined;
  const commit = async ({ apply, keys }: Commit) => {
    const isRemoval = keys.some(([table]) => table === "versions");
    if (isRemoval) await (late ??= messages.create("late", NOON, id));
    return await apply();
  };
  const clock = () => service.now;
  await using other = service.beside({ clock, disturbance: { commit }, operatorToken: OPERATOR_TOKEN });
  const remove = () => operate(other.app.fetch, ["accounts", "delete", id]);

  const refused = await remove();

  assertEquals(refused.err, ["The account still has messages waiting (1); take them first."]);
  assertEquals((await service.accounts.find(id))?.holder.id, id);
  assert(late);
  assertEquals((await remove()).err, refused.err);
  await operated(other.app.fetch, ["messages", "take", "1"]);
  assertEquals((await remove()).exit, 0);
  const tables = (await Array.fromAsync(service.kv.list({ prefix: [] }))).map(({ key: [table] }) => table);
  assertEquals(tables.filter((table) => String(table).startsWith("messages")), []);
});

Deno.test("accounts delete removes a count of 0, which 1.0.0 keeps after a message was taken", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  const { account: { id } } = await service.createAccount();
  await service.accounts.close(id);
  service.now += MINUTE;
  await service.kv.set(["messages_waiting", id], new Deno.KvU64(0n));

  await operated(service.app.fetch, ["accounts", "delete", id]);

  assertEquals((await service.kv.get(["messages_waiting", id])).versionstamp, null);
});

Deno.test("list() returns a message that 1.0.0 queued", async () => {
  await using service = await Harness.open();
  const message: Message = {
    id: "msg_0hq1v76rk003oSm",
    message: "Hello",
    accountId: "a",
    status: "queued",
    createdAt: "2027-01-15T12:00:00.000Z",
  };
  await service.kv.set(["messages", message.id], new TextEncoder().encode(JSON.stringify(message)));
  await service.kv.set(["messages_waiting"], new Deno.KvU64(1n));
  await service.kv.set(["messages_waiting", "a"], new Deno.KvU64(1n));
  const messages = new Messages(service.store);

  assertEquals(await Array.fromAsync(messages.store.list(9)), [message]);
  assertEquals(await messages.store.countWaiting(), 1);
  await messages.remove([message]);
  assertEquals(await messages.store.countWaiting(), 0);
});

Deno.test("countWaiting() counts the messages of at most MAX_COUNTED accounts", async () => {
  await using service = await Harness.open();
  for (let first = 0; first < MAX_COUNTED + 600; first += 100) {
    const operation = service.kv.atomic();
    for (let account = first; account < first + 100; account++) {
      operation.set(["messages_waiting", `acct_${account}`], new Deno.KvU64(2n));
    }
    await operation.commit();
  }

  assertEquals(await new MessageStore(service.store).countWaiting(), 2 * MAX_COUNTED);
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
      assertEquals(error instanceof ApiError && error.kind.code, "queue_full");
      return false;
    }
  };

  const accepted = await Promise.all(
    Array.from({ length: MAX_WAITING + 40 }, (_, index) => accept(index % 2 ? one : two)),
  );

  assertEquals(accepted.filter((isAccepted) => isAccepted).length, MAX_WAITING);
  assertEquals(await one.store.countWaiting(), MAX_WAITING);
  const [first] = await Array.fromAsync(one.store.list(1));
  assert(first);
  await one.remove([first, first, { ...first, id: "msg_unknown" }]);
  await one.remove([first]);
  assertEquals(await one.store.countWaiting(), MAX_WAITING - 1);
  assertEquals(await accept(two), true);
  assertEquals(await accept(two), false);
  assertEquals(await two.store.countWaiting(), MAX_WAITING);
});

Deno.test("operators' guide states the maximum numbers of messages", async () => {
  const text = (await Deno.readTextFile(GUIDE)).replaceAll(/\s+/g, " ");
  const phrases = [
    `\`queue_full\` while ${MAX_WAITING.toLocaleString("en")} messages of the account are waiting`,
    `\`messages_waiting\` (of at most ${MAX_COUNTED.toLocaleString("en")} accounts)`,
  ];

  assertEquals(phrases.filter((phrase) => !text.includes(phrase)), []);
});
