import { assert, assertEquals, assertGreater, assertNotEquals } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { disturbed } from "../../support/fake_kv.ts";
import { petsIn, REX, Shop } from "../../support/pets.ts";
import { assertConsistent } from "../../support/stored_rows.ts";
import { seededRandom } from "../../support/time.ts";

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

const READS = 1_200;
const CHANGES = 120;
const GONE = "";

/** A name of an animal, and until when a response may show it. */
interface ShownName {
  readonly name: string;
  until: number;
}

Deno.test("service never shows an outdated animal while two processes change many", async () => {
  const random = seededRandom(20270115);
  const delay = async () => {
    for (let turns = Math.floor(random() * 4); turns > 0; turns--) await setImmediate();
  };
  using kv = await Deno.openKv(":memory:");
  const slow = disturbed(kv, {
    read: delay,
    commit: async ({ apply }) => {
      await delay();
      const result = await apply();
      await delay();
      return result;
    },
  });
  await using shop = await Shop.on(slow);
  await using beside = shop.beside();
  const histories = new Map<number, ShownName[]>();
  const stale: string[] = [];
  let [time, reads, changes] = [0, 0, 0];

  /** Adds animals, and changes each a few times or deletes it. */
  async function write(service: Shop): Promise<void> {
    while (changes < CHANGES) {
      const first = `Rex ${++changes}`;
      const [pet] = await petsIn(await service.call("POST /v1/pets", { json: { ...REX, name: first } }));
      const { id } = pet ?? { id: NaN };
      const history: ShownName[] = [{ name: first, until: Infinity }];
      histories.set(id, history);
      for (let more = random() * 6; more > 0 && history.at(-1)?.name !== GONE; more--) {
        const [name, last] = [random() < 0.2 ? GONE : `Rex ${++changes}`, history.at(-1)];
        history.push({ name, until: Infinity });
        const { ok } = name === GONE
          ? await service.call(`DELETE /v1/pets/${id}`)
          : await service.patch(id, { name });
        assert(ok && last);
        last.until = ++time;
      }
    }
  }

  async function read(service: Shop): Promise<void> {
    while (reads++ < READS || changes < CHANGES) {
      const sentAt = ++time;
      const known = [...histories.keys()];
      const response = await service.call(`GET /v1/pets?limit=100${reads % 2 ? "&status=available" : ""}`);
      const shown = new Map((await petsIn(response)).map(({ id, name }) => [id, name]));
      for (const id of known) {
        const name = shown.get(id) ?? GONE;
        const possible = histories.get(id)?.filter(({ until }) => until > sentAt).map(({ name }) => name);
        if (!possible?.includes(name)) stale.push(`${id} was ${possible}, and shown as ${name}`);
      }
    }
  }

  await Promise.all([shop, beside].flatMap((service) => [write(service), read(service), read(service)]));

  assertEquals(stale, []);
  assertGreater(histories.size, CHANGES / 10);
  await assertConsistent(kv);
});
