import { assertEquals } from "@std/assert";
import { Operator } from "../support/operator.ts";

/** An operator whose KV has these messages, in this order. */
async function withMessages(...texts: string[]): Promise<{ operator: Operator; id: string }> {
  const operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using service = await operator.serve();
  for (const message of texts) await service.fetch("POST /v1/messages", { key, json: { message } });
  return { operator, id };
}

function textsOf({ out }: Operator): string[] {
  return out.map((line) => JSON.parse(line).message);
}

Deno.test("messages take prints the oldest messages, one JSON object per line, and removes them", async () => {
  const { operator, id } = await withMessages("one", "two\nlines", "three");
  await using _ = operator;

  const code = await operator.run("messages take 2");
  const [{ id: messageId, ...first }] = operator.out.map((line) => JSON.parse(line));

  assertEquals(code, 0);
  assertEquals(typeof messageId, "string");
  assertEquals(first, {
    message: "one",
    status: "queued",
    createdAt: "2027-01-15T12:00:00.000Z",
    accountId: id,
  });
  assertEquals(textsOf(operator), ["one", "two\nlines"]);
  assertEquals(operator.out.filter((line) => line.includes("\n")), []);
  assertEquals(operator.err, ["Took 2 messages."]);
  await operator.run("messages take 9");
  assertEquals([textsOf(operator), operator.err], [["three"], ["Took 1 message."]]);
  assertEquals(await operator.run("messages take 9"), 0);
  assertEquals([operator.out, operator.err], [[], ["Took 0 messages."]]);
});

Deno.test("messages take prints whole messages, with control characters escaped", async () => {
  const text = "a\u001b[2J\u007f\u009b2J\nb";
  const { operator } = await withMessages(text);
  await using _ = operator;

  assertEquals(await operator.run("messages take 1"), 0);

  assertEquals(/\p{Cc}/u.test(operator.out.join()), false);
  assertEquals(textsOf(operator), [text]);
});

Deno.test("messages take removes only messages whose lines are written", async () => {
  const { operator } = await withMessages("one", "two", "three");
  await using _ = operator;
  await using service = await operator.serve();
  const waiting: number[] = [];
  operator.reader = async (line) => {
    waiting.push((await Array.fromAsync(service.kv.list({ prefix: ["messages"] }))).length);
    if (line.includes("two")) throw new Deno.errors.BrokenPipe("gone");
  };

  const code = await operator.run("messages take 3");

  assertEquals([code, textsOf(operator), operator.err], [141, ["one"], []]);
  operator.reader = () => Promise.resolve();
  await operator.run("messages take 3");
  assertEquals(textsOf(operator), ["two", "three"]);
  assertEquals(waiting, [3, 3]);
});

Deno.test("messages remove prints its progress, and accepts IDs that are no longer waiting", async () => {
  await using operator = await Operator.start();
  operator.input = Array.from({ length: 1_001 }, (_, number) => `msg_${number}`);

  assertEquals(await operator.run("messages remove -"), 0);

  assertEquals(operator.err, [
    "Processed 500 of 1001.",
    "Processed 1000 of 1001.",
    "Of 1001 messages, removed those still waiting.",
  ]);
});
