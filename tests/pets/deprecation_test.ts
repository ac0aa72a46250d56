import { assertEquals, assertMatch } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { addPets, listIds } from "./catalogue.ts";

const SUNSET = Date.UTC(2030, 11, 5);

Deno.test.each([
  ["an animal", "1", 200],
  ["a missing animal", "2", 404],
])("getPet() announces its removal with %s", async (_, petId, status) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available"]);

  const response = await service.fetch(`GET /v1/pets/${petId}`, { key });

  assertEquals(response.status, status);
  assertDeprecated(response);
});

Deno.test("getPet() is gone from its sunset on", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available"]);

  service.now = SUNSET - 1;
  const last = await service.fetch("GET /v1/pets/1", { key });
  service.now = SUNSET;
  const first = await service.fetch("GET /v1/pets/1", { key });
  const missing = await service.fetch("GET /v1/pets/rex", { key });

  assertEquals(last.status, 200);
  for (const response of [first, missing]) {
    assertDeprecated(response);
    assertLimitHeaders(response);
    await assertError(response, 410, "gone", /status filter/);
  }
});

Deno.test("getPet() asks for a key also after its sunset", async () => {
  using service = await Harness.open();
  service.now = SUNSET;

  await assertError(await service.fetch("GET /v1/pets/1"), 401, "missing_api_key");
});

Deno.test("listPets() and createPet() outlive getPet()", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  service.now = SUNSET;

  const created = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });

  assertEquals(created.status, 201);
  for (const name of ["deprecation", "sunset", "link"]) assertEquals(created.headers.get(name), null);
  assertEquals(await listIds(service, key), [1]);
});

Deno.test("getPet() links to a document on its deprecation, open to anyone", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const { headers } = await service.fetch("GET /v1/pets/1", { key });
  const path = /<([^>]+)>; rel="deprecation"/.exec(headers.get("link") ?? "")?.[1];

  const document = await service.fetch(`GET ${path}`);

  assertEquals(document.status, 200);
  assertEquals(document.headers.get("content-type"), "text/plain; charset=utf-8");
  assertEquals(document.headers.get("x-ratelimit-limit"), null);
  assertMatch(await document.text(), /5 December 2030[^]+GET \/v1\/pets with the status filter/);
});

/** Headers of RFC 9745, RFC 8594 and RFC 8288. */
function assertDeprecated({ headers }: Response): void {
  assertEquals(headers.get("deprecation"), `@${Date.UTC(2025, 11, 5) / 1000}`);
  assertEquals(headers.get("sunset"), "Thu, 05 Dec 2030 00:00:00 GMT");
  assertMatch(headers.get("link") ?? "", /<\/docs\/deprecations>; rel="deprecation"/);
  assertMatch(headers.get("link") ?? "", /<\/v1\/pets>; rel="successor-version"/);
}
