import { hash } from "node:crypto";
import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import type { App } from "../../src/app/app.ts";
import { MINUTE } from "../../src/base/mod.ts";
import { encodeJson } from "../../src/engine/row.ts";
import type { Store } from "../../src/engine/store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { MAX_COUNTED, MAX_WAITING, type Message, MessageStore } from "../../src/messages/message_store.ts";
import { resource, ResourceError } from "../../src/resource/mod.ts";
import { ApiError } from "../../src/web/error.ts";
import { text } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { call, type Callable, type HarnessRequest, type Reply, tally, upTo } from "../support/client.ts";
import { operate, OPERATOR_TOKEN } from "../support/desk.ts";
import { fail, FakeKv, hang } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { Office } from "../support/office.ts";
import { Operator } from "../support/operator.ts";
import { bytesOf } from "../support/stored_rows.ts";
import { HAMMER, OF_THINGS, THINGS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const OPERATED = { operatorToken: OPERATOR_TOKEN } as const;

/** Sends a message to the queue. */
function send(service: Callable, key: string, message: string, more: HarnessRequest = {}): Promise<Reply> {
  return call(service, key, "POST /v1/messages", { json: { message }, ...more });
}

/** An account's number of waiting messages, as it is stored. */
function count(waiting: number): Deno.KvU64 {
  return new Deno.KvU64(BigInt(waiting));
}

/** Every waiting message. */
async function stored({ kv }: Harness): Promise<Record<string, unknown>[]> {
  const rows = await Array.fromAsync(kv.list<Uint8Array>({ prefix: ["messages"] }));
  return rows.map(({ value }) => JSON.parse(new TextDecoder().decode(value)));
}

Deno.test("createMessage() queues a message, and does not return its account", async () => {
  await using service = await Harness.open();
  const { account, apiKey } = await service.createAccount();
  service.now += 1;

  const { status, json } = await send(service, apiKey, "", { json: { message: " Hello\n", to: "you" } });

  assertEquals(status, 202);
  const { id, ...rest } = Object(json);
  assertMatch(id, /^msg_\w{21}$/);
  const message = { message: " Hello\n", status: "queued", createdAt: "2027-01-15T12:00:00.001Z" };
  assertEquals(rest, message);
  assertEquals(await stored(service), [{ id, ...message, accountId: account.id }]);
});

Deno.test.each<[what: string, message: string, rule: string]>([
  ["10,000 characters", "x".repeat(10_000), ""],
  ["tabs and line ends", `a\t${"\r\n".repeat(4_999)}`, ""],
  ["U+0000", "a\0", "not contain U\\+0000"],
  ...["\x1b", "\x7f", "\x9f"].map((control): [string, string, string] => [
    `a control character, ${escape(control)}`,
    `a${control}`,
    "have no control characters other than tab and line ends",
  ]),
  ["16 KiB", "🐶".repeat(4_096), ""],
  ["a blank message", " \t\n\u00a0\u2028", "have a character other than whitespace"],
  ["an empty message", "", "have 1 to 10000 characters"],
  ["10,001 characters", "x".repeat(10_001), "have 1 to 10000 characters"],
  ["a byte more than 16 KiB", `${"🐶".repeat(4_096)}x`, "have at most 16 KiB in UTF-8"],
])("createMessage() stores a message as it is sent, or explains why not: %s", async (_, message, rule) => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  const response = await service.fetch("POST /v1/messages", { key, json: { message } });

  if (rule === "") assertEquals((await response.json()).message, message);
  else await assertError(response, 400, "invalid_request", RegExp(`^The field message must ${rule}\\.$`));
  assertEquals((await stored(service)).map(({ message }) => message), rule === "" ? [message] : []);
});

