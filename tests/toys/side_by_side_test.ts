import { assertEquals } from "@std/assert";
import { PETS } from "../../src/pets/pets.ts";
import type { Catalogue } from "../../src/resource/mod.ts";
import { REX, Shop } from "../support/pets.ts";
import { TOYS } from "./toys.ts";

const BOTH: Catalogue = { title: "Animals and Toys", resources: [PETS, TOYS] };
const REVERSED: Catalogue = { title: "Toys and Animals", resources: [TOYS, PETS] };
const ROBOT = { name: "Robot", priceCents: 1_999, material: "metal", inStock: true };

Deno.test("service serves animals and toys side by side, in whichever order they are declared", async () => {
  await using shop = await Shop.open({ catalogue: BOTH });
  await using beside = shop.beside({ catalogue: REVERSED });
  const list = async (name: string, service = shop) => await (await service.call(`GET /v1/${name}`)).json();

  await shop.call("POST /v1/pets", { json: REX });
  await shop.call("POST /v1/toys", { json: ROBOT });
  await shop.call("POST /v1/toys", { json: { ...ROBOT, name: "Ball" } });
  const pets = [{ id: 1, ...REX, status: "available" }];
  const toys = [{ id: 1, ...ROBOT }, { id: 2, ...ROBOT, name: "Ball" }];

  assertEquals([await list("pets"), await list("toys")], [pets, toys]);
  assertEquals([await list("pets", beside), await list("toys", beside)], [pets, toys]);
  await beside.call("DELETE /v1/toys/1");
  await beside.call("POST /v1/pets", { json: REX });
  assertEquals(await list("toys"), toys.slice(1));
  assertEquals((await list("pets")).length, 2);
  assertEquals((await shop.call("GET /v1/pets/1")).status, 200);
  assertEquals((await shop.call("GET /v1/toys/1")).status, 404);
});

Deno.test("a change to one collection leaves what is kept of the other", async () => {
  await using shop = await Shop.open({ catalogue: BOTH });
  const etagOf = async (name: string) => (await shop.call(`GET /v1/${name}`)).headers.get("etag");
  await shop.call("POST /v1/pets", { json: REX });
  const { versionstamp } = await shop.kv.get(["catalogue"]);
  const before = await etagOf("pets");

  await shop.call("POST /v1/toys", { json: ROBOT });

  assertEquals((await shop.kv.get(["catalogue"])).versionstamp, versionstamp);
  assertEquals(await etagOf("pets"), before);
});

Deno.test("an Idempotency-Key of one collection means nothing to another", async () => {
  await using shop = await Shop.open({ catalogue: BOTH });
  const headers = { "idempotency-key": "once" };

  const pet = await shop.call("POST /v1/pets", { json: REX, headers });
  const toy = await shop.call("POST /v1/toys", { json: ROBOT, headers });

  assertEquals([pet.status, toy.status, toy.headers.get("idempotency-replayed")], [201, 201, null]);
});
