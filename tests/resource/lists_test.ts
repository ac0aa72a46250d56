import {
  assert,
  assertEquals,
  assertLess,
  assertMatch,
  assertNotEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { Transactions, Versions } from "../../src/engine/mod.ts";
import { Items } from "../../src/resource/mod.ts";
import { CURSOR, Pages } from "../../src/resource/pages.ts";
import { Invalid } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { nextTarget, upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { HAMMER, THINGS } from "../support/things.ts";
import { seededRandom } from "../support/time.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

const LOST = { state: "lost" } as const;
const USED = { state: "used" } as const;

/** A workshop with some things, and the number of pages that it reads from now on. */
async function withThings(count: number) {
  const pages = { read: 0 };
  const read = (keys: readonly Deno.KvKey[]) => void (keys.length === 0 && pages.read++);
  const workshop = await Workshop.open({ disturbance: { read } });
  await workshop.add(...Array(count).fill({}));
  pages.read = 0;
  return { workshop, pages };
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

Deno.test.each([["", 20], ["?limit=1", 1], ["?limit=5&state=lost", 5], ["?limit=100", 100]])(
  "list with '%s' links to a next page only if there are more than %i items",
  async (query, fits) => {
    await using workshop = await Workshop.open();
    const ids = await workshop.add(...Array(fits).fill(LOST));

    const full = await workshop.call(`GET /v1/things${query}`);
    await workshop.add(LOST, {});
    const headers = { "if-none-match": full.headers.get("etag") ?? "" };
    const first = await workshop.call(`GET /v1/things${query}`, { headers });
    const next = await workshop.call(nextTarget(first) ?? "");

    assertEquals(nextTarget(full), undefined);
    assertEquals(first.status, 200);
    assertEquals((await thingsIn(first)).map(({ id }) => id), ids);
    assertEquals((await thingsIn(next))[0]?.id, fits + 1);
  },
);

Deno.test("list returns an empty array, and a different ETag for each query, if there are no items", async () => {
  await using workshop = await Workshop.open();
  const etags = new Set<string | null>();

  for (const query of ["", "?limit=2", "?state=lost", "?state=used"]) {
    const { status, headers, body } = await workshop.call(`GET /v1/things${query}`);
    assertEquals([status, headers.get("link"), await new Response(body).text()], [200, null, "[]"]);
    etags.add(headers.get("etag"));
  }

  assertEquals(etags.size, 4);
});

Deno.test("list combines filters, and its links keep them", async () => {
  await using workshop = await Workshop.open();
  for (let count = 0; count < 3; count++) {
    await workshop.add({ ...USED, isSpare: true }, USED, { isSpare: true });
  }

  const page = await workshop.call("GET /v1/things?isSpare=true&limit=2&state=used");
  const next = nextTarget(page) ?? "";

  assertEquals((await thingsIn(page)).map(({ id }) => id), [1, 4]);
  assertEquals(next, "GET /v1/things?limit=2&state=used&isSpare=true&cursor=NA");
  assertEquals((await thingsIn(await workshop.call(next))).map(({ id }) => id), [7]);
  assertEquals(await workshop.ids("?isSpare=false&state=new"), []);
  assertEquals(await workshop.ids("?isSpare=false"), [2, 5, 8]);
});

Deno.test("list follows sort and cursors in either order, and refuses a cursor of the other order", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  for (let count = 0; count < 3; count++) await workshop.add(USED, {});

  for (const [path, key] of [["/operator/v1", OPERATOR_TOKEN], ["/v1", workshop.key]] as const) {
    const call = (query: string) => workshop.fetch(`GET ${path}/things?limit=4${query}`, { key });
    const idsAt = async (query: string) => (await thingsIn(await call(query))).map(({ id }) => id);
    const cursorAt = async (query: string) =>
      nextTarget(await call(query))?.replace(/^.*(?=&cursor)/, "") ?? "";
    const [ascending, descending] = [await cursorAt("&sort=id"), await cursorAt("&sort=-id")];

    for (const sort of ["", "&sort=id"]) {
      assertEquals([await idsAt(sort), await idsAt(ascending + sort)], [[1, 2, 3, 4], [5, 6]]);
    }
    assertEquals(await idsAt("&sort=-id"), [6, 5, 4, 3]);
    for (const sort of ["", "&sort=-id"]) assertEquals(await idsAt(descending + sort), [2, 1]);
    for (
      const [wrong, right] of [[`${ascending}&sort=-id`, "id"], [`${descending}&sort=id`, "-id"]] as const
    ) {
      const message = RegExp(`^The query parameter sort must be ${right}, as in the list .* or be left out`);
      await assertError(await call(wrong), 400, "invalid_request", message);
    }
  }

  assertEquals(await workshop.ids("?state=used&sort=-id&limit=2"), [5, 3]);
  const page = await workshop.call("GET /v1/things?sort=-id&state=used&limit=2");
  assertEquals(nextTarget(page), "GET /v1/things?limit=2&state=used&sort=-id&cursor=LTM");
});

Deno.test.each(["", "&state=lost"])(
  "list with '%s' shows each remaining item exactly once while others change",
  async (filter) => {
    await using workshop = await Workshop.open();
    await using beside = workshop.beside();
    const random = seededRandom(20270115);
    const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
    const anyone = () => random() < 0.5 ? workshop : beside;
    const states = upTo(60).map((index) => index % 3 ? "lost" : "used");
    const others = new Set(await workshop.add(...states.map((state) => ({ state }) as const)));
    const kept = [...others].filter((id) => id % 4 === 0 && (filter === "" || states[id - 1] === "lost"));
    for (const id of kept) others.delete(id);

    /** Changes one of the other things at random, possibly on the next page. */
    async function disturb(): Promise<void> {
      const id = pick([...others]) ?? NaN;
      const change = Math.floor(random() * 4);
      if (change === 0) others.add((await anyone().add(LOST))[0] ?? NaN);
      else if (change === 1) others.delete(id) && await anyone().call(`DELETE /v1/things/${id}`);
      else await anyone().patch(id, { state: change === 2 ? "lost" : "new", name: `Saw ${random()}` });
    }

    const seen: number[] = [];
    let target: string | undefined = `GET /v1/things?limit=5${filter}`;
    for (let pages = 0; target !== undefined; pages++) {
      assertLess(pages, 1_000);
      const [page]: [Response, ...unknown[]] = await Promise.all([
        anyone().call(target),
        disturb(),
        disturb(),
        workshop.patch(pick(kept) ?? NaN, { name: `Nut ${random()}` }),
      ]);
      seen.push(...(await thingsIn(page)).map(({ id }) => id));
      target = nextTarget(page);
    }

    assertEquals(seen.filter((id) => kept.includes(id)), kept);
    assertEquals(seen, [...new Set(seen)].sort((a, b) => a - b));
    await assertConsistent(workshop.kv);
  },
);

Deno.test("service shows each change at the next request, in two processes and through caches", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();
  const services = [workshop, beside];
  const show = async (service: Workshop) => {
    const [every, lost, page, one] = await Promise.all(
      ["?limit=9", "?state=lost", "?cursor=MQ", "/1"].map((rest) => service.call(`GET /v1/things${rest}`)),
    );
    assert(every && lost && page && one);
    const things = await Promise.all([every, lost, page].map(thingsIn));
    // Each process has its own range of IDs: the first thing has 1, the second any other.
    const ids = things.map((some) => some.map(({ id }) => id === 1 ? 1 : 2));
    return { ids, one: one.status, etag: every.headers.get("etag") };
  };
  const steps: [change: (service: Workshop) => Promise<unknown>, ids: number[][], one: number][] = [
    [() => Promise.resolve(), [[], [], []], 404],
    [(service) => service.add(LOST), [[1], [1], []], 200],
    [(service) => service.add(LOST), [[1, 2], [1, 2], [2]], 200],
    [(service) => service.patch(1, USED), [[1, 2], [2], [2]], 200],
    [(service) => service.patch(1, { name: "Saw" }), [[1, 2], [2], [2]], 200],
    [(service) => service.call("DELETE /v1/things/1"), [[2], [2], [2]], 404],
  ];
  let before: string | null = null;
  for (const [turn, [change, ids, one]] of steps.entries()) {
    await change(services[turn % 2] ?? workshop);

    const [here, there] = await Promise.all(services.map(show));

    assertEquals(here, { ids, one, etag: here?.etag ?? null });
    assertEquals(there, here);
    assertNotEquals(here?.etag, before);
    before = here?.etag ?? null;
  }
});

Deno.test("service always shows its own changes, regardless of MAX_STALENESS_MS", async () => {
  await using workshop = await Workshop.open({ maxStalenessMs: 60_000 });
  assertEquals(await workshop.ids(), []);

  await workshop.add({});
  assertEquals(await workshop.ids(), [1]);
  await workshop.patch(1, { name: "Saw" });
  const [saw] = await thingsIn(await workshop.call("GET /v1/things/1"));
  assertEquals(saw?.name, "Saw");
  await workshop.call("DELETE /v1/things/1");
  assertEquals([await workshop.ids(), (await workshop.call("GET /v1/things/1")).status], [[], 404]);
});

Deno.test("list reads a page once for all equivalent query strings", async () => {
  const { workshop, pages } = await withThings(3);
  await using _ = workshop;
  const etagOf = async (query: string) =>
    (await workshop.call(`GET /v1/things${query}`)).headers.get("etag") ?? "no ETag";

  const etag = await etagOf("?limit=2&isSpare=false&state=new");

  assertEquals(await etagOf("?state=new&l%69mit=02&isSpare=false"), etag);
  assertEquals(pages.read, 1);
});

Deno.test("list reads a page once for all hosts, and each host gets its own links and 304", async () => {
  const { workshop, pages } = await withThings(2);
  await using _ = workshop;
  const listAt = async (host: string, etag = "") => {
    const headers = { authorization: `Bearer ${workshop.key}`, "if-none-match": etag };
    const request = new Request(`http://${host}.example/v1/things?limit=1`, { headers });
    return await workshop.app.fetch(request, {
      remoteAddr: { transport: "tcp", hostname: "192.0.2.1", port: 1 },
    });
  };

  const [one, other] = [await listAt("one"), await listAt("other")];
  const tag = one.headers.get("etag") ?? "";
  const revalidated = await listAt("other", tag);

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

Deno.test("Pages keeps as many responses as fit, and its first pages despite any number of others", async () => {
  await using workshop = await Workshop.open();
  await workshop.add(...Array(3).fill({ name: "x".repeat(100) }));
  const pages = pagesOf(workshop, 200_000);
  const pageOf = async (limit: number, cursor?: number) => await pages.page({ limit, cursor }, "a");
  const [one, single] = [await pageOf(1), await pages.single(1, "a")];
  assert(one.size > 1_000 && one.size < 10_000);

  for (const id of upTo(300)) await pageOf(1, id + 1);
  assertStrictEquals(await pageOf(1), one);
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

  for (const number of upTo(12)) {
    assertMatch(nextTarget(at(number)) ?? "", /^GET \/v1\/things\?limit=1&cursor=/);
    if (number % 3 === 0) assertStrictEquals(at("workshop"), real);
  }
  at("workshop");
  for (const number of upTo(3)) at(number);
  assertStrictEquals(at("workshop"), real);
  for (const number of upTo(4)) at(number);
  assert(at("workshop") !== real);
});

Deno.test("CURSOR accepts the id of an item, or its negative, only as links encode it", () => {
  for (const id of [1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER].flatMap((id) => [id, -id])) {
    assertEquals(CURSOR.parse(cursorOf(id), "cursor"), id);
  }
  const ids = "0 -0 +1 --1 1.5 1e3 hammer 0001 0x1 Infinity 9007199254740993".split(" ").concat(" 12");
  const texts = ["", "20", "!!!!", "é", "🐶", "MQ==", "MQ=", " MQ", "MR"];
  for (const wrong of [...ids.map(cursorOf), ...texts, 7, undefined]) {
    const parse = () => CURSOR.parse(wrong, "cursor");
    assertThrows(parse, Invalid, "cursor must be a cursor from a Link header of this service");
  }
});