Deno.test("createMessage() refuses a message more than 1,000 with the limit headers of the queue", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.kv.set(["messages_waiting", id], count(1_000));

  const response = await service.fetch("POST /v1/messages", { key, json: { message: "Hello" } });

  const names = ["retry-after", "ratelimit-policy", "ratelimit"];
  const expected = ["60", '"messages";q=1000', '"messages";r=0;t=60'];
  assertEquals(names.map((name) => response.headers.get(name)), expected);
  await assertError(response, 429, "queue_full", /^This account has 1,000 messages waiting.* in 60 s\.$/);
});

Deno.test("deleteAccount() refuses, and deletes nothing, while a message of the account waits", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const account = `/operator/v1/accounts/${await office.idOf(office.ann)}`;
  await send(office, office.ann, "Hello");
  const ids = (await stored(office)).map(({ id }) => id);
  await office.operate(`POST ${account}/close`);
  office.now += MINUTE;

  await assertError(await office.operate(`DELETE ${account}`), 409, "messages_waiting");

  assertEquals((await office.ownRows()).length, 1);
  await office.operate("POST /operator/v1/messages/remove", { json: { ids } });
  assertEquals((await office.operate(`DELETE ${account}`)).status, 204);
});

const ONCE = { headers: { "idempotency-key": "once" } } as const;

function isReplay({ headers }: Reply): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test("createMessage() queues one message for simultaneous requests with a key, which another operation may have had", async () => {
  await using service = await Harness.open();
  await using beside = service.beside();
  const { account: { id }, apiKey } = await service.createAccount();
  await service.kv.set(["messages_waiting", id], count(MAX_WAITING - 1));
  const request = { ...ONCE, json: { ...HAMMER, message: "Hello" } };
  assertEquals((await call(service, apiKey, "POST /v1/things", request)).status, 201);

  const replies = await Promise.all(
    upTo(40).map((n) => send(n % 2 ? service : beside, apiKey, "", request)),
  );

  assertEquals(tally(replies), { 202: 40 });
  assertEquals([replies.filter(isReplay).length, (await stored(service)).length], [39, 1]);
});

Deno.test("createMessage() returns the reply that 1.0.0 stored for a message with control characters", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount();
  const json = { message: "\u0001" };
  const body = JSON.stringify({
    id: "msg_0hq1v76rk003oSm",
    ...json,
    status: "queued",
    createdAt: "2027-01-15T11:00:00Z",
  });
  const rest = {
    ...{ status: 202, headers: {}, expiresAt: service.now + 1 },
    fingerprint: hash("sha256", JSON.stringify(json)),
  };
  const stored = new TextEncoder().encode(`${JSON.stringify(rest)}\n${body}`);
  await service.kv.set(["idempotency", id, "createMessage", "once"], stored);

  const reply = await send(service, apiKey, json.message, ONCE);

  assertEquals([reply.status, reply.json, isReplay(reply)], [202, JSON.parse(body), true]);
  service.now += 1;
  assertEquals((await send(service, apiKey, json.message, ONCE)).status, 400);
});

Deno.test("an account can store as much with messages as the table of threats says, and no more", async () => {
  const sizes: number[] = [];
  // One byte in UTF-8, and two in JSON; four in both; as many of both as fit.
  for (const message of ['"'.repeat(10_000), "🐶".repeat(4_096), '"'.repeat(7_872) + "🐶".repeat(2_128)]) {
    await using service = await Harness.open();
    const { apiKey } = await service.createAccount();
    const before = await bytesOf(service.kv);
    const headers = { "idempotency-key": "k".repeat(255) };
    assertEquals((await send(service, apiKey, message, { headers })).status, 202);
    sizes.push(await bytesOf(service.kv) - before);
  }

  const megabytes = Math.ceil(Math.max(...sizes) * 1_000 / 1e6);
  const table = await Deno.readTextFile(new URL("../security/README.md", import.meta.url));
  assertStringIncludes(
    table,
    `with its 1,000 requests a day, an account can store ${megabytes} MB of messages`,
  );
  assertStringIncludes(table, `so up to ${megabytes} GB on the first`);
});

