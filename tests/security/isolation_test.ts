import { assert, assertEquals, assertLess, assertNotEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { petsIn, REX, Shop } from "../support/pets.ts";

/** Opens a shop with an animal, and another account on the same KV. */
async function openTwo() {
  const shop = await Shop.open();
  const { account, apiKey } = await shop.createAccount("free");
  const headers = { "idempotency-key": "once" };
  const first = await shop.call("POST /v1/pets", { json: REX, headers });
  return { shop, first, headers, stranger: apiKey, strangerId: account.id };
}

Deno.test("service never replays another account's response", async () => {
  const { shop, first, headers, stranger } = await openTwo();
  await using _ = shop;

  const second = await shop.fetch("POST /v1/pets", { key: stranger, json: REX, headers });
  const other = await shop.fetch("POST /v1/pets", { key: stranger, json: { ...REX, name: "Tom" }, headers });

  assertEquals([second.status, second.headers.get("idempotency-replayed")], [201, null]);
  assertNotEquals(second.headers.get("location"), first.headers.get("location"));
  await assertError(other, 422, "idempotency_key_reused");
});

Deno.test("service lets no account change another's animals or learn whose they are", async () => {
  const { shop, stranger, strangerId } = await openTwo();
  await using _ = shop;

  for (const target of ["PATCH /v1/pets/1", "DELETE /v1/pets/1"]) {
    const json = target.startsWith("PATCH") ? { status: "sold" } : undefined;
    await assertError(await shop.fetch(target, { key: stranger, json }), 403, "not_your_pet");
  }

  const list = await (await shop.fetch("GET /v1/pets", { key: stranger })).text();
  assertEquals(list, '[{"id":1,"name":"Rex","categoryId":7,"status":"available"}]');
  await shop.fetch("POST /v1/pets", { key: stranger, json: REX });
  const [, theirs] = await petsIn(await shop.call("GET /v1/pets"));
  assert(theirs && !JSON.stringify(theirs).includes(strangerId));
});

Deno.test("service reads, rotates and closes only the account that the key belongs to", async () => {
  const { shop, stranger, strangerId } = await openTwo();
  await using _ = shop;
  for (let count = 0; count < 100; count++) await call(shop, shop.key);
  const before = await (await shop.call("GET /v1/account")).json();
  const query = `?id=${before.id}&accountId=${before.id}`;
  const json = { id: before.id, accountId: before.id };
  const targets = ["GET /v1/account", "GET /v1/account/usage", "POST /v1/account/key", "DELETE /v1/account"];

  const refused = [await shop.fetch("POST /v1/account/key", { key: stranger, json })];
  for (const target of targets) refused.push(await shop.fetch(target + query, { key: stranger }));
  const shown = await (await shop.fetch("GET /v1/account", { key: stranger })).json();
  const days = await (await shop.fetch("GET /v1/account/usage?days=1", { key: stranger })).json();
  const rotated = await (await shop.fetch("POST /v1/account/key", { key: stranger })).json();
  const closed = await shop.fetch("DELETE /v1/account", { key: rotated.apiKey, json });

  assertEquals(refused.map(({ status }) => status), [400, 400, 400, 400, 400]);
  assertEquals([shown.id, shown.plan], [strangerId, "free"]);
  // The free plan admits 60 a minute, so a hundred would be those of the other account.
  assertLess(days[0].admitted, 100);
  assertEquals(closed.status, 204);
  assertEquals((await call(shop, shop.key)).status, 200);
  assertEquals((await call(shop, rotated.apiKey)).code, "invalid_api_key");
});
