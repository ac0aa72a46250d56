import { assert, assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import { addAnimal, call, listAnimals, outcome, readAnimal } from "./client.ts";
import type { ServerProcess } from "./server_process.ts";
import { inOneDay, TemporaryStore } from "./temporary_store.ts";

const ROUNDS = 3;
const CLIENTS = 16;
const ANSWERS_BEFORE_CRASH = 60;

Deno.test("server keeps every animal and message it accepted, once, when it is killed meanwhile", async () => {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  const add = (server: ServerProcess, name: string) =>
    addAnimal(server, name, { key, headers: { "idempotency-key": name } });
  const acknowledged = new Map<string, number>();

  for (let round = 0; round < ROUNDS; round++) {
    const sent: string[] = [];
    const accepted: string[] = [];
    await using victim = await store.serve();
    await crashUnderLoad(victim, async (server, request) => {
      const name = `${round}.${request}`;
      if (request % 2 === 0) {
        const answer = await call(server, "POST /v1/messages", { key, json: { message: name } });
        assertEquals(outcome(answer), "202");
        accepted.push(JSON.stringify(answer.json).replace(/,"status".*/, ""));
      } else {
        sent.push(name);
        const answer = await add(server, name);
        assertEquals(outcome(answer), "201");
        acknowledged.set(name, readAnimal(answer.json).id);
      }
    });

    await using server = await store.serve();
    const stored = await idsByName(server, key);
    for (const [name, id] of acknowledged) assertEquals(stored.get(name), id, name);
    for (const name of sent) {
      const { status, headers, json } = await add(server, name);
      const { id } = readAnimal(json);
      assertEquals([status, headers.has("idempotency-replayed")], [201, stored.has(name)], name);
      assertEquals(id, stored.get(name) ?? id, name);
      acknowledged.set(name, id);
    }
    assertEquals(await idsByName(server, key), acknowledged);
    const { code, stdout } = await store.run("messages", "take", "1000");
    const lines = stdout.trim().split("\n");
    assertEquals([code, new Set(lines).size], [0, lines.length]);
    for (const message of accepted) assert(lines.some((line) => line.startsWith(message)), message);
  }
});

Deno.test("server counts every request it admitted, and at most its leases more, when it is killed while admitting", () =>
  inOneDay(async () => {
    await using store = await TemporaryStore.create();
    const account = await store.createAccount();
    let admitted = 0;
    let unanswered = 0;

    for (let round = 0; round < ROUNDS; round++) {
      await using victim = await store.serve();
      unanswered += await crashUnderLoad(victim, async (server) => {
        assertEquals(outcome(await call(server, "GET /v1/pets", account)), "200");
        admitted++;
      });

      const { usedToday, leasedToday } = await store.usageOf(account);
      assertGreaterOrEqual(usedToday, admitted);
      assertLessOrEqual(usedToday - leasedToday, admitted + unanswered);
    }
  }));

/**
 * Kills a server in the middle of exchanges that clients have with it without pause, each told its number.
 * Resolves to how many of them were cut short.
 */
async function crashUnderLoad(
  server: ServerProcess,
  exchange: (server: ServerProcess, request: number) => Promise<void>,
): Promise<number> {
  const enough = Promise.withResolvers<void>();
  let requests = 0;
  let answers = 0;

  async function client(): Promise<void> {
    while (true) {
      try {
        await exchange(server, requests++);
      } catch (error) {
        enough.resolve();
        // That is how fetch rejects when there is no answer, or only a part of it.
        if (error instanceof TypeError || error instanceof SyntaxError) return;
        throw error;
      }
      if (++answers === ANSWERS_BEFORE_CRASH) enough.resolve();
    }
  }

  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  await enough.promise;
  await server.crash();
  await clients;
  assertGreaterOrEqual(answers, ANSWERS_BEFORE_CRASH);
  return requests - answers;
}

/** The ids of all animals by their names, which are unique. */
async function idsByName(server: ServerProcess, key: string): Promise<Map<string, number>> {
  const animals = await listAnimals(server, key);
  const ids = new Map(animals.map(({ id, name }) => [name, id]));
  assertEquals([ids.size, new Set(ids.values()).size], [animals.length, animals.length]);
  return ids;
}
