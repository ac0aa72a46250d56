import { assertEquals, assertGreater } from "@std/assert";
import { addAnimal, type Answer, errorCode, listAnimals, readAnimal } from "./client.ts";
import { Cluster } from "./cluster.ts";

const LIMIT = 50;

Deno.test("servers on one KV file admit exactly the limit when requests come at once", async () => {
  await using cluster = await Cluster.start();

  const answers = await cluster.inOneDay(
    LIMIT,
    (authorization) =>
      Promise.all(Array.from({ length: LIMIT + 40 }, (_, index) => cluster.list(index, authorization))),
  );

  assertExactlyTheLimit(answers);
});

Deno.test("servers on one KV file admit exactly the limit when they take turns", async () => {
  await using cluster = await Cluster.start();

  const answers = await cluster.inOneDay(LIMIT, async (authorization) => {
    const answers: Answer[] = [];
    for (let index = 0; index < LIMIT + 4; index++) answers.push(await cluster.list(index, authorization));
    return answers;
  });

  assertExactlyTheLimit(answers);
  assertEquals(
    answers.slice(0, LIMIT).map(remaining),
    Array.from({ length: LIMIT }, (_, index) => LIMIT - 1 - index),
  );
});

Deno.test("server lists an animal at once when another server on the KV file added it", async () => {
  await using cluster = await Cluster.start();
  const { authorization } = await cluster.store.issueKey();
  const names = Array.from({ length: 10 }, (_, index) => `animal ${index}`);

  for (const [index, name] of names.entries()) {
    const created = await addAnimal(cluster.server(index), name, { authorization });
    assertEquals(created.status, 201);
    const listed = await listAnimals(cluster.server(index + 1), authorization);
    assertEquals(listed.at(-1), readAnimal(created.json));
  }

  assertEquals((await listAnimals(cluster.server(0), authorization)).map(({ name }) => name), names);
});

Deno.test("servers on one KV file give every animal an id of its own when they add at once", async () => {
  await using cluster = await Cluster.start();
  const { authorization } = await cluster.store.issueKey();

  const created = await Promise.all(
    Array.from({ length: 60 }, (_, index) => addAnimal(cluster.server(index), `${index}`, { authorization })),
  );

  assertEquals(created.map(({ status }) => status), created.map(() => 201));
  const ids = created.map(({ json }) => readAnimal(json).id).sort((a, b) => a - b);
  assertEquals(new Set(ids).size, created.length);
  const listed = await listAnimals(cluster.server(0), authorization);
  assertEquals(listed.map(({ id }) => id), ids);
});

Deno.test("server replays the reply when another server on the KV file got the idempotency key", async () => {
  await using cluster = await Cluster.start();
  const { authorization } = await cluster.store.issueKey();
  const options = { authorization, idempotencyKey: "rex-1" };

  const first = await addAnimal(cluster.server(0), "Rex", options);
  const second = await addAnimal(cluster.server(1), "Rex", options);
  const third = await addAnimal(cluster.server(1), "Tom", options);

  assertEquals([first.status, second.status, third.status], [201, 201, 422]);
  assertEquals(first.headers.get("idempotency-replayed"), null);
  assertEquals(second.headers.get("idempotency-replayed"), "true");
  assertEquals(second.json, first.json);
  assertEquals(errorCode(third.json), "idempotency_key_reused");
});

Deno.test("servers on one KV file make one animal when an idempotency key comes to both at once", async () => {
  await using cluster = await Cluster.start();
  const { authorization } = await cluster.store.issueKey();

  for (let round = 0; round < 5; round++) {
    const options = { authorization, idempotencyKey: `round-${round}` };
    const answers = await Promise.all(
      [0, 1, 2, 3].map((index) => addAnimal(cluster.server(index), `${round}`, options)),
    );
    assertEquals(answers.map(({ status }) => status), [201, 201, 201, 201]);
    assertEquals(new Set(answers.map(({ json }) => readAnimal(json).id)).size, 1);
    const replayed = answers.filter(({ headers }) => headers.has("idempotency-replayed"));
    assertEquals(replayed.length, 3);
  }

  assertEquals((await listAnimals(cluster.server(0), authorization)).length, 5);
});

function assertExactlyTheLimit(answers: readonly Answer[]): void {
  const admitted = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  assertEquals([admitted.length, refused.length], [LIMIT, answers.length - LIMIT]);
  assertEquals(
    admitted.map(remaining).sort((a, b) => a - b),
    Array.from({ length: LIMIT }, (_, index) => index),
  );
  for (const { headers, json } of refused) {
    assertEquals(headers.get("x-ratelimit-limit"), `${LIMIT}`);
    assertEquals(headers.get("x-ratelimit-remaining"), "0");
    assertGreater(Number(headers.get("retry-after")), 0);
    assertEquals(errorCode(json), "rate_limit_day");
  }
}

function remaining({ headers }: Answer): number {
  return Number(headers.get("x-ratelimit-remaining"));
}
