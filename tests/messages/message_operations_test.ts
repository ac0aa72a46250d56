import { assertEquals, assertMatch } from "@std/assert";
import { MAX_WAITING } from "../../src/messages/message_store.ts";
import { assertError, limitHeadersOf } from "../support/assertions.ts";
import { call, tally, upTo } from "../support/client.ts";
import { type Harness, RecordingService } from "../support/harness.ts";
import { Workshop } from "../support/workshop.ts";

const ONCE = { "idempotency-key": "once" };

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test("createMessage() queues a message, and does not return its account", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey: key } = await workshop.createAccount();
  workshop.now += 1;

  const response = await workshop.fetch("POST /v1/messages", {
    key,
    json: { message: " Hello\n", to: "you" },
  });

  assertEquals(response.status, 202);
  assertEquals(response.headers.get("content-type"), "application/json");
  const { id, ...rest } = await response.json();
  assertMatch(id, /^msg_\w{21}$/);
  const message = { message: " Hello\n", status: "queued", createdAt: "2027-01-15T12:00:00.001Z" };
  assertEquals(rest, message);
  assertEquals(await stored(workshop), [{ id, ...message, accountId: account.id }]);
});

Deno.test("createMessage() stores many messages at once, each of maximum length", async () => {
  for (const message of ["x".repeat(10_000), "\u0001".repeat(10_000), "🐶".repeat(4_096)]) {
    await using workshop = await Workshop.open();
    const send = () => workshop.call("POST /v1/messages", { json: { message } });

    const responses = await Promise.all(Array.from({ length: 20 }, send));

    assertEquals(responses.map(({ status }) => status), new Array(20).fill(202));
    assertEquals((await stored(workshop)).map(({ message }) => message), new Array(20).fill(message));
  }
});

Deno.test.each([
  ["a blank message", " \t\n\u00a0\u2028", "have a character other than whitespace"],
  ["an empty message", "", "have 1 to 10000 characters"],
  ["10,001 characters", "x".repeat(10_001), "have 1 to 10000 characters"],
  ["a byte more than 16 KiB", `${"🐶".repeat(4_096)}x`, "have at most 16 KiB in UTF-8"],
])("createMessage() refuses %s, and stores nothing", async (_, message, rule) => {
  await using workshop = await Workshop.open();

  const response = await workshop.call("POST /v1/messages", { json: { message } });

  await assertError(response, 400, "invalid_request", RegExp(`^The field message must ${rule}\\.$`));
  assertEquals(await stored(workshop), []);
});

Deno.test.each([
  [510, 3, { 202: 200 }],
  [980, 2, { 202: 20, "429 queue_full": 180 }],
])(
  "createMessage() handles 200 simultaneous messages while %i wait, in at most %i commits",
  async (waiting, commits, expected) => {
    await using service = await RecordingService.open();
    const { account: { id }, apiKey: key } = await service.createAccount();
    await service.kv.atomic().set(["messages_waiting", id], new Deno.KvU64(BigInt(waiting))).commit();
    service.forget();

    const send = () => call(service, key, "POST /v1/messages", { json: { message: "Hello" } });
    const replies = await service.time.until(Promise.all(Array.from({ length: 200 }, send)), 5_000);

    assertEquals(tally(replies), expected);
    service.assertCost({ reads: Infinity, commits });
  },
);

Deno.test("createMessage() refuses a message more than 1,000 with the limit headers of the queue", async () => {
  await using workshop = await Workshop.open();
  const { account: { id }, apiKey: key } = await workshop.createAccount();
  await workshop.kv.set(["messages_waiting", id], new Deno.KvU64(BigInt(MAX_WAITING)));

  const response = await workshop.fetch("POST /v1/messages", { key, json: { message: "Hello" } });

  assertEquals(limitHeadersOf(response), {
    "retry-after": "60",
    "x-ratelimit-limit": "1000",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": `${Math.ceil(workshop.now / 1_000) + 60}`,
    "ratelimit-policy": '"messages";q=1000',
    "ratelimit": '"messages";r=0;t=60',
  });
  await assertError(response, 429, "queue_full", /^This account has 1,000 messages waiting.* in 60 s\.$/);
});

Deno.test("createMessage() stores nothing if the account's count is corrupt", async () => {
  await using workshop = await Workshop.open();
  const { account: { id }, apiKey: key } = await workshop.createAccount();
  const send = (json: object) =>
    workshop.fetch("POST /v1/messages", { key, json, headers: { "idempotency-key": "1" } });
  await workshop.kv.set(["messages_waiting", id], new Uint8Array([1]));
  workshop.expectsErrors = true;

  await assertError(await send({ message: "Hello" }), 500, "internal_error");

  assertEquals(await stored(workshop), []);
  await workshop.kv.delete(["messages_waiting", id]);
  const response = await send({ message: "Hello" });
  assertEquals([response.status, response.headers.has("idempotency-replayed")], [202, false]);
});

Deno.test("createMessage() replays its first reply for a day, and refuses another body and the reply of a thing", async () => {
  await using workshop = await Workshop.open();
  const json = { message: "Hello", name: "Hammer", weight: 1 };
  const send = (json: object) => workshop.call("POST /v1/messages", { json, headers: ONCE });
  const thing = await workshop.call("POST /v1/things", { json, headers: ONCE });
  const first = await send(json);
  workshop.now += 86_399_999;
  const again = await send(json);

  assertEquals([thing, first, again].map(isReplay), [false, false, true]);
  assertEquals([first.status, again.status], [202, 202]);
  assertEquals(await again.text(), await first.text());
  await assertError(await send({ message: "Bye" }), 422, "idempotency_key_reused", /other values/);
});

Deno.test("createMessage() queues one message for simultaneous requests to two processes, if there is room for one", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();
  const { account, apiKey: key } = await workshop.createAccount();
  await workshop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));
  const request = { key, json: { message: "Hello" }, headers: ONCE };

  const responses = await Promise.all(
    upTo(40).map((n) => (n % 2 ? workshop : beside).fetch("POST /v1/messages", request)),
  );

  assertEquals(responses.map(({ status }) => status), new Array(40).fill(202));
  assertEquals([responses.filter(isReplay).length, (await stored(workshop)).length], [39, 1]);
});

Deno.test("createMessage() replays a message that another process has just queued in the last place", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey: key } = await workshop.createAccount();
  await workshop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));
  const send = (service: Harness) =>
    service.fetch("POST /v1/messages", { key, json: { message: "Hello" }, headers: ONCE });
  const replies: Response[] = [];
  const read = async (keys: readonly Deno.KvKey[]) => {
    const isFirst = replies.length === 0 && keys.some(([table]) => table === "messages_waiting");
    if (isFirst) replies.push(await send(workshop));
  };
  await using other = workshop.beside({ disturbance: { read } });

  replies.push(await send(other));

  assertEquals(replies.map(({ status }) => status), [202, 202]);
  assertEquals(replies.map(isReplay), [false, true]);
});

/** Every waiting message. */
async function stored({ kv }: Workshop): Promise<Record<string, unknown>[]> {
  const rows = await Array.fromAsync(kv.list<Uint8Array>({ prefix: ["messages"] }));
  return rows.map(({ value }) => JSON.parse(new TextDecoder().decode(value)));
}
