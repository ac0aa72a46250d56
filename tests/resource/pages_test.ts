import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { Transactions, Versions } from "../../src/engine/mod.ts";
import { Items } from "../../src/resource/mod.ts";
import { CURSOR, Pages } from "../../src/resource/pages.ts";
import { Invalid } from "../../src/web/schema.ts";
import { nextTarget, upTo } from "../support/client.ts";
import { HAMMER, THINGS } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

/** A workshop with some things, and the number of pages that it reads from now on. */
async function withThings(count: number) {
  const pages = { read: 0 };
  const read = (keys: readonly Deno.KvKey[]) => void (keys.length === 0 && pages.read++);
  const workshop = await Workshop.open({ disturbance: { read } });
  await workshop.add(...Array(count).fill({}));
  pages.read = 0;
  return { workshop, pages };
}

/** Lists things through a host. */
async function listAt({ app, key }: Workshop, host: string, etag = ""): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "if-none-match": etag };
  const request = new Request(`http://${host}/v1/things?limit=1`, { headers });
  return await app.fetch(request, { remoteAddr: { transport: "tcp", hostname: "192.0.2.1", port: 1 } });
}

/** The pages of a workshop's things, with room for responses of this size. */
function pagesOf({ store }: Workshop, maxBytes: number): Pages {
  const transactions = new Transactions(store, { clock: () => 0 });
  const items = new Items(THINGS, { store, transactions, versions: new Versions(store) });
  return new Pages(items, { maxBytes, itemHeaders: {} });
}

/** The cursor of the page after a thing. */
function cursorOf(id: number | string): string {
  return btoa(`${id}`).replaceAll("=", "");
}

Deno.test("CURSOR accepts the id of an item, or its negative, only as links encode it", () => {
  for (const id of [1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER].flatMap((id) => [id, -id])) {
    assertEquals(CURSOR.parse(cursorOf(id), "cursor"), id);
  }
  const ids = "0 -0 +1 --1 1.5 1e3 hammer 0001 0x1 Infinity 9007199254740993".split(" ").concat(" 12");
  const texts = ["", "20", "!!!!", "é", "🐶", "MQ==", "MQ=", " MQ", "MR"];
  for (const wrong of [...ids.map(cursorOf), ...texts, 7, undefined]) {
    assertThrows(
      () => CURSOR.parse(wrong, "cursor"),
      Invalid,
      "cursor must be a cursor from a Link header of this service",
    );
  }
});

Deno.test("list reads a page once for all equivalent query strings", async () => {
  const { workshop, pages } = await withThings(3);
  await using _ = workshop;
  const queries = ["?limit=2&isSpare=false&state=new", "?state=new&l%69mit=02&isSpare=false"];

  const results: unknown[] = [];
  for (const query of queries) {
    const { status, headers } = await workshop.call(`GET /v1/things${query}`);
    results.push([status, headers.get("etag")]);
  }
  const [first] = results;

  assertEquals(results, Array(queries.length).fill(first));
  assertEquals(pages.read, 1);
});

Deno.test("list reads a page once for all hosts, and each host gets its own links and 304", async () => {
  const { workshop, pages } = await withThings(3);
  await using _ = workshop;

  const [one, other] = [await listAt(workshop, "one.example"), await listAt(workshop, "other.example")];
  const tag = one.headers.get("etag") ?? "";
  const revalidated = await listAt(workshop, "other.example", tag);

  assertEquals([one.status, other.status, revalidated.status], [200, 200, 304]);
  for (const [response, host] of [[one, "one"], [other, "other"], [revalidated, "other"]] as const) {
    assertEquals(response.headers.get("etag"), tag);
    const link = `<http://${host}.example/v1/things?limit=1&cursor=MQ>; rel="next"`;
    assertEquals(response.headers.get("link"), link);
  }
  const thing = { id: 1, ...HAMMER, state: "new", isSpare: false };
  assertEquals([await one.json(), await other.json()], [[thing], [thing]]);
  assertEquals(pages.read, 1);
});

Deno.test("list keeps first pages cached, despite requests for other pages and queries", async () => {
  const { workshop, pages } = await withThings(1);
  await using _ = workshop;
  const filters = ["", "&state=new", "&isSpare=true", "&state=used&isSpare=false"];
  const first = filters.flatMap((filter) => upTo(100).map((limit) => `?limit=${limit + 1}${filter}`));
  const others = upTo(300).map((id) => `?cursor=${cursorOf(id + 1)}`);

  for (const query of [...first, ...others, ...first]) {
    assertEquals((await workshop.call(`GET /v1/things${query}`)).status, 200);
  }

  assertEquals(pages.read, first.length + others.length);
});

Deno.test("Pages keeps as many responses as fit, however many queries there are", async () => {
  await using workshop = await Workshop.open();
  await workshop.add(...Array(3).fill({ name: "x".repeat(100) }));
  const pages = pagesOf(workshop, 200_000);
  const pageOf = async (limit: number) => await pages.page({ limit }, "a");
  const one = await pageOf(1);
  assert(one.size > 1_000 && one.size < 10_000);
  assertStrictEquals(await pageOf(1), one);
  const single = await pages.single(1, "a");
  assertStrictEquals(await pages.single(1, "a"), single);

  for (const limit of upTo(100)) await pageOf(limit + 2);

  assert(await pageOf(1) !== one);
  assertStrictEquals(await pageOf(101), await pageOf(101));
});

Deno.test("Page keeps the responses of the four hosts used last", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({}, {});
  const page = await pagesOf(workshop, 1_000_000).page({ limit: 1 }, "a");
  const at = (host: string | number) => page.respondTo(undefined, `https://${host}.example`);
  const real = at("workshop");

  for (const number of upTo(1_000)) {
    assertMatch(nextTarget(at(number)) ?? "", /^GET \/v1\/things\?limit=1&cursor=/);
    if (number % 3 === 0) assertStrictEquals(at("workshop"), real);
  }

  const [kept, dropped] = [at(999), at(997)];
  assertStrictEquals(at(999), kept);
  assert(at(996) !== dropped);
  for (const number of upTo(4)) at(number);
  assert(at("workshop") !== real);
  assert(at(997) !== dropped);
});
