import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";

Deno.test("createPet() assigns ids from 1 when the store is empty", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });

  assertEquals(response.status, 201);
  assertEquals(response.headers.get("location"), "/v1/pets/1");
  assertEquals(await response.json(), { id: 1, name: "Rex", categoryId: 7, status: "available" });
});
