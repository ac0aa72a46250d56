import { assertEquals, assertGreater } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { Store } from "../../src/kv/store.ts";
import { Harness } from "../harness.ts";
import { disturbed } from "../kv/disturbed_kv.ts";
import { seededRandom } from "../seeded_random.ts";
import { listIds } from "./catalogue.ts";

const LISTS = 1_500;
const ANIMALS = 40;

Deno.test("listPets() has every animal whose 201 came before the request, from two instances that list and add", async () => {
  using kv = await Deno.openKv(":memory:");
  const random = seededRandom(20270115);
  let confirmations = 0;
  async function dawdle(): Promise<void> {
    for (let turns = Math.floor(random() * 4); turns > 0; turns--) await setImmediate();
  }
  const slow = disturbed(kv, {
    read: dawdle,
    commit: async ({ apply, checks }) => {
      if (checks === 2) confirmations++;
      await dawdle();
      const result = await apply();
      await dawdle();
      return result;
    },
  });
  const here = new Harness(slow, new Store(slow, { maxChecks: 10 }));
  const there = new Harness(slow, new Store(slow, { maxChecks: 10 }));
  const { secret: key } = await here.issueKey({ minute: 1_000_000, day: 1_000_000 });
  const added: number[] = [];
  const missed: string[] = [];
  let lists = 0;

  async function list(service: Harness): Promise<void> {
    while (lists < LISTS) {
      const turn = ++lists;
      const expected = [...added];
      const listed = new Set(await listIds(service, key, "?limit=100"));
      const missing = expected.filter((id) => !listed.has(id));
      if (missing.length > 0) missed.push(`list ${turn} misses ${missing}`);
      if (turn * ANIMALS / LISTS > added.length + 1) await add(random() < 0.5 ? here : there);
    }
  }

  async function add(service: Harness): Promise<void> {
    const response = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 1 } });
    assertEquals(response.status, 201);
    added.push((await response.json()).id);
  }

  await Promise.all([here, there].flatMap((service) => [1, 2, 3].map(() => list(service))));

  assertEquals(missed, []);
  assertGreater(added.length, ANIMALS / 2);
  assertGreater(confirmations, LISTS / 20);
});
