import { assertEquals, assertLess } from "@std/assert";
import { nextTarget } from "../support/client.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import type { Thing } from "../support/things.ts";
import { seededRandom } from "../support/time.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

/** Things of each of these states. */
function of(...states: Thing["state"][]): Partial<Thing>[] {
  return states.map((state) => ({ state }));
}

Deno.test.each([["", 20], ["?limit=1", 1], ["?limit=5&state=lost", 5], ["?limit=100", 100]])(
  "list with '%s' links to a next page only if there are more than %i items",
  async (query, fits) => {
    await using workshop = await Workshop.open();
    const ids = await workshop.add(...Array(fits).fill({ state: "lost" }));

    const full = await workshop.call(`GET /v1/things${query}`);
    await workshop.add(...of("lost", "new"));
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

  const responses = await Promise.all(
    ["", "?limit=2", "?state=lost", "?state=used"].map((query) => workshop.call(`GET /v1/things${query}`)),
  );

  for (const response of responses) {
    assertEquals([response.status, response.headers.get("link")], [200, null]);
    assertEquals(await response.text(), "[]");
  }
  assertEquals(new Set(responses.map(({ headers }) => headers.get("etag"))).size, 4);
});

Deno.test.each(["", "&state=lost"])(
  "list with '%s' shows each remaining item exactly once while others change",
  async (filter) => {
    await using workshop = await Workshop.open();
    await using beside = workshop.beside();
    const services = [workshop, beside];
    const random = seededRandom(20270115);
    const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
    const states = Array.from({ length: 60 }, (_, index) => index % 3 ? "lost" : "used");
    const others = new Set(await workshop.add(...states.map((state) => ({ state }) as const)));
    const kept = [...others].filter((id) => id % 4 === 0 && (filter === "" || states[id - 1] === "lost"));
    for (const id of kept) others.delete(id);

    /** Changes one of the other things at random, possibly on the next page. */
    async function disturb(): Promise<void> {
      const id = pick([...others]) ?? NaN;
      const service = pick(services) ?? workshop;
      const change = Math.floor(random() * 4);
      if (change === 0) others.add((await service.add({ state: "lost" }))[0] ?? NaN);
      else if (change === 1) others.delete(id) && await service.call(`DELETE /v1/things/${id}`);
      else await service.patch(id, { state: change === 2 ? "lost" : "new", name: `Saw ${random()}` });
    }

    const seen: number[] = [];
    let target: string | undefined = `GET /v1/things?limit=5${filter}`;
    for (let pages = 0; target !== undefined; pages++) {
      assertLess(pages, 1_000);
      const [page]: [Response, ...unknown[]] = await Promise.all([
        (pick(services) ?? workshop).call(target),
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
