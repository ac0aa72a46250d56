import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { petsIn, REX, Shop } from "./shop.ts";

Deno.test("service shows each change at the next request, in two processes and through caches", async () => {
  await using shop = await Shop.open();
  await using beside = shop.beside();
  const services = [shop, beside];
  const show = async (service: Shop) => {
    const [every, sold, page, one] = await Promise.all(
      ["?limit=9", "?status=sold", "?cursor=MQ", "/1"].map((rest) => service.call(`GET /v1/pets${rest}`)),
    );
    assert(every && sold && page && one);
    const pets = await Promise.all([every, sold, page].map(petsIn));
    return {
      // Each process has its own range of IDs: the first animal has 1, the second any other.
      ids: pets.map((some) => some.map(({ id }) => id === 1 ? 1 : 2)),
      one: one.status,
      etag: every.headers.get("etag"),
    };
  };
  const steps: [change: (service: Shop) => Promise<unknown>, ids: number[][], one: number][] = [
    [() => Promise.resolve(), [[], [], []], 404],
    [(service) => service.add("sold"), [[1], [1], []], 200],
    [
      (service) => service.call("POST /v1/pets", { json: { ...REX, status: "sold" } }),
      [[1, 2], [1, 2], [2]],
      200,
    ],
    [(service) => service.patch(1, { status: "pending" }), [[1, 2], [2], [2]], 200],
    [(service) => service.patch(1, { name: "Tom" }), [[1, 2], [2], [2]], 200],
    [(service) => service.call("DELETE /v1/pets/1"), [[2], [2], [2]], 404],
  ];
  let before: string | null = null;
  for (const [turn, [change, ids, one]] of steps.entries()) {
    await change(services[turn % 2] ?? shop);

    const [here, there] = await Promise.all(services.map(show));

    assertEquals(here, { ids, one, etag: here?.etag ?? null });
    assertEquals(there, here);
    assertNotEquals(here?.etag, before);
    before = here?.etag ?? null;
  }
});

Deno.test("service always shows its own changes, regardless of MAX_STALENESS_MS", async () => {
  await using shop = await Shop.open({ maxStalenessMs: 60_000 });
  assertEquals(await shop.ids(), []);

  await shop.add("sold");
  assertEquals(await shop.ids(), [1]);
  await shop.patch(1, { name: "Tom" });
  assertEquals((await petsIn(await shop.call("GET /v1/pets/1")))[0]?.name, "Tom");
  await shop.call("DELETE /v1/pets/1");
  assertEquals([await shop.ids(), (await shop.call("GET /v1/pets/1")).status], [[], 404]);
});
