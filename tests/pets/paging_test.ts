import { assertEquals, assertLess } from "@std/assert";
import { nextTarget } from "../support/client.ts";
import { all, petsIn, REX, Shop } from "./shop.ts";
import { PETS } from "../../src/pets/pets.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { seededRandom } from "../support/time.ts";

Deno.test.each([["", 20], ["?limit=1", 1], ["?limit=5&status=sold", 5], ["?limit=100", 100]])(
  "listPets() with '%s' links to a next page only if there are more than %i animals",
  async (query, fits) => {
    await using shop = await Shop.open();
    const ids = await shop.add(...all(fits, "sold"));

    const full = await shop.call(`GET /v1/pets${query}`);
    await shop.add("sold", "available");
    const headers = { "if-none-match": full.headers.get("etag") ?? "" };
    const first = await shop.call(`GET /v1/pets${query}`, { headers });
    const next = await shop.call(nextTarget(first) ?? "");

    assertEquals(nextTarget(full), undefined);
    assertEquals(first.status, 200);
    assertEquals((await petsIn(first)).map(({ id }) => id), ids);
    assertEquals((await petsIn(next))[0]?.id, fits + 1);
  },
);

Deno.test("listPets() returns a different ETag for each query, even if the animals are the same", async () => {
  await using shop = await Shop.open();
  const queries = ["", "?limit=2", "?status=sold", "?status=pending"];

  const tags = await Promise.all(
    queries.map(async (query) => (await shop.call(`GET /v1/pets${query}`)).headers.get("etag")),
  );

  assertEquals(new Set(tags).size, queries.length);
});

Deno.test.each([
  [{}, undefined, "http://localhost:8000"],
  [{ "x-forwarded-proto": "https", "x-forwarded-host": "evil.example" }, undefined, "http://localhost:8000"],
  [{}, "https://shop.example/animals", "https://shop.example/animals"],
])("service with headers %j and PUBLIC_URL %s returns URLs at %s", async (headers, publicUrl, base) => {
  await using shop = await Shop.open({ publicUrl });
  const added = await shop.call("POST /v1/pets", { json: REX, headers });
  await shop.add(...all(3, "available"));

  const listed = await shop.call("GET /v1/pets?cursor=MQ&status=available&limit=2", { headers });

  assertEquals(added.headers.get("location"), `${base}/v1/pets/1`);
  assertEquals(
    listed.headers.get("link"),
    `<${base}/v1/pets?limit=2&status=available&cursor=Mw>; rel="next"`,
  );
});

Deno.test.each(["", "&status=sold"])(
  "listPets() with '%s' lists each remaining animal exactly once while others change",
  async (filter) => {
    await using shop = await Shop.open();
    await using beside = shop.beside();
    const services = [shop, beside];
    const random = seededRandom(20270115);
    const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
    const statuses = Array.from({ length: 60 }, (_, index) => index % 3 ? "sold" : "pending");
    const others = new Set(
      await shop.add(...statuses.map((status) => status === "sold" ? status : "pending")),
    );
    const kept = [...others].filter((id) => id % 4 === 0 && (filter === "" || statuses[id - 1] === "sold"));
    for (const id of kept) others.delete(id);

    /** Changes one of the other animals at random, possibly on the next page. */
    async function disturb(): Promise<void> {
      const id = pick([...others]) ?? NaN;
      const service = pick(services) ?? shop;
      const change = Math.floor(random() * 4);
      if (change === 0) others.add((await service.add("sold"))[0] ?? NaN);
      else if (change === 1) others.delete(id) && await service.call(`DELETE /v1/pets/${id}`);
      else await service.patch(id, { status: change === 2 ? "sold" : "available", name: `Tom ${random()}` });
    }

    const seen: number[] = [];
    let target: string | undefined = `GET /v1/pets?limit=5${filter}`;
    for (let pages = 0; target !== undefined; pages++) {
      assertLess(pages, 1_000);
      const [page]: [Response, ...unknown[]] = await Promise.all([
        (pick(services) ?? shop).call(target),
        disturb(),
        disturb(),
        shop.patch(pick(kept) ?? NaN, { name: `Rex ${random()}` }),
      ]);
      seen.push(...(await petsIn(page)).map(({ id }) => id));
      target = nextTarget(page);
    }

    assertEquals(seen.filter((id) => kept.includes(id)), kept);
    assertEquals(seen, [...new Set(seen)].sort((a, b) => a - b));
    await assertConsistent(shop.kv, [PETS]);
  },
);
