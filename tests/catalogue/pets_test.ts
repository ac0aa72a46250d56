import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { IDENTITY } from "../../src/catalogue/identity.ts";
import { HAS_ANIMALS } from "../process/shipped.ts";
import { assertError } from "../support/assertions.ts";
import { JSON_TYPE } from "../support/client.ts";
import { bytesOf } from "../support/stored_rows.ts";
import { Workshop } from "../support/workshop.ts";

/** These run only if the catalogue declares animals. */
const test = HAS_ANIMALS ? Deno.test : Deno.test.ignore;
const OF_PETS = { catalogue: CATALOGUE };
const ROOT = `${import.meta.dirname}/../..`;
const MIN_INT64 = -(2n ** 63n);
const REX = { name: "Rex", categoryId: 7 };

test("createPet() adds an animal that is available, unless the request says otherwise", async () => {
  await using workshop = await Workshop.open(OF_PETS);

  const added = await workshop.call("POST /v1/pets", { json: REX });
  const sold = await workshop.call("POST /v1/pets", { json: { ...REX, status: "sold" } });

  assertEquals(added.headers.get("location"), "http://localhost:8000/v1/pets/1");
  assertEquals(await added.json(), { id: 1, ...REX, status: "available" });
  assertEquals(await sold.json(), { id: 2, ...REX, status: "sold" });
  const listed = await workshop.call("GET /v1/pets?status=sold");
  assertEquals(await listed.json(), [{ id: 2, ...REX, status: "sold" }]);
  await assertError(
    await workshop.call("DELETE /v1/pets/3"),
    404,
    "pet_not_found",
    /^No animal has this petId/,
  );
  for (const [length, status] of [[255, 201], [256, 400]] as const) {
    const json = { ...REX, name: "é".repeat(length) };
    assertEquals((await workshop.call("POST /v1/pets", { json })).status, status);
  }
});

test("an account can store as much with animals as the table of threats says, and no more", async () => {
  const sizes: number[] = [];
  for (const character of ["🐶", '"']) {
    await using workshop = await Workshop.open(OF_PETS);
    const before = await bytesOf(workshop.kv);
    const body = `{"name":${
      JSON.stringify(character.repeat(255))
    },"categoryId":${MIN_INT64},"status":"available"}`;
    const headers = { ...JSON_TYPE, "idempotency-key": "k".repeat(255) };
    assertEquals((await workshop.call("POST /v1/pets", { body, headers })).status, 201);
    sizes.push(await bytesOf(workshop.kv) - before);
  }

  const megabytes = Math.ceil(Math.max(...sizes) * 1_000 / 1e6);
  const table = await Deno.readTextFile(`${ROOT}/tests/security/README.md`);
  assertStringIncludes(table, ` or ${megabytes} MB of animals`);
});

test("getPet() announces its removal in 2030, and returns 410 from then on", async () => {
  await using workshop = await Workshop.open(OF_PETS);
  await workshop.call("POST /v1/pets", { json: REX });

  const { status, headers } = await workshop.call("GET /v1/pets/1");
  workshop.now = Date.UTC(2030, 11, 5);
  const gone = await workshop.call("GET /v1/pets/1");

  assertEquals([status, headers.get("deprecation")], [200, `@${Date.UTC(2025, 11, 5) / 1000}`]);
  assertEquals(headers.get("sunset"), "Thu, 05 Dec 2030 00:00:00 GMT");
  await assertError(gone, 410, "gone", /status filter/);
});

test("getOpenApi() says what interface 1.0.0 calls the schema of an animal to add", async () => {
  await using workshop = await Workshop.open(OF_PETS);

  const response = await workshop.call("GET /v1/openapi.json");

  assertEquals(response.status, 200);
  const { components: { schemas } } = await response.json();
  assertMatch(schemas.PetCreation.description, /Interface 1\.0\.0 calls this schema NewPet\./);
});

test("nothing outside src/catalogue names an animal, a plan, a key prefix or the print of the page", async () => {
  const { plans, keyPrefix } = CATALOGUE;
  const names = Object.keys(plans.limits).concat(plans.own).join("|");
  const words = new RegExp(
    `\\b(?:(?:pet|animal)s?|${IDENTITY.print.name})\\b|["'](?:${names})["']|\\b${keyPrefix}_`,
    "i",
  );
  const files = ["main.ts", ...await sourcesIn("src")];

  const found = (await Promise.all(files.map(async (file) => {
    const lines = (await Deno.readTextFile(`${ROOT}/${file}`)).split("\n");
    return lines.filter((line) => words.test(line)).map((line) => `${file}: ${line}`);
  }))).flat();

  assertEquals(found, []);
});

/** The code below a folder, except the catalogue. */
async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(`${ROOT}/${folder}`));
  const files = entries.map(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (path === "src/catalogue") return [];
    return isDirectory ? sourcesIn(path) : /\.(?:ts|js|css)$/.test(name) ? [path] : [];
  });
  return (await Promise.all(files)).flat();
}
