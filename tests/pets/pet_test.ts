import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { JSON_TYPE, listIds } from "./catalogue.ts";

const NAME = /^name must have 1 to 255 characters/;
const INT64 = /^categoryId must be an integer from -9223372036854775808 to 9223372036854775807/;
const STATUS = /^status must be one of available, pending, sold/;

Deno.test.each([
  ["no name", '{"categoryId":7}', /^name is required and must be a string/],
  ["no categoryId", '{"name":"Rex"}', /^categoryId is required and must be an integer/],
  ["names in another case", '{"Name":"Rex","categoryid":7}', /^name is required/],
  ["names in a prototype", '{"__proto__":{"name":"Rex","categoryId":7}}', /^name is required/],
  ["an empty name", '{"name":"","categoryId":7}', NAME],
  ["a name of 256 characters", `{"name":"${"é".repeat(256)}","categoryId":7}`, NAME],
  ["a name of null", '{"name":null,"categoryId":7}', /^name must be a string/],
  [
    "a name with half a surrogate pair",
    '{"name":"Rex\\ud800","categoryId":7}',
    /^name must not contain half/,
  ],
  ["a name that is a number", '{"name":7,"categoryId":7}', /^name must be a string/],
  ["a name that is a list", '{"name":["Rex"],"categoryId":7}', /^name must be a string/],
  ["categoryId 9223372036854775808", '{"name":"Rex","categoryId":9223372036854775808}', INT64],
  ["categoryId -9223372036854775809", '{"name":"Rex","categoryId":-9223372036854775809}', INT64],
  ["a categoryId of 60,000 digits", `{"name":"Rex","categoryId":${"9".repeat(60_000)}}`, INT64],
  ["categoryId 1.5", '{"name":"Rex","categoryId":1.5}', INT64],
  ['categoryId "1"', '{"name":"Rex","categoryId":"1"}', INT64],
  ["categoryId true", '{"name":"Rex","categoryId":true}', INT64],
  ["categoryId 1e400", '{"name":"Rex","categoryId":1e400}', INT64],
  ["categoryId null", '{"name":"Rex","categoryId":null}', INT64],
  ["categoryId []", '{"name":"Rex","categoryId":[]}', INT64],
  ["categoryId {}", '{"name":"Rex","categoryId":{}}', INT64],
  ["an unknown status", '{"name":"Rex","categoryId":7,"status":"lost"}', STATUS],
  ["a status in another case", '{"name":"Rex","categoryId":7,"status":"Sold"}', STATUS],
  ["an empty status", '{"name":"Rex","categoryId":7,"status":""}', STATUS],
  ["a status of null", '{"name":"Rex","categoryId":7,"status":null}', STATUS],
  ["a status that is a list", '{"name":"Rex","categoryId":7,"status":["sold"]}', STATUS],
  ["a status of Object.prototype", '{"name":"Rex","categoryId":7,"status":"constructor"}', STATUS],
])("createPet() refuses %s and stores nothing", async (_, body, message) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/pets", { key, body, headers: JSON_TYPE });

  assertLimitHeaders(response);
  await assertError(response, 400, "invalid_request", message);
  assertEquals(await listIds(service, key), []);
});

Deno.test.each([
  "0",
  "-1",
  "9007199254740993",
  "-9007199254740993",
  "9223372036854775807",
  "-9223372036854775808",
])("createPet() keeps categoryId %s digit for digit", async (categoryId) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const body = `{"categoryId":${categoryId},"name":"Rex"}`;
  const pet = `{"id":1,"name":"Rex","categoryId":${categoryId},"status":"available"}`;

  const created = await service.fetch("POST /v1/pets", { key, body, headers: JSON_TYPE });
  const got = await service.fetch("GET /v1/pets/1", { key });
  const listed = await service.fetch("GET /v1/pets", { key });
  const filtered = await service.fetch("GET /v1/pets?status=available", { key });

  assertEquals([created.status, got.status, listed.status, filtered.status], [201, 200, 200, 200]);
  assertEquals(await created.text(), pet);
  assertEquals(await got.text(), pet);
  assertEquals(await listed.text(), `[${pet}]`);
  assertEquals(await filtered.text(), `[${pet}]`);
});

Deno.test.each([
  ["one character", "R"],
  ["255 characters", "x".repeat(255)],
  ["255 characters outside the BMP", "🐶".repeat(255)],
  ["white space", " \t "],
  ["control characters and quotes", '\u0000"\\\u001b'],
])("createPet() keeps a name of %s as it was sent", async (_, name) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const created = await service.fetch("POST /v1/pets", { key, json: { name, categoryId: 7 } });
  const got = await service.fetch("GET /v1/pets/1", { key });

  assertEquals(created.status, 201);
  assertEquals((await created.json()).name, name);
  assertEquals((await got.json()).name, name);
});

Deno.test.each(["available", "pending", "sold"])("createPet() takes the status %s", async (status) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/pets", {
    key,
    json: { name: "Rex", categoryId: 7, status },
  });

  assertEquals(response.status, 201);
  assertEquals(await response.json(), { id: 1, name: "Rex", categoryId: 7, status });
});

Deno.test("createPet() ignores members it does not know, and a client's id", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const body = '{"id":99,"name":"Rex","categoryId":7,"tags":["a"],"__proto__":{"x":1},"constructor":null}';
  const pet = { id: 1, name: "Rex", categoryId: 7, status: "available" };

  const response = await service.fetch("POST /v1/pets", { key, body, headers: JSON_TYPE });
  const got = await service.fetch("GET /v1/pets/1", { key });

  assertEquals(response.status, 201);
  assertEquals(await response.json(), pet);
  assertEquals(await got.json(), pet);
});
