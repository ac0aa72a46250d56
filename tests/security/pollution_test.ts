import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { REX, Shop } from "../pets/shop.ts";

const TOKEN = "the-operators-token-in-this-one-test";
const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const VALUES = ['{"status":"sold","isAdmin":true}', '"x"', "null", "[]", '{"prototype":{"status":"sold"}}'];

/** What every object inherits. */
function inherited(): string {
  return JSON.stringify(
    [Object.prototype, Array.prototype, Function.prototype].map((prototype) =>
      Object.getOwnPropertyNames(prototype)
    ),
  );
}

Deno.test("service takes members named like what objects inherit for unknown ones", async () => {
  await using shop = await Shop.open({ operatorToken: TOKEN });
  const before = inherited();
  const targets = [
    "POST /v1/pets",
    "PATCH /v1/pets/1",
    "POST /v1/messages",
    "POST /v1/account/key",
    "POST /operator",
  ];
  await shop.add("available");

  for (const name of NAMES) {
    shop.now += 3_600_000; // An account's key can be rotated ten times in an hour.
    for (const value of VALUES) {
      const members =
        `"${name}":${value},"name":"Rex","categoryId":7,"message":"Hello","args":["accounts","list"]`;
      for (const target of targets) {
        const key = target === "POST /operator" ? TOKEN : shop.key;
        const headers = { "content-type": "application/json" };
        const response = await shop.fetch(target, { key, headers, body: `{${members}}` });
        const body = await response.text();
        assertEquals([response.status < 300, body.includes("sold"), body.includes("isAdmin")], [
          true,
          false,
          false,
        ], target);
        if (target === "POST /v1/account/key") shop.key = JSON.parse(body).apiKey;
      }
    }
  }

  assertEquals(inherited(), before);
  assertEquals(Reflect.get({}, "status"), undefined);
});

Deno.test("service finds nothing under names that objects inherit, in paths, queries, headers and keys", async () => {
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

Deno.test("service stores an account named like what objects inherit", async () => {
  await using service = await Harness.open();

  const response = await service.fetch("POST /v1/accounts", { json: { name: "__proto__" } });

  assertEquals([response.status, (await response.json()).name], [201, "__proto__"]);
});
