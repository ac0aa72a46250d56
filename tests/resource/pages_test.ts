import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { Transactions, Versions } from "../../src/engine/mod.ts";
import { Items } from "../../src/resource/mod.ts";
import { CURSOR, Pages } from "../../src/resource/pages.ts";
import { Invalid } from "../../src/web/schema.ts";
import { nextTarget, upTo } from "../support/client.ts";
import { disturbed } from "../support/fake_kv.ts";
import { HAMMER, THINGS } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

/** A workshop that counts the pages it reads. */
class CountingWorkshop implements AsyncDisposable {
  pagesRead = 0;
  readonly workshop: Workshop;

  private constructor(workshop: Workshop) {
    this.workshop = workshop;
  }

  static async open(things: number): Promise<CountingWorkshop> {
    const counting: { workshop?: CountingWorkshop } = {};
    const read = (keys: readonly Deno.KvKey[]) => {
      if (keys.length === 0 && counting.workshop) counting.workshop.pagesRead++;
    };
    const workshop = await Workshop.on(disturbed(await Deno.openKv(":memory:"), { read }));
    await workshop.add(...Array(things).fill({}));
    return counting.workshop = new CountingWorkshop(workshop);
  }

  /** Lists things. Returns status and ETag. */
  async list(query: string): Promise<[status: number, etag: string | null]> {
    const { status, headers } = await this.workshop.call(`GET /v1/things${query}`);
    return [status, headers.get("etag")];
  }

  /** Lists things through a host. */
  async listAt(host: string, etag = ""): Promise<Response> {
    const headers = { authorization: `Bearer ${this.workshop.key}`, "if-none-match": etag };
    const request = new Request(`http://${host}/v1/things?limit=1`, { headers });
    const remoteAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 } as const;
    return await this.workshop.app.fetch(request, { remoteAddr });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.workshop[Symbol.asyncDispose]();
  }
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
  const ids = [
    "0",
    "-0",
    "+1",
    "--1",
    "1.5",
    "1e3",
    "hammer",
    "0001",
    " 12",
    "0x1",
    "Infinity",
    "9007199254740993",
  ];
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
  await using counting = await CountingWorkshop.open(3);
  const queries = ["?limit=2&isSpare=false&state=new", "?state=new&l%69mit=02&isSpare=false"];

  const results: unknown[] = [];
  for (const query of queries) results.push(await counting.list(query));
  const [first] = results;

  assertEquals(results, Array(queries.length).fill(first));
  assertEquals(counting.pagesRead, 1);
});

Deno.test("list reads a page once for all hosts, and each host gets its own links and 304", async () => {
  await using counting = await CountingWorkshop.open(3);

  const [one, other] = [await counting.listAt("one.example"), await counting.listAt("other.example")];
  const tag = one.headers.get("etag") ?? "";
  const revalidated = await counting.listAt("other.example", tag);

  assertEquals([one.status, other.status, revalidated.status], [200, 200, 304]);
  for (const [response, host] of [[one, "one"], [other, "other"], [revalidated, "other"]] as const) {
    assertEquals(response.headers.get("etag"), tag);
    const link = `<http://${host}.example/v1/things?limit=1&cursor=MQ>; rel="next"`;
    assertEquals(response.headers.get("link"), link);
  }
  const thing = { id: 1, ...HAMMER, state: "new", isSpare: false };
  assertEquals([await one.json(), await other.json()], [[thing], [thing]]);
  assertEquals(counting.pagesRead, 1);
});

Deno.test("list keeps first pages cached, despite requests for other pages and queries", async () => {
  await using counting = await CountingWorkshop.open(1);
  const filters = ["", "&state=new", "&isSpare=true", "&state=used&isSpare=false"];
  const first = filters.flatMap((filter) => upTo(100).map((limit) => `?limit=${limit + 1}${filter}`));
  const others = upTo(300).map((id) => `?cursor=${cursorOf(id + 1)}`);

  for (const query of [...first, ...others, ...first]) assertEquals((await counting.list(query))[0], 200);

  assertEquals(counting.pagesRead, first.length + others.length);
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
