import { assertEquals, assertNotEquals } from "@std/assert";
import { pardon, reset } from "../../src/limits/usage.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { HAMMER } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
/** Fields that a later version stores in things. The numbers must not lose digits. */
const LATER = '"later":["shy",{"since":1.5}],"laterChip":9007199254740993,"__proto__":{"id":0}';

/** The row of the first thing in one of the indexes. */
const INDEXED = ["items_by", "things", "state", "new", 1];

/** Reads the text of a row. */
async function textOf(kv: Deno.Kv, ...key: Deno.KvKey): Promise<string> {
  const { value } = await kv.get(key);
  return value instanceof Uint8Array ? DECODER.decode(value) : "";
}

/** Changes the text of a row, as another process does. */
async function rewrite(kv: Deno.Kv, key: Deno.KvKey, change: (text: string) => string): Promise<void> {
  await kv.set(key, ENCODER.encode(change(await textOf(kv, ...key))));
}

function withField(name: string, value: unknown): (text: string) => string {
  return (text) => JSON.stringify({ ...JSON.parse(text), [name]: value });
}

/** Opens a workshop with a thing to which a later version has added fields. */
async function withLaterThing(): Promise<Workshop> {
  const workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await workshop.add({});
  for (const key of [["items", "things", 1], INDEXED]) {
    await rewrite(workshop.kv, key, (text) => text.replace("}\n", `,${LATER}}\n`));
  }
  await workshop.kv.set(["versions", "things"], ENCODER.encode("{}"));
  return workshop;
}

Deno.test("updateThing() keeps fields that a later version has added, digit for digit", async () => {
  await using workshop = await withLaterThing();
  const owner = (await textOf(workshop.kv, "items", "things", 1)).split("\n")[1];

  assertEquals((await workshop.patch(1, { name: "Tom", state: "lost" })).status, 200);

  const row = `{"id":1,"name":"Tom","weight":700,"state":"lost","isSpare":false,${LATER}}\n${owner}`;
  assertEquals(await textOf(workshop.kv, "items", "things", 1), row);
  assertEquals(await textOf(workshop.kv, "items_by", "things", "state", "lost", 1), row);
});

Deno.test("service keeps fields that a later version has added to an account", async () => {
  await using workshop = await Workshop.open();
  const { account: { id }, apiKey } = await workshop.createAccount();
  const badge = { colour: "red", since: 1.5 };
  await rewrite(workshop.kv, ["accounts", id], withField("badge", badge));

  const rotated = await workshop.call("POST /v1/account/key", { key: apiKey, json: { graceSeconds: 0 } });
  const { apiKey: key } = await rotated.json();
  for (const since of [workshop.now, null]) await workshop.accounts.suspend(id, since);
  await workshop.accounts.change(id, { limits: { minute: 5, day: 5 } });
  const shown = await (await workshop.call("GET /v1/account", { key })).json();
  await workshop.call("DELETE /v1/account", { key });

  const row = JSON.parse(await textOf(workshop.kv, "accounts", id));
  assertEquals(row.badge, badge);
  assertNotEquals(row.closedAt, null);
  assertEquals("badge" in shown, false);
});

Deno.test("service keeps what a later version has added to the rows of usage and of ids", async () => {
  await using workshop = await Workshop.open();
  const { account: { id }, apiKey: key } = await workshop.createAccount();
  const surplus = [7, -1.5, null, "text", { more: [] }];
  const surplusNow = async () => JSON.parse(await textOf(workshop.kv, "usage", id)).slice(13);
  await rewrite(workshop.kv, ["usage", id], (text) => JSON.stringify([...JSON.parse(text), ...surplus]));
  await workshop.add({ state: "lost" });
  await workshop.app.settle();
  await rewrite(workshop.kv, ["ids", "things"], withField("batch", 3));

  for (const ms of [0, 60_000, 86_400_000]) {
    workshop.now += ms;
    assertEquals((await workshop.call("POST /v1/things", { key, json: HAMMER })).status, 201);
    await workshop.app.settle();
    assertEquals(await surplusNow(), surplus);
  }
  await workshop.accounts.changeUsage(id, (usage) => reset(pardon(usage), workshop.now));
  assertEquals((await workshop.call("GET /v1/things", { key })).status, 200);
  await workshop.app.settle();

  assertEquals(await surplusNow(), surplus);
  assertEquals(JSON.parse(await textOf(workshop.kv, "usage", id))[2], 1);
  assertEquals(JSON.parse(await textOf(workshop.kv, "ids", "things")).batch, 3);
});
