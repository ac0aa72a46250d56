// A first test of a collection. Begin with a copy of it for your own.
import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { TOYS } from "./toys.ts";
import { OF_THINGS } from "../support/things.ts";

const ROBOT = { name: "Robot", priceCents: 1_999, material: "metal", inStock: true };

Deno.test("service adds a toy, lists it, and returns 400 for a price below 0", async () => {
  await using service = await Harness.open({ catalogue: { ...OF_THINGS, resources: [TOYS] } });
  const { apiKey: key } = await service.createAccount();

  const added = await service.fetch("POST /v1/toys", { key, json: ROBOT });
  const listed = await service.fetch("GET /v1/toys?material=metal", { key });
  const refused = await service.fetch("POST /v1/toys", { key, json: { ...ROBOT, priceCents: -1 } });

  assertEquals([added.status, listed.status], [201, 200]);
  assertEquals(await listed.json(), [{ id: 1, ...ROBOT }]);
  await assertError(refused, 400, "invalid_request", /priceCents must be an integer from 0/);
});
