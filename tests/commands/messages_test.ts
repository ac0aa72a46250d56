import { assertEquals, assertStringIncludes } from "@std/assert";
import { NOON } from "../harness.ts";
import { Operator } from "./operator.ts";

/** An operator, on whose KV these messages were accepted in this order. */
async function withMessages(texts: readonly string[]): Promise<Operator> {
  const operator = await Operator.start();
  const { secret: key } = await operator.createKey("business");
  using service = await operator.serve();
  for (const message of texts) {
    const { status } = await service.fetch("POST /v1/messages", { key, json: { message } });
    assertEquals(status, 202);
  }
  return operator;
}

function texts(lines: readonly string[]): string[] {
  return lines.map((line) => JSON.parse(line).message);
}

Deno.test("messages take prints the oldest messages, a JSON object a line, and removes them", async () => {
  await using operator = await withMessages(["one", "two\nlines", "three"]);

  const code = await operator.run("messages", "take", "2");

  assertEquals(code, 0);
  assertEquals(operator.out.map((line) => JSON.parse(line)), [
    { id: "msg_1", message: "one", status: "queued", createdAt: new Date(NOON).toISOString() },
    { id: "msg_2", message: "two\nlines", status: "queued", createdAt: new Date(NOON).toISOString() },
  ]);
  assertEquals(operator.out.filter((line) => line.includes("\n")), []);
  assertEquals(operator.err, ["Took 2 messages."]);

  await operator.run("messages", "take", "9");
  assertEquals(texts(operator.out), ["three"]);
  assertEquals(operator.err, ["Took 1 message."]);

  assertEquals(await operator.run("messages", "take", "9"), 0);
  assertEquals([operator.out, operator.err], [[], ["Took 0 messages."]]);
});

Deno.test("messages take keeps the order when there are hundreds", async () => {
  const all = Array.from({ length: 230 }, (_, index) => `${index}`);
  await using operator = await withMessages(all);

  await operator.run("messages", "take", "225");
  assertEquals(texts(operator.out), all.slice(0, 225));

  await operator.run("messages", "take", "225");
  assertEquals(texts(operator.out), all.slice(225));
});

Deno.test("messages take prints a message again when its output was cut short", async () => {
  await using operator = await withMessages(["one", "two", "three"]);
  operator.reader = (line) =>
    line.includes("two") ? Promise.reject(new Deno.errors.BrokenPipe("gone")) : Promise.resolve();

  const code = await operator.run("messages", "take", "3");

  assertEquals(code, 1);
  assertEquals(texts(operator.out), ["one"]);
  assertEquals(operator.err.length, 1);
  assertStringIncludes(operator.err.join(), "gone");

  operator.reader = () => Promise.resolve();
  assertEquals(await operator.run("messages", "take", "3"), 0);
  assertEquals(texts(operator.out), ["two", "three"]);
});

Deno.test("messages take waits until a line is written before it removes the message and goes on", async () => {
  await using operator = await withMessages(["one", "two"]);
  using service = await operator.serve();
  const waiting: number[] = [];
  operator.reader = async () => {
    waiting.push((await Array.fromAsync(service.kv.list({ prefix: ["messages"] }))).length);
  };

  await operator.run("messages", "take", "2");

  assertEquals(waiting, [2, 1]);
});

Deno.test("messages take gives each message an id of its own after some were taken", async () => {
  await using operator = await withMessages(["one", "two"]);
  await operator.run("messages", "take", "2");
  const { secret: key } = await operator.createKey();
  using service = await operator.serve();

  const response = await service.fetch("POST /v1/messages", { key, json: { message: "three" } });

  assertEquals((await response.json()).id, "msg_3");
});
