import { assertEquals } from "@std/assert";
import type { Catalogue } from "../../src/resource/mod.ts";
import { HAMMER, OF_THINGS, THINGS } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";
import { TOYS } from "./toys.ts";

const BOTH: Catalogue = { ...OF_THINGS, resources: [THINGS, TOYS] };
const REVERSED: Catalogue = { ...OF_THINGS, resources: [TOYS, THINGS] };
const ROBOT = { name: "Robot", priceCents: 1_999, material: "metal", inStock: true };

Deno.test("service serves two collections side by side, in whichever order they are declared", async () => {
  await using shop = await Workshop.open({ catalogue: BOTH });
  await using beside = shop.beside({ catalogue: REVERSED });
  const list = async (name: string, service = shop) => await (await service.call(`GET /v1/${name}`)).json();

  await shop.call("POST /v1/things", { json: HAMMER });
  await shop.call("POST /v1/toys", { json: ROBOT });
  await shop.call("POST /v1/toys", { json: { ...ROBOT, name: "Ball" } });
  const things = [{ id: 1, ...HAMMER, state: "new", isSpare: false }];
  const toys = [{ id: 1, ...ROBOT }, { id: 2, ...ROBOT, name: "Ball" }];

  assertEquals([await list("things"), await list("toys")], [things, toys]);
  assertEquals([await list("things", beside), await list("toys", beside)], [things, toys]);
  await beside.call("DELETE /v1/toys/1");
  await beside.call("POST /v1/things", { json: HAMMER });
  assertEquals(await list("toys"), toys.slice(1));
  assertEquals((await list("things")).length, 2);
  assertEquals((await shop.call("GET /v1/things/1")).status, 200);
  assertEquals((await shop.call("GET /v1/toys/1")).status, 404);
});

Deno.test("a change to one collection leaves what is kept of the other", async () => {
  await using shop = await Workshop.open({ catalogue: BOTH });
  const etagOf = async (name: string) => (await shop.call(`GET /v1/${name}`)).headers.get("etag");
  await shop.call("POST /v1/things", { json: HAMMER });
  const { versionstamp } = await shop.kv.get(THINGS.rows.version);
  const before = await etagOf("things");

  await shop.call("POST /v1/toys", { json: ROBOT });

  assertEquals((await shop.kv.get(THINGS.rows.version)).versionstamp, versionstamp);
  assertEquals(await etagOf("things"), before);
});

Deno.test("an Idempotency-Key of one collection means nothing to another", async () => {
  await using shop = await Workshop.open({ catalogue: BOTH });
  const headers = { "idempotency-key": "once" };

  const thing = await shop.call("POST /v1/things", { json: HAMMER, headers });
  const toy = await shop.call("POST /v1/toys", { json: ROBOT, headers });

  assertEquals([thing.status, toy.status, toy.headers.get("idempotency-replayed")], [201, 201, null]);
});