Deno.test("an unreadable message is named when the queue is read, stops no metrics, and can be removed", async () => {
  await using service = await Harness.open(OPERATED);
  service.expectsErrors = true;
  const { apiKey } = await service.createAccount();
  const ids = [await send(service, apiKey, "one"), await send(service, apiKey, "two")].map(({ json }) =>
    Object(json).id
  );
  await service.kv.set(["messages", ids[0]], new TextEncoder().encode("{"));
  const operate = (target: string, json?: object) =>
    service.fetch(target, { key: OPERATOR_TOKEN, ...(json && { json }) });

  await assertError(await operate("GET /operator/v1/messages"), 500, "internal_error");
  assertEquals(service.errors.map(({ reason }) => reason), [
    `The message ${ids[0]} cannot be read: remove it`,
  ]);
  assertEquals(await queueOf(service), { messages_waiting: 2 });
  assertEquals((await operate("POST /operator/v1/messages/remove", { ids })).status, 204);

  assertEquals([await stored(service), service.operations.at(-1)?.ids], [[], ids]);
});

Deno.test("createService() says that it is a part with which a collection shares a path", () => {
  const fields = { name: text({ max: 9 }) };
  const notes = resource({
    ...{ name: "messages", item: "Note", tag: { name: "Notes", description: "All notes" } },
    ...{ noun: ["a note", "notes"], fields, filters: [], readableBy: "everyone", writableBy: "owner" },
    examples: { item: { name: "Milk" }, change: {} },
  });

  const error = assertThrows(
    () => new Harness(new FakeKv().connect(), { catalogue: { ...OF_THINGS, resources: [THINGS, notes] } }),
    ResourceError,
  );

  assertEquals(
    error.message,
    "A part shares the path POST /v1/messages with another part, a resource or the rest of the service: rename it.",
  );
});

/** The messages as one process reads and writes them. */
class Messages {
  readonly store: MessageStore;
  readonly #transactions: Transactions;

  constructor(store: Store) {
    this.store = new MessageStore(store);
    this.#transactions = new Transactions(store, () => NOON);
  }

