import { assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { Store } from "../../src/kv/store.ts";
import { PageCache, type RenderedPage } from "../../src/pets/page_cache.ts";
import { type PetPage, PetStore } from "../../src/pets/pet_store.ts";

const REX = { name: "Rex", categoryId: 7n, status: "sold" } as const;

/** A catalogue that counts how often it is listed, and fails as often as it is told to. */
class CountingPets extends PetStore {
  reads = 0;
  failures = 0;

  override list(...parameters: Parameters<PetStore["list"]>): Promise<PetPage> {
    this.reads++;
    if (this.failures-- > 0) return Promise.reject(new StoreUnavailable("No answer"));
    return super.list(...parameters);
  }
}

Deno.test("get() reads once for all who ask at the same time, and after", async () => {
  using store = await openStore();
  const pets = new CountingPets(store);
  const cache = new PageCache(pets);
  await pets.create(REX);

  const pages = await Promise.all([
    cache.get("?limit=5", Infinity),
    cache.get("?limit=5", Infinity),
  ]);
  pages.push(await cache.get("?limit=5", Infinity));

  assertEquals(pets.reads, 1);
  assertEquals(
    await Promise.all(pages.map(bodyOf)),
    new Array(3).fill('[{"id":1,"name":"Rex","categoryId":7,"status":"sold"}]'),
  );
});

Deno.test("get() reads again once the catalogue has changed", async () => {
  using store = await openStore();
  const pets = new CountingPets(store);
  const cache = new PageCache(pets);

  const empty = await cache.get("", Infinity);
  await pets.create(REX);
  const full = await cache.get("", Infinity);

  assertEquals(pets.reads, 2);
  assertNotEquals(send(full).headers.get("etag"), send(empty).headers.get("etag"));
  assertEquals(await bodyOf(empty), "[]");
});

Deno.test.each([
  [49, 0],
  [100, 1],
])("get() after %i other pages reads the first one %i times more", async (others, rereads) => {
  using store = await openStore();
  const pets = new CountingPets(store);
  const cache = new PageCache(pets);

  await cache.get("", Infinity);
  for (let limit = 1; limit <= others; limit++) await cache.get(`?limit=${limit}`, Infinity);
  assertEquals(pets.reads, 1 + others);
  await cache.get("", Infinity);

  assertEquals(pets.reads, 1 + others + rereads);
});

Deno.test("get() does not keep a failure", async () => {
  using store = await openStore();
  const pets = new CountingPets(store);
  const cache = new PageCache(pets);
  pets.failures = 1;

  await assertRejects(() => cache.get("", Infinity), StoreUnavailable);

  assertEquals(await bodyOf(await cache.get("", Infinity)), "[]");
});

Deno.test("get() refuses a bad query also when the page before it is kept", async () => {
  using store = await openStore();
  const cache = new PageCache(new CountingPets(store));
  await cache.get("?limit=1", Infinity);

  for (const query of ["?limit=1&limit=1", "?limit=0", "?limit=0"]) {
    await assertRejects(() => cache.get(query, Infinity), ApiError, "limit");
  }
});

async function openStore(): Promise<Store> {
  return new Store(await Deno.openKv(":memory:"), { maxChecks: 10 });
}

function send({ representation }: RenderedPage): Response {
  return representation.respondTo(new Request("http://localhost/"));
}

function bodyOf(page: RenderedPage): Promise<string> {
  return send(page).text();
}
