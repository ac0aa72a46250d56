import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertLimitHeaders } from "../http/assertions.ts";
import { addPets, petsOf } from "./catalogue.ts";

const TARGETS = [
  "/v1/pets",
  "/v1/pets?limit=1",
  "/v1/pets?status=available",
  "/v1/pets?cursor=MQ",
  "/v1/pets/1",
];

Deno.test.each(TARGETS)("app() lets clients keep and revalidate GET %s", async (path) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available", "available"]);

  const first = await service.fetch(`GET ${path}`, { key });
  const etag = first.headers.get("etag") ?? "";
  const again = await service.fetch(`GET ${path}`, { key, headers: { "if-none-match": etag } });
  const other = await service.fetch(`GET ${path}`, { key, headers: { "if-none-match": '"other"' } });

  assertEquals([first.status, again.status, other.status], [200, 304, 200]);
  assertMatch(etag, /^"[^"]+"$/);
  for (const { headers } of [first, again, other]) {
    assertEquals(headers.get("etag"), etag);
    assertEquals(headers.get("cache-control"), "private, no-cache");
    assertEquals(headers.get("vary"), "Origin");
    assertEquals(headers.get("link"), first.headers.get("link"));
  }
  assertLimitHeaders(again);
  assertEquals(again.headers.get("x-ratelimit-remaining"), "996");
  assertEquals(again.headers.get("content-type"), null);
  assertEquals(again.body, null);
  assertEquals(await other.text(), await first.text());
});

Deno.test("app() gives each query an etag of its own", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["available"]);

  const etags = new Set<string | null>();
  for (const path of TARGETS) etags.add((await service.fetch(`GET ${path}`, { key })).headers.get("etag"));

  assertEquals(etags.size, TARGETS.length);
});

Deno.test("app() gives HEAD the etag of GET", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const get = await service.fetch("GET /v1/pets", { key });

  const head = await service.fetch("HEAD /v1/pets", { key });

  assert(get.headers.has("etag"));
  assertEquals(head.headers.get("etag"), get.headers.get("etag"));
});

Deno.test("listPets() has a new etag once an animal was added, the first one too", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  let etag: string | null = null;

  for (let count = 0; count < 3; count++) {
    const headers = { "if-none-match": etag ?? "" };
    const response = await service.fetch("GET /v1/pets", { key, headers });
    assertEquals(response.status, 200);
    assertNotEquals(response.headers.get("etag"), etag);
    assertEquals((await petsOf(response)).length, count);
    etag = response.headers.get("etag");
    await addPets(service, key, ["sold"]);
  }
});

Deno.test("getPet() keeps its etag when other animals are added", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["sold"]);
  const etag = (await service.fetch("GET /v1/pets/1", { key })).headers.get("etag") ?? "";
  await addPets(service, key, ["sold"]);

  const response = await service.fetch("GET /v1/pets/1", { key, headers: { "if-none-match": etag } });

  assertEquals(response.status, 304);
});

Deno.test("listPets() shows at once what another process added", async () => {
  using here = await Harness.open();
  const elsewhere = new Harness(here.kv);
  const { secret: key } = await here.issueKey();

  for (let count = 1; count <= 3; count++) {
    const before = await here.fetch("GET /v1/pets", { key });
    await addPets(elsewhere, key, ["sold"]);
    const headers = { "if-none-match": before.headers.get("etag") ?? "" };
    const after = await here.fetch("GET /v1/pets", { key, headers });

    assertEquals(after.status, 200);
    assertEquals((await petsOf(after)).length, count);
    const there = await elsewhere.fetch("GET /v1/pets", { key });
    assertEquals(there.headers.get("etag"), after.headers.get("etag"));
  }
});

Deno.test.each(["/v1/pets?limit=0", "/v1/pets/9", "/v1/nothing"])(
  "app() does not answer 304 in place of an error at %s",
  async (path) => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey();

    const response = await service.fetch(`GET ${path}`, { key, headers: { "if-none-match": "*" } });

    assertEquals(response.ok || response.status === 304, false);
    assertEquals(response.headers.get("etag"), null);
  },
);
