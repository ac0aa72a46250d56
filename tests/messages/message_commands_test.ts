import { assertEquals, assertStringIncludes } from "@std/assert";
import type { App } from "../../src/app/app.ts";
import { cut, upTo } from "../support/client.ts";
import { operate, OPERATOR_TOKEN as TOKEN } from "../support/desk.ts";
import type { Harness } from "../support/harness.ts";
import { Operator } from "../support/operator.ts";

/** Queues messages of an account, in this order. */
async function queue(service: Harness, key: string, texts: readonly string[]): Promise<void> {
  for (const message of texts) await service.fetch("POST /v1/messages", { key, json: { message } });
}

function textsOf({ out }: { readonly out: readonly string[] }): string[] {
  return out.map((line) => JSON.parse(line).message);
}

const TEXT = "two\u001b[2J\u007f\u009b2J\nlines 🐶";

Deno.test("messages take prints the oldest messages, one JSON object per line without controls, and removes them", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using service = await operator.serve({ operatorToken: TOKEN });
  await queue(service, key, ["one", TEXT, "three", "four"]);

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

Deno.test("messages take removes only printed messages, even if a response breaks off", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve({ operatorToken: TOKEN });
  let respond: App = service.app.fetch;
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    async (request, info) => await respond(request, info),
  );
  operator.environment.set("SERVICE_URL", `http://127.0.0.1:${server.addr.port}`);
  operator.environment.set("OPERATOR_TOKEN", TOKEN);
  const all = upTo(230).map((number) => `${number + 1}`);
  await queue(service, (await service.createAccount()).apiKey, all);
  respond = async (request, info) => await cut(await service.app.fetch(request, info));

  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([operator.out, operator.err], [[], ["The connection broke. Nothing was changed."]]);

  operator.reader = (line) => line.includes('"4"') ? Promise.reject(new Error("gone")) : Promise.resolve();
  respond = service.app.fetch;
  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([textsOf(operator), operator.err], [all.slice(0, 3), ["Failed: gone"]]);

  operator.reader = () => Promise.resolve();
  respond = (request, info) =>
    request.url.includes("remove") ? new Response("{}", { status: 503 }) : service.app.fetch(request, info);
  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([textsOf(operator), operator.err], [all.slice(3, 8), [
    "The last messages that were printed could not be removed, so they will be printed again next time.",
    "The service returned 503.",
  ]]);

  respond = service.app.fetch;
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
