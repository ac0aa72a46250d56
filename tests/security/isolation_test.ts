import { assert, assertEquals, assertLess, assertNotEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { HAMMER } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

/** Opens a workshop with a thing, and another account on the same KV. */
async function openTwo() {
  const workshop = await Workshop.open();
  const { account, apiKey } = await workshop.createAccount("free");
  const headers = { "idempotency-key": "once" };
  const first = await workshop.call("POST /v1/things", { json: HAMMER, headers });
  return { workshop, first, headers, stranger: apiKey, strangerId: account.id };
}

Deno.test("service never replays another account's response", async () => {
  const { workshop, first, headers, stranger } = await openTwo();
  await using _ = workshop;

  const second = await workshop.fetch("POST /v1/things", { key: stranger, json: HAMMER, headers });
  const other = await workshop.fetch("POST /v1/things", {
    key: stranger,
    json: { ...HAMMER, name: "Tom" },
    headers,
  });

  assertEquals([second.status, second.headers.get("idempotency-replayed")], [201, null]);
  assertNotEquals(second.headers.get("location"), first.headers.get("location"));
  await assertError(other, 422, "idempotency_key_reused");
});

Deno.test("service lets no account change another's things or learn whose they are", async () => {
  const { workshop, stranger, strangerId } = await openTwo();
  await using _ = workshop;

  for (const target of ["PATCH /v1/things/1", "DELETE /v1/things/1"]) {
    const json = target.startsWith("PATCH") ? { state: "lost" } : undefined;
    await assertError(await workshop.fetch(target, { key: stranger, json }), 403, "not_your_thing");
  }

  const list = await (await workshop.fetch("GET /v1/things", { key: stranger })).text();
  assertEquals(list, '[{"id":1,"name":"Hammer","weight":700,"state":"new","isSpare":false}]');
  await workshop.fetch("POST /v1/things", { key: stranger, json: HAMMER });
  const [, theirs] = await thingsIn(await workshop.call("GET /v1/things"));
  assert(theirs && !JSON.stringify(theirs).includes(strangerId));
});

Deno.test("service reads, rotates and closes only the account that the key belongs to", async () => {
  const { workshop, stranger, strangerId } = await openTwo();
  await using _ = workshop;
  for (let count = 0; count < 100; count++) await call(workshop, workshop.key);
  const before = await (await workshop.call("GET /v1/account")).json();
  const query = `?id=${before.id}&accountId=${before.id}`;
  const json = { id: before.id, accountId: before.id };
  const targets = ["GET /v1/account", "GET /v1/account/usage", "POST /v1/account/key", "DELETE /v1/account"];

  const refused = [await workshop.fetch("POST /v1/account/key", { key: stranger, json })];
  for (const target of targets) refused.push(await workshop.fetch(target + query, { key: stranger }));
  const shown = await (await workshop.fetch("GET /v1/account", { key: stranger })).json();
  const days = await (await workshop.fetch("GET /v1/account/usage?days=1", { key: stranger })).json();
  const rotated = await (await workshop.fetch("POST /v1/account/key", { key: stranger })).json();
  const closed = await workshop.fetch("DELETE /v1/account", { key: rotated.apiKey, json });

  assertEquals(refused.map(({ status }) => status), [400, 400, 400, 400, 400]);
  assertEquals([shown.id, shown.plan], [strangerId, "free"]);
  // The free plan admits 60 a minute, so a hundred would be those of the other account.
  assertLess(days[0].admitted, 100);
  assertEquals(closed.status, 204);
  assertEquals((await call(workshop, workshop.key)).status, 200);
  assertEquals((await call(workshop, rotated.apiKey)).code, "invalid_api_key");
});
