import { assertEquals } from "@std/assert";
import { BODY_LIMITS } from "../../src/http/body.ts";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { addPets, JSON_TYPE, listIds } from "./catalogue.ts";

const START = '{"name":"Rex","categoryId":7,"pad":"';
const REX = { id: 1, name: "Rex", categoryId: 7, status: "available" };

Deno.test("createPet() assigns ids from 1 when the store is empty", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });

  assertEquals(response.status, 201);
  assertEquals(response.headers.get("location"), "/v1/pets/1");
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-content-type-options"), "nosniff");
  assertLimitHeaders(response);
  assertEquals(await response.json(), REX);
});

Deno.test("getPet() finds the animal that createPet() located", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["sold", "pending"]);
  const created = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });

  const response = await service.fetch(`GET ${created.headers.get("location")}`, { key });

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertLimitHeaders(response);
  assertEquals(await response.json(), { ...REX, id: 3 });
});

Deno.test("getPet() takes an escaped petId", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available"]);

  const response = await service.fetch("GET /v1/pets/%31", { key });

  assertEquals(response.status, 200);
  assertEquals(await response.json(), REX);
});

Deno.test.each([
  "2",
  "0",
  "-1",
  "01",
  "+1",
  "1.0",
  "1e0",
  "0x1",
  "1n",
  "%201",
  "%00",
  "rex",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "1".repeat(400),
  "__proto__",
  "constructor",
])("getPet() does not find %s", async (petId) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available"]);

  const response = await service.fetch(`GET /v1/pets/${petId}`, { key });

  assertLimitHeaders(response);
  await assertError(response, 404, "pet_not_found", /petId/);
});

Deno.test.each([
  ["no body", null, JSON_TYPE, 400, "invalid_json"],
  ["no JSON", "name=Rex", JSON_TYPE, 400, "invalid_json"],
  ["a list", "[]", JSON_TYPE, 400, "invalid_request"],
  [
    "another content type",
    '{"name":"Rex","categoryId":7}',
    { "content-type": "text/plain" },
    400,
    "invalid_content_type",
  ],
  ["invalid UTF-8", new Uint8Array([0x22, 0xff, 0x22]), JSON_TYPE, 400, "invalid_json"],
  ["50,000 brackets", "[".repeat(50_000), JSON_TYPE, 400, "invalid_json"],
  [
    "25,000 brackets within",
    `${START}","x":${"[".repeat(25_000)}${"]".repeat(25_000)}}`,
    JSON_TYPE,
    400,
    "invalid_json",
  ],
  ["12 MiB", `${START}${"x".repeat(12 * 2 ** 20)}"}`, JSON_TYPE, 413, "payload_too_large"],
  [
    "a content-length of 12 MiB",
    "{}",
    { ...JSON_TYPE, "content-length": `${12 * 2 ** 20}` },
    413,
    "payload_too_large",
  ],
])("createPet() refuses %s and stores nothing", async (_, body, headers, status, code) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("POST /v1/pets", { key, body, headers });

  assertLimitHeaders(response);
  await assertError(response, status, code);
  assertEquals(await listIds(service, key), []);
});

Deno.test.each([
  ["in one piece", (body: string): BodyInit => body, {}],
  ["in one piece with a content-length", (body: string): BodyInit => body, { "content-length": "65536" }],
  ["in chunks", (body: string): BodyInit => chunked(body), {}],
])("createPet() takes 64 KiB %s and not one byte more", async (_, bodyOf, headers) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const body = START.padEnd(65_534, "x") + '"}';
  const init = { key, headers: { ...JSON_TYPE, ...headers } };

  const fits = await service.fetch("POST /v1/pets", { ...init, body: bodyOf(body) });
  const tooLong = await service.fetch("POST /v1/pets", { ...init, body: bodyOf(`${body} `) });

  assertEquals(BODY_LIMITS, { maxBytes: 65_536, timeoutMs: 10_000 });
  assertEquals(fits.status, 201);
  assertLimitHeaders(tooLong);
  await assertError(tooLong, 413, "payload_too_large", /65536 bytes/);
  assertEquals(await listIds(service, key), [1]);
});

Deno.test("listPets() lists nothing when the store is empty", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("GET /v1/pets", { key });

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("link"), null);
  assertLimitHeaders(response);
  assertEquals(await response.text(), "[]");
});

Deno.test.each([
  ["?status=available", [1, 4]],
  ["?status=pending", [2]],
  ["?status=sold", [3, 5, 6]],
  ["?status=sold&limit=2", [3, 5]],
  ["", [1, 2, 3, 4, 5, 6]],
])("listPets() with '%s' lists what fits, ascending by id", async (query, ids) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available", "pending", "sold", "available", "sold", "sold"]);

  assertEquals<unknown>(await listIds(service, key, query), ids);
});

function chunked(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  const middle = bytes.length / 2;
  return ReadableStream.from([bytes.subarray(0, middle), bytes.subarray(middle)]);
}
