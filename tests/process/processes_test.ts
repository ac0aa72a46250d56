import { assertEquals } from "@std/assert";
import { addAnimal, listAnimals, readAnimal, tally } from "../support/client.ts";
import { Cluster } from "../support/cluster.ts";
import { inOneDay } from "../support/temporary_store.ts";

const LIMIT = 50;

Deno.test("servers on one KV file admit exactly the limit when requests come at once", () =>
  inOneDay(async () => {
    await using cluster = await Cluster.start();
    const { key } = await cluster.store.createAccount({ perDay: LIMIT });

    const answers = await Promise.all(upTo(LIMIT + 40).map((index) => cluster.list(index, key)));

    assertEquals(tally(answers), { "200": LIMIT, "429 rate_limit_day": 40 });
  }));

Deno.test("server lists an animal at once when another server on the KV file added it", async () => {
  await using cluster = await Cluster.start();
  const { key } = await cluster.store.createAccount();

  for (const index of upTo(10)) {
    const created = await addAnimal(cluster.server(index), `animal ${index}`, { key });
    const listed = await listAnimals(cluster.server(index + 1), key);
    const animal = readAnimal(created.json);
    assertEquals(listed.find(({ id }) => id === animal.id), animal);
  }
});

Deno.test("servers on one KV file make one animal for each idempotency key when all come to both at once", async () => {
  await using cluster = await Cluster.start();
  const { key } = await cluster.store.createAccount();

  const answers = await Promise.all(
    upTo(60).map((index) => {
      const name = `${index % 15}`;
      return addAnimal(cluster.server(index), name, { key, headers: { "idempotency-key": name } });
    }),
  );

  assertEquals(tally(answers), { "201": 60 });
  assertEquals(answers.filter(({ headers }) => headers.has("idempotency-replayed")).length, 45);
  const ids = new Map(answers.map(({ json }) => readAnimal(json)).map(({ id, name }) => [id, { id, name }]));
  assertEquals(await listAnimals(cluster.server(0), key), [...ids.values()].sort((a, b) => a.id - b.id));
  assertEquals(ids.size, 15);
});

/** The numbers from 0, as many. */
function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
