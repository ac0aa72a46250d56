import { assertEquals, assertGreater } from "@std/assert";
import { decodeText } from "../../../src/kv/row.ts";
import { type Commit, disturbed, locked } from "../../support/fake_kv.ts";
import { Harness } from "../../support/harness.ts";
import { ConnectServer } from "../../support/process.ts";
import { seededRandom } from "../../support/time.ts";

const CALLERS = 10;
/** KV allows ten checks in one commit, like a server. */
const SMALL = { maxChecks: 10 };

/** The fields of an animal that matter here. */
interface Animal {
  readonly id: number;
  readonly name: string;
}

/** Lets several callers at once create animals, each sequentially. Returns the responses of each. */
function createMany(services: readonly Harness[], key: string, each: number): Promise<Animal[][]> {
  return Promise.all(Array.from({ length: CALLERS }, async (_, caller) => {
    const service = services[caller % services.length];
    const animals: Animal[] = [];
    for (let count = 0; count < each; count++) {
      const name = `${caller}.${count}`;
      const request = { key, json: { name, categoryId: 1 }, headers: { "idempotency-key": name } };
      const response = await service?.fetch("POST /v1/pets", request);
      assertEquals(response?.status, 201);
      animals.push(await response?.json());
    }
    return animals;
  }));
}

/** Asserts that exactly these animals are stored, each once, and that the IDs of each caller ascend. */
async function assertStored(kv: Deno.Kv, created: readonly Animal[][]): Promise<void> {
  for (const animals of created) {
    const ids = animals.map(({ id }) => id);
    assertEquals(ids, ids.toSorted((a, b) => a - b));
  }
  const rows = await Array.fromAsync(kv.list({ prefix: ["pets"] }), (entry): Animal => {
    return JSON.parse(decodeText(entry).split("\n")[0] ?? "");
  });
  const brief = ({ id, name }: Animal) => `${id} ${name}`;
  assertEquals(rows.map(brief).sort(), created.flat().map(brief).sort());
  assertEquals(new Set(rows.map(({ name }) => name)).size, rows.length);
}

/** Asserts that the key's minute is used up in every process. */
async function assertSpent(services: readonly Harness[], key: string): Promise<void> {
  for (const service of services) {
    assertEquals((await service.fetch("GET /v1/pets", { key })).status, 429);
    await service.stop();
  }
}

Deno.test.each([[1, 20270115], [2, 731]])(
  "service (processes: %i) loses and duplicates nothing if KV's replies are lost (seed %i)",
  async (instances, seed) => {
    using kv = await Deno.openKv(":memory:");
    const random = seededRandom(seed);
    let repeated = 0;
    const commit = async ({ apply }: Commit) => {
      const chance = random();
      if (chance < 0.3) return await locked();
      const result = await apply();
      return chance < 0.7 ? (repeated++, await apply()) : result;
    };
    const services = Array.from({ length: instances }, () => new Harness(disturbed(kv, { commit }), SMALL));
    const calm = new Harness(kv);
    const { apiKey: key } = await calm.createAccount({ minute: 200, day: 10_000 });

    const created = await createMany(services, key, 20);

    await assertStored(kv, created);
    await assertSpent([...services, calm], key);
    assertGreater(repeated, 20);
  },
);

Deno.test("service loses nothing and counts nothing twice if replies of a KV Connect server are lost", async () => {
  await using server = await ConnectServer.start({ lostOneIn: 5 });
  using here = await Deno.openKv(server.url);
  using there = await Deno.openKv(server.url);
  const services = [here, there].map((kv) => new Harness(kv, SMALL));
  const { apiKey: key } = await new Harness(here).createAccount({ minute: 40, day: 1_000 });

  const created = await createMany(services, key, 4);

  await assertStored(here, created);
  await assertSpent(services, key);
  assertGreater(await server.lost(), 3);
});
