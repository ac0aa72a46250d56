import { assertEquals } from "@std/assert";
import { Harness } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, SAMPLES } from "../support/operations.ts";
import { JSON_TYPE, REX, Shop } from "../support/pets.ts";

const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const VALUES = ['{"status":"sold","isAdmin":true}', '"x"', "null", "[]", '{"prototype":{"status":"sold"}}'];

/** The names that every object inherits. */
function inheritedNames(): string {
  return JSON.stringify(
    [Object.prototype, Array.prototype, Function.prototype].map((prototype) =>
      Object.getOwnPropertyNames(prototype)
    ),
  );
}

Deno.test("service ignores or refuses body fields that are named like inherited properties", async () => {
  const before = inheritedNames();

  for (const { operation, target, request: { json } } of SAMPLES) {
    if (json === undefined) continue;
    for (const name of NAMES) {
      for (const value of VALUES) {
        await using shop = await Shop.open(ALL);
        await shop.add("available");
        await addKnownAccounts(shop);
        const body = JSON.stringify(json).replace("{", `{"${name}":${value},`);
        const credential = credentialFor(operation, shop.key);
        const response = await shop.fetch(target, { ...credential, headers: JSON_TYPE, body });
        const text = await response.text();
        const isRefused = response.status === 400 && text.includes(`unknown member ${name}`);
        const outcome = [response.ok || isRefused, text.includes("sold"), text.includes("isAdmin")];
        assertEquals([target, body, ...outcome], [target, body, true, false, false]);
        assertEquals(isRefused, operation.isExtension === true || operation.access === "operator");
      }
    }
  }

  assertEquals(inheritedNames(), before);
  assertEquals(Reflect.get({}, "status"), undefined);
});

Deno.test("service treats names of inherited properties like any others in URLs, headers and keys", async () => {
  await using shop = await Shop.open();

  for (const name of NAMES) {
    const statuses = [];
    for (
      const path of [
        `/v1/pets/${name}`,
        `/v1/${name}`,
        `/${name}`,
        `/v1/pets?status=${name}`,
        `/v1/pets?${name}=1`,
      ]
    ) {
      statuses.push((await shop.call(`GET ${path}`)).status);
    }
    statuses.push((await shop.fetch("GET /v1/pets", { key: name })).status);
    statuses.push((await shop.fetch(`${name} /v1/pets`, { key: shop.key })).status);
    assertEquals(statuses, [404, 404, 404, 400, 200, 401, 405], name);
    const headers = { "idempotency-key": name };
    for (const replayed of [null, "true"]) {
      const response = await shop.call("POST /v1/pets", { json: REX, headers });
      assertEquals([response.status, response.headers.get("idempotency-replayed")], [201, replayed]);
    }
  }
});

Deno.test("service accepts an account named __proto__", async () => {
  await using service = await Harness.open();

  const response = await service.fetch("POST /v1/accounts", { json: { name: "__proto__" } });

  assertEquals([response.status, (await response.json()).name], [201, "__proto__"]);
});
