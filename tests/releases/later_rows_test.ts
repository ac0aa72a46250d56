import { assertEquals, assertNotEquals } from "@std/assert";
import { pardon, reset } from "../../src/limits/usage.ts";
import { operated, OPERATOR_TOKEN } from "../support/desk.ts";
import { type ListedPet, REX, Shop } from "../support/pets.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
/** Fields that a later version stores in animals. The numbers must not lose digits. */
const LATER = '"later":["shy",{"since":1.5}],"laterChip":9007199254740993,"__proto__":{"id":0}';

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

/** Opens a shop with an animal to which a later version has added fields. */
async function shopWithLaterPet(): Promise<Shop> {
  const shop = await Shop.open({ operatorToken: OPERATOR_TOKEN });
  await shop.add("available");
  for (const key of [["pets", 1], ["pets_by_status", "available", 1]]) {
    await rewrite(shop.kv, key, (text) => text.replace("}\n", `,${LATER}}\n`));
  }
  await shop.kv.set(["catalogue"], ENCODER.encode("{}"));
  return shop;
}

const SHOWN: ListedPet = { id: 1, ...REX, status: "available" };

Deno.test("service does not show fields that a later version has added to an animal", async () => {
  await using shop = await shopWithLaterPet();
  await shop.add("sold");

  const list = await (await shop.call("GET /v1/pets")).text();
  const one = await shop.call("GET /v1/pets/1");
  const kept = await shop.patch(1, {}, { "if-match": one.headers.get("etag") ?? "" });
  const { out } = await operated(shop.app.fetch, ["items", "pets", "set", "1", "--status", "pending"]);
  const listed = await operated(shop.app.fetch, ["items", "pets", "list", "--json"]);

  assertEquals(list, `[${JSON.stringify(SHOWN)},${JSON.stringify({ ...SHOWN, id: 2, status: "sold" })}]`);
  assertEquals([one.status, await one.text()], [200, JSON.stringify(SHOWN)]);
  assertEquals([kept.status, await kept.text()], [200, JSON.stringify(SHOWN)]);
  assertEquals(out.map((line) => JSON.parse(line)), [{ ...SHOWN, status: "pending" }]);
  assertEquals(/later/i.test(listed.out.join()), false);
});

Deno.test("updatePet() keeps fields that a later version has added, digit for digit", async () => {
  await using shop = await shopWithLaterPet();
  const owner = (await textOf(shop.kv, "pets", 1)).split("\n")[1];

  assertEquals((await shop.patch(1, { name: "Tom", status: "sold" })).status, 200);

  const row = `{"id":1,"name":"Tom","categoryId":7,"status":"sold",${LATER}}\n${owner}`;
  assertEquals(await textOf(shop.kv, "pets", 1), row);
  assertEquals(await textOf(shop.kv, "pets_by_status", "sold", 1), row);
});

Deno.test("service keeps fields that a later version has added to an account", async () => {
  await using shop = await Shop.open();
  const { account: { id }, apiKey } = await shop.createAccount();
  const badge = { colour: "red", since: 1.5 };
  await rewrite(shop.kv, ["accounts", id], withField("badge", badge));

  const rotated = await shop.call("POST /v1/account/key", { key: apiKey, json: { graceSeconds: 0 } });
  const { apiKey: key } = await rotated.json();
  for (const since of [shop.now, null]) await shop.accounts.suspend(id, since);
  await shop.accounts.change(id, { limits: { minute: 5, day: 5 } });
  const shown = await (await shop.call("GET /v1/account", { key })).json();
  await shop.call("DELETE /v1/account", { key });

  const row = JSON.parse(await textOf(shop.kv, "accounts", id));
  assertEquals(row.badge, badge);
  assertNotEquals(row.closedAt, null);
  assertEquals("badge" in shown, false);
});

Deno.test("service keeps what a later version has added to the rows of usage and of ids", async () => {
  await using shop = await Shop.open();
  const { account: { id }, apiKey: key } = await shop.createAccount();
  const surplus = [7, -1.5, null, "text", { more: [] }];
  const surplusNow = async () => JSON.parse(await textOf(shop.kv, "usage", id)).slice(13);
  await rewrite(shop.kv, ["usage", id], (text) => JSON.stringify([...JSON.parse(text), ...surplus]));
  await shop.add("sold");
  await shop.app.settle();
  await rewrite(shop.kv, ["ids"], withField("batch", 3));

  for (const ms of [0, 60_000, 86_400_000]) {
    shop.now += ms;
    assertEquals((await shop.call("POST /v1/pets", { key, json: REX })).status, 201);
    await shop.app.settle();
    assertEquals(await surplusNow(), surplus);
  }
  await shop.accounts.changeUsage(id, (usage) => reset(pardon(usage), shop.now));
  assertEquals((await shop.call("GET /v1/pets", { key })).status, 200);
  await shop.app.settle();

  assertEquals(await surplusNow(), surplus);
  assertEquals(JSON.parse(await textOf(shop.kv, "usage", id))[2], 1);
  assertEquals(JSON.parse(await textOf(shop.kv, "ids")).batch, 3);
});