  async create(message: string, now = NOON, accountId = "a"): Promise<Message> {
    return (await this.#transactions.run(this.store.queuing({ message, accountId }, now))).result;
  }

  async remove(messages: readonly Message[]): Promise<void> {
    await Promise.all(messages.map((message) => this.#transactions.run(this.store.removing(message))));
  }
}

Deno.test("list() returns a message that 1.0.0 queued", async () => {
  await using service = await Harness.open();
  const made = { status: "queued", createdAt: "2027-01-15T12:00:00.000Z" } as const;
  const message: Message = { id: "msg_0hq1v76rk003oSm", message: "Hello", accountId: "a", ...made };
  await service.kv.set(["messages", message.id], new TextEncoder().encode(JSON.stringify(message)));
  await service.kv.set(["messages_waiting"], count(1));
  await service.kv.set(["messages_waiting", "a"], count(1));
  const messages = new Messages(service.store);

  assertEquals(await Array.fromAsync(messages.store.list(9)), [message]);
  assertEquals(await messages.store.countWaiting(), 1);
  await messages.remove([message]);
  assertEquals(await messages.store.countWaiting(), 0);
});

Deno.test("list() returns the oldest messages in order of creation, even if the clock goes back", async () => {
  await using service = await Harness.open();
  const messages = new Messages(service.store);
  const every = await Promise.all(upTo(230).map((number) => messages.create(`Hello ${number}`)));
  const back = await messages.create("back", NOON - MINUTE);
  every.push(back, await messages.create("ahead", NOON + 1));
  every.push(await new Messages(service.store).create("other", NOON + 2));
  const list = (count: number) => Array.fromAsync(messages.store.list(count));

  for (const count of [1, 100, 105, 200, 233, 1_000]) assertEquals(await list(count), every.slice(0, count));
  await messages.remove(every.slice(0, 220));

  assertEquals(await list(1_000), every.slice(220));
  assertEquals(back.createdAt, new Date(NOON - MINUTE).toISOString());
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

  const accepted = await Promise.all(upTo(MAX_WAITING + 40).map((index) => accept(index % 2 ? one : two)));

  assertEquals(accepted.filter((isAccepted) => isAccepted).length, MAX_WAITING);
  assertEquals(await one.store.countWaiting(), MAX_WAITING);
  const [first] = await Array.fromAsync(one.store.list(1));
  assert(first);
  await one.remove([first, first, { ...first, id: "msg_unknown" }]);
  await one.remove([first]);
  assertEquals(await one.store.countWaiting(), MAX_WAITING - 1);
  assertEquals([await accept(two), await accept(two)], [true, false]);
  assertEquals(await two.store.countWaiting(), MAX_WAITING);
});

Deno.test("operators' guide states the maximum numbers of messages", async () => {
  const guide = await Deno.readTextFile(new URL("../../src/operator/README.md", import.meta.url));
  const phrases = [
    `\`queue_full\` while ${MAX_WAITING.toLocaleString("en")} messages of the account are waiting`,
    `\`messages_waiting\` (of at most ${MAX_COUNTED.toLocaleString("en")} accounts)`,
  ];

  assertEquals(phrases.filter((phrase) => !guide.replaceAll(/\s+/g, " ").includes(phrase)), []);
});

/** The metrics of the queue, by name. */
async function queueOf(service: Harness): Promise<Readonly<Record<string, number>>> {
  const text = await (await service.fetch("GET /metrics", { key: OPERATOR_TOKEN })).text();
  const samples = text.matchAll(/^thing_store_(\w*message\w*) (\S+)$/gm);
  return Object.fromEntries([...samples].map(([, name = "", value]) => [name, Number(value)]));
}

Deno.test("GET /metrics returns the number of waiting messages and the age of the oldest", async () => {
  await using service = await Harness.open(OPERATED);
  assertEquals(await queueOf(service), { messages_waiting: 0, oldest_message_age_seconds: 0 });
  for (const message of ["one", "two"]) {
    await send(service, (await service.createAccount()).apiKey, message);
    service.now += 2_500;
  }

  assertEquals(await queueOf(service), { messages_waiting: 2, oldest_message_age_seconds: 5 });
});

Deno.test.each<[string, () => Promise<never>]>([["fails", fail], ["does not respond", hang]])(
  "GET /metrics omits only the queue while KV %s",
  async (_, read) => {
    await using service = await RecordingService.open(OPERATED);
    const { time } = service;
    const metrics = () => time.until(service.fetch("GET /metrics", { key: OPERATOR_TOKEN }), 10_000);
    service.disturbance = { read };

    const response = await metrics();
    // A hanging operation counts as a failure after its deadline.
    await time.advance(10_000);

    assertEquals(response.status, 200);
    const gauges = [...(await response.text()).matchAll(/^# TYPE thing_store_(\w+) gauge$/gm)];
    const names = [
      "build_info",
      "requests_in_flight",
      "requests_capacity",
      "leases",
      "leased_permits",
      "leased_places",
    ];
    assertEquals(gauges.map(([, name]) => name), names);
    assertMatch(await (await metrics()).text(), /^thing_store_kv_failures_total\{operation="read"\} [1-9]/m);
    await time.advance(10_000);
  },
);

/** Queues messages of an account, in this order. */
async function queue(service: Harness, key: string, texts: readonly string[]): Promise<void> {
  for (const message of texts) await send(service, key, message);
}

function textsOf({ out }: { readonly out: readonly string[] }): string[] {
  return out.map((line) => JSON.parse(line).message);
}

/** Makes a queued message one that only 1.0.0 accepted. */
async function rewrite({ kv }: Harness, message: string, text: string): Promise<void> {
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["messages"] })) {
    const stored = JSON.parse(new TextDecoder().decode(value));
    if (stored.message === message) await kv.set(key, encodeJson({ ...stored, message: text }));
  }
}

const TEXT = "two\u001b[2J\u007f\u009b2J\nlines 🐶";

Deno.test("messages take prints the oldest messages, one JSON object per line without controls, and removes them", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using service = await operator.serve(OPERATED);
  await queue(service, key, ["one", "two", "three", "four"]);
  await rewrite(service, "two", TEXT);

  const code = await operator.run("messages take 2");
  const [{ id: messageId, ...first }] = operator.out.map((line) => JSON.parse(line));

  assertEquals([code, typeof messageId], [0, "string"]);
  const createdAt = "2027-01-15T12:00:00.000Z";
  assertEquals(first, { message: "one", status: "queued", createdAt, accountId: id });
  assertEquals([textsOf(operator), operator.err], [["one", TEXT], ["Took 2 messages."]]);
  assertEquals(/\p{Cc}/u.test(operator.out.join("")), false);
  // Over HTTP, it does the same.
  const taken = await operate(service.app.fetch, ["messages", "take", "1"]);
  assertEquals([textsOf(taken), taken.err], [["three"], ["Took 1 message."]]);
  const [{ key: [, last] } = { key: [] }] = await Array.fromAsync(service.kv.list({ prefix: ["messages"] }));
  const removed = await operate(service.app.fetch, ["messages", "remove", "-"], `${String(last)}\nmsg_none`);
  assertEquals([removed.exit, removed.err], [0, ["Of 2 messages, removed those still waiting."]]);
  const { operation, ids } = service.operations.at(-1) ?? {};
  assertEquals([operation, ids], ["removeMessages", [last]]);
  assertEquals(await operator.run("messages take 9"), 0);
  assertEquals([operator.out, operator.err], [[], ["Took 0 messages."]]);
});

Deno.test("messages remove prints its progress, and accepts IDs that are no longer waiting", async () => {
  await using operator = await Operator.start();
  operator.input = upTo(1_001).map((number) => `msg_${number}`);

  assertEquals(await operator.run("messages remove -"), 0);

  assertEquals(operator.err, [
    "Processed 500 of 1001.",
    "Processed 1000 of 1001.",
    "Of 1001 messages, removed those still waiting.",
  ]);
});

Deno.test("messages take removes only messages that were printed", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve(OPERATED);
  const all = upTo(230).map((number) => `${number + 1}`);
  await queue(service, (await service.createAccount()).apiKey, all);
  const refusing: App = (request, info) =>
    request.url.includes("remove") ? new Response("{}", { status: 503 }) : service.app.fetch(request, info);

  operator.reader = (line) => line.includes('"4"') ? Promise.reject(new Error("gone")) : Promise.resolve();
  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([textsOf(operator), operator.err], [all.slice(0, 3), ["Failed: gone"]]);
  const refused = await operate(refusing, ["messages", "take", "5"]);
  assertEquals([refused.exit, textsOf(refused), refused.err], [1, all.slice(3, 8), [
    "The last messages that were printed could not be removed, so they will be printed again next time.",
    "The service returned 503.",
  ]]);

  operator.reader = () => Promise.resolve();
  assertEquals(await operator.run("messages take 227"), 0);
  assertEquals([textsOf(operator), operator.err], [all.slice(3), ["Took 227 messages."]]);
});

Deno.test.each([
  ["messages take 1 --json", "Unknown option '--json'"],
  ["messages take", "messages take needs a number N"],
  ["messages take 0", "N must be a whole number from 1"],
  ["messages take all", "N must be a whole number from 1"],
  ["messages remove", "messages remove needs - and ids on standard input"],
  ["messages remove msg_1", "messages remove reads ids from standard input: write -"],
])("COMMAND rejects '%s': %s", async (line, message) => {
  const { exit, out, err } = await operate(() => new Response(), line.split(" "));

  assertEquals([exit, out, err.length], [2, [], 1]);
  assertStringIncludes(err.join(), message);
  assertStringIncludes(err.join(), " See: deno task messages --help");
});
