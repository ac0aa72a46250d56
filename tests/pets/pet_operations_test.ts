import { assertEquals, assertMatch } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { JSON_TYPE } from "../support/client.ts";
import { REX, Shop } from "./shop.ts";

Deno.test("createPet() returns the animal, its location and its ETag", async () => {
  await using shop = await Shop.open();

  const response = await shop.call("POST /v1/pets", { json: REX });

  assertEquals(response.status, 201);
  assertEquals(response.headers.get("location"), "http://localhost:8000/v1/pets/1");
  assertEquals(response.headers.get("content-location"), "http://localhost:8000/v1/pets/1");
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-content-type-options"), "nosniff");
  assertMatch(response.headers.get("etag") ?? "", /^"[\da-f]{16}"$/);
  assertEquals(await response.json(), { id: 1, ...REX, status: "available" });
});

Deno.test.each(["0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"])(
  "service keeps every digit of categoryId %s, even if another field is changed",
  async (categoryId) => {
    await using shop = await Shop.open();
    const body = `{"categoryId":${categoryId},"name":"Rex"}`;
    const pet = `{"id":1,"name":"Rex","categoryId":${categoryId},"status":"sold"}`;
    const added = await shop.call("POST /v1/pets", { body, headers: JSON_TYPE });

    const changed = await shop.patch(1, { status: "sold" });
    const got = await shop.call("GET /v1/pets/1");
    const listed = await shop.call("GET /v1/pets");
    const filtered = await shop.call("GET /v1/pets?status=sold");

    assertEquals(await added.text(), pet.replace("sold", "available"));
    assertEquals(await changed.text(), pet);
    assertEquals(await got.text(), pet);
    assertEquals(await listed.text(), `[${pet}]`);
    assertEquals(await filtered.text(), `[${pet}]`);
  },
);

Deno.test.each([
  ["1.0", "1"],
  ["1e3", "1000"],
  ["9007199254740993.0", "9007199254740993"],
  ["-1.2e1", "-12"],
])("service stores the categoryId %s as %s", async (sent, stored) => {
  await using shop = await Shop.open();
  const request = { body: `{"categoryId":${sent},"name":"Rex"}`, headers: JSON_TYPE };

  const added = await shop.call("POST /v1/pets", request);
  const changed = await shop.call("PATCH /v1/pets/1", request);
  const listed = await shop.call("GET /v1/pets");

  const pet = `{"id":1,"name":"Rex","categoryId":${stored},"status":"available"}`;
  assertEquals([await added.text(), await changed.text(), await listed.text()], [pet, pet, `[${pet}]`]);
});

Deno.test.each(["1.5", "12e-1", "1e19", "1e400", "9223372036854775808.0"])(
  "createPet() rejects the categoryId %s",
  async (categoryId) => {
    await using shop = await Shop.open();
    const body = `{"name":"Rex","categoryId":${categoryId}}`;

    const response = await shop.call("POST /v1/pets", { body, headers: JSON_TYPE });

    await assertError(
      response,
      400,
      "invalid_request",
      /^The field categoryId must (not have a fraction|be an integer from)/,
    );
  },
);

Deno.test.each(
  ["2", "0", "-1", "01", "+1", "1.0", "1e0", "0x1", "1n", "%201", "%00", "rex", "__proto__", "constructor"]
    .concat("9007199254740993", "9223372036854775807", "9223372036854775808", "1".repeat(400)),
)("service returns 404 pet_not_found for the ID %s", async (petId) => {
  await using shop = await Shop.open();
  await shop.add("available");

  for (const init of [{}, { method: "PATCH", json: {} }, { method: "DELETE" }]) {
    const response = await shop.call(`${init.method ?? "GET"} /v1/pets/${petId}`, init);

    const isId = /^[1-9]\d*$/.test(petId);
    const reason = isId ? /^No animal has this petId\.$/ : /; petId must be an integer from 1\.$/;
    await assertError(response, 404, "pet_not_found", reason);
  }
  assertEquals(await shop.ids(), [1]);
});

Deno.test.each([
  ["", [1, 2, 3, 4, 5, 6]],
  ["?status=available", [1, 4]],
  ["?status=pending", [2]],
  ["?status=sold", [3, 5, 6]],
  ["?status=sold&limit=2", [3, 5]],
  ["?status=sold&cursor=Mw", [5, 6]],
  ["?cursor=Ng", []],
  ["?cursor=OTAwNzE5OTI1NDc0MDk5MQ", []],
])("listPets() with '%s' returns the matching animals, ascending by ID: %o", async (query, ids) => {
  await using shop = await Shop.open();
  await shop.add("available", "pending", "sold", "available", "sold", "sold");

  assertEquals<unknown>(await shop.ids(query), ids);
});

Deno.test("listPets() returns an empty list if there are no animals", async () => {
  await using shop = await Shop.open();

  const empty = await shop.call("GET /v1/pets");

  assertEquals(empty.status, 200);
  assertEquals(empty.headers.get("content-type"), "application/json");
  assertEquals(empty.headers.get("link"), null);
  assertEquals(await empty.text(), "[]");
});

Deno.test.each(["/v1/pets", "/v1/pets?limit=1", "/v1/pets?status=sold", "/v1/pets/1"])(
  "service lets clients cache and revalidate GET and HEAD %s",
  async (path) => {
    await using shop = await Shop.open();
    await shop.add("available", "sold");
    const first = await shop.call(`GET ${path}`);
    const etag = first.headers.get("etag") ?? "";

    const again = await shop.call(`GET ${path}`, { headers: { "if-none-match": etag } });
    const other = await shop.call(`HEAD ${path}`, { headers: { "if-none-match": '"other"' } });

    assertEquals([first.status, again.status, other.status], [200, 304, 200]);
    for (const { headers } of [first, again, other]) {
      assertEquals(headers.get("etag"), etag);
      assertEquals(headers.get("cache-control"), "private, no-cache");
      assertEquals(headers.get("vary"), "Origin");
      assertEquals(headers.get("link"), first.headers.get("link"));
    }
    assertEquals(again.headers.get("content-type"), null);
    assertEquals(again.body, null);
  },
);

Deno.test("getOpenApi() says what interface 1.0.0 calls the schema of an animal to add", async () => {
  await using shop = await Shop.open();

  const response = await shop.call("GET /v1/openapi.json");

  assertEquals(response.status, 200);
  const { components: { schemas } } = await response.json();
  assertMatch(schemas.PetCreation.description, /Interface 1\.0\.0 calls this schema NewPet\./);
});
