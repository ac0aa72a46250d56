import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { Invalid } from "../../src/web/schema.ts";
import { CURSOR, PetPages } from "../../src/pets/pet_pages.ts";
import { CATALOGUE_VERSION, PetStore } from "../../src/pets/pet_store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { nextTarget, upTo } from "../support/client.ts";
import { disturbed } from "../support/fake_kv.ts";
import { all, petsIn, Shop } from "../support/pets.ts";

/** A shop that counts the pages it reads. */
class CountingShop implements AsyncDisposable {
  pagesRead = 0;
  readonly shop: Shop;

  private constructor(shop: Shop) {
    this.shop = shop;
  }

  static async open(animals: number): Promise<CountingShop> {
    const counting: { shop?: CountingShop } = {};
    const read = (keys: readonly Deno.KvKey[]) => {
      if (keys.length === 0 && counting.shop) counting.shop.pagesRead++;
    };
    const shop = await Shop.on(disturbed(await Deno.openKv(":memory:"), { read }));
    await shop.add(...all(animals, "sold"));
    return counting.shop = new CountingShop(shop);
  }

  /** Lists animals. Returns status and ETag. */
  async list(query: string): Promise<[status: number, etag: string | null]> {
    const { status, headers } = await this.shop.call(`GET /v1/pets${query}`);
    return [status, headers.get("etag")];
  }

  /** Lists animals through a host. */
  async listAt(host: string, etag = ""): Promise<Response> {
    const headers = { authorization: `Bearer ${this.shop.key}`, "if-none-match": etag };
    const request = new Request(`http://${host}/v1/pets?limit=1`, { headers });
    const remoteAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 } as const;
    return await this.shop.app.fetch(request, { remoteAddr });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shop[Symbol.asyncDispose]();
  }
}

/** The cursor of the page after an animal. */
function cursorOf(id: number | string): string {
  return btoa(`${id}`).replaceAll("=", "");
}

Deno.test("CURSOR accepts the ID of an animal only as links encode it", () => {
  for (const id of [1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER]) {
    assertEquals(CURSOR.parse(cursorOf(id), "cursor"), id);
  }
  const ids = ["0", "-1", "1.5", "1e3", "rex", "0001", " 12", "0x1", "Infinity", "9007199254740993"];
  const texts = ["", "20", "!!!!", "é", "🐶", "MQ==", "MQ=", " MQ", "MR"];
  for (const wrong of [...ids.map(cursorOf), ...texts, 7, undefined]) {
    assertThrows(
      () => CURSOR.parse(wrong, "cursor"),
      Invalid,
      "cursor must be a cursor from a Link header of this service",
    );
  }
});

Deno.test("listPets() reads a page once for all equivalent query strings", async () => {
  await using counting = await CountingShop.open(3);
  const queries = ["", "?", "?limit=20", "?l%69mit=020", "?x=1", "?x=2&limit=20", `?${"x".repeat(1_000)}`];

  const results: unknown[] = [];
  for (const query of queries) results.push(await counting.list(query));
  const [first] = results;

  assertEquals(results, Array(queries.length).fill(first));
  assertEquals(counting.pagesRead, 1);
});

Deno.test("listPets() reads a page once for all hosts, and each host gets its own links and 304", async () => {
  await using counting = await CountingShop.open(3);

  const [one, other] = [await counting.listAt("one.example"), await counting.listAt("other.example")];
  const tag = one.headers.get("etag") ?? "";
  const revalidated = await counting.listAt("other.example", tag);

  assertEquals([one.status, other.status, revalidated.status], [200, 200, 304]);
  for (const [response, host] of [[one, "one"], [other, "other"], [revalidated, "other"]] as const) {
    assertEquals(response.headers.get("etag"), tag);
    const link = `<http://${host}.example/v1/pets?limit=1&cursor=MQ>; rel="next"`;
    assertEquals(response.headers.get("link"), link);
  }
  assertEquals((await petsIn(one)).map(({ id }) => id), [1]);
  assertEquals(await other.json(), [{ id: 1, name: "Rex", categoryId: 7, status: "sold" }]);
  assertEquals(counting.pagesRead, 1);
});

Deno.test("listPets() keeps every first page cached, despite requests for other pages and queries", async () => {
  await using counting = await CountingShop.open(1);
  const statuses = ["", "&status=available", "&status=pending", "&status=sold"];
  const first = statuses.flatMap((status) => upTo(100).map((limit) => `?limit=${limit + 1}${status}`));
  const others = upTo(300).map((id) => `?cursor=${cursorOf(id + 1)}`);
  const madeUp = upTo(3_000).map((number) => `?x=${number}`);

  for (const query of [...first, ...others, ...madeUp]) assertEquals((await counting.list(query))[0], 200);
  const before = counting.pagesRead;
  const tags = new Set<string | null>();
  for (const query of first) tags.add((await counting.list(query))[1]);

  assertEquals(before, first.length + others.length);
  assertEquals(counting.pagesRead, before);
  assertEquals(tags.size, first.length);
});

Deno.test("PetPages keeps the responses of the first hosts, even after 1,000 made-up ones", async () => {
  await using shop = await Shop.open();
  await shop.add(...all(2, "sold"));
  const catalogue = { key: CATALOGUE_VERSION, version: "1" };
  const pets = new PetStore(shop.store, new Transactions(shop.store, { clock: () => 0 }), catalogue);
  const page = await new PetPages(pets, catalogue).get({ limit: 1 });
  const real = page.respondTo(undefined, "https://shop.example");

  for (const number of upTo(1_000)) {
    const madeUp = page.respondTo(undefined, `http://${number}.example`);
    assertMatch(nextTarget(madeUp) ?? "", /^GET \/v1\/pets\?limit=1&cursor=/);
    assert(madeUp !== real);
  }

  assertStrictEquals(page.respondTo(undefined, "https://shop.example"), real);
  const recent = page.respondTo(undefined, "http://999.example");
  assert(page.respondTo(undefined, "http://999.example") !== recent);
});
