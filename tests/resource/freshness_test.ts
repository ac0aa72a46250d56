import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { HAMMER } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

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
    return {
      // Each process has its own range of IDs: the first thing has 1, the second any other.
      ids: things.map((some) => some.map(({ id }) => id === 1 ? 1 : 2)),
      one: one.status,
      etag: every.headers.get("etag"),
    };
  };
  const steps: [change: (service: Workshop) => Promise<unknown>, ids: number[][], one: number][] = [
    [() => Promise.resolve(), [[], [], []], 404],
    [(service) => service.add({ state: "lost" }), [[1], [1], []], 200],
    [(service) => service.add({ state: "lost" }), [[1, 2], [1, 2], [2]], 200],
    [(service) => service.patch(1, { state: "used" }), [[1, 2], [2], [2]], 200],
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
  assertEquals(saw, { id: 1, ...HAMMER, name: "Saw", state: "new", isSpare: false });
  await workshop.call("DELETE /v1/things/1");
  assertEquals([await workshop.ids(), (await workshop.call("GET /v1/things/1")).status], [[], 404]);
});
