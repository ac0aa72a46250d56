import { assert, assertEquals, assertGreater, assertGreaterOrEqual } from "@std/assert";
import { addAnimal, type Answer, call, errorCode, listAnimals, readAnimal } from "./client.ts";
import type { ServerProcess } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

const ROUNDS = 3;
const CLIENTS = 16;
const ANSWERS_BEFORE_CRASH = 60;
const PER_DAY = 1_000_000;

Deno.test("server keeps every animal it acknowledged, once, when it is killed while adding", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  const acknowledged = new Map<string, number>();

  for (let round = 0; round < ROUNDS; round++) {
    const sent: string[] = [];
    await crashUnderLoad(store, {
      send(server, request) {
        const name = `${round}.${request}`;
        sent.push(name);
        return addAnimal(server, name, { authorization, idempotencyKey: name });
      },
      received({ status, json }, request) {
        assertEquals(status, 201);
        acknowledged.set(`${round}.${request}`, readAnimal(json).id);
      },
    });

    await using server = await store.serve();
    const stored = await idsByName(server, authorization);
    for (const [name, id] of acknowledged) assertEquals(stored.get(name), id, name);

    for (const name of sent) {
      const { status, headers, json } = await addAnimal(server, name, {
        authorization,
        idempotencyKey: name,
      });
      assertEquals(status, 201);
      assertEquals(headers.has("idempotency-replayed"), stored.has(name), name);
      assertEquals(readAnimal(json).id, stored.get(name) ?? readAnimal(json).id, name);
      acknowledged.set(name, readAnimal(json).id);
    }
    assertEquals(await idsByName(server, authorization), acknowledged);
  }
});

Deno.test("server still counts every request it admitted when it is killed while admitting", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey({ perDay: PER_DAY });
  const resets: (string | null)[] = [];

  for (let round = 0; round < ROUNDS; round++) {
    await crashUnderLoad(store, {
      send: (server) => call(server, "GET /v1/pets", { authorization }),
      received({ status, headers }) {
        assertEquals(status, 200);
        resets.push(headers.get("x-ratelimit-reset"));
      },
    });

    await using server = await store.serve();
    const { headers } = await call(server, "GET /v1/pets", { authorization });
    const reset = headers.get("x-ratelimit-reset");
    resets.push(reset);
    assertEquals(headers.get("x-ratelimit-limit"), `${PER_DAY}`);
    const admittedToday = resets.filter((other) => other === reset).length;
    assertGreaterOrEqual(PER_DAY - Number(headers.get("x-ratelimit-remaining")), admittedToday);
  }
});

Deno.test("server still bans a key when it is killed after the ban", async () => {
  await using store = await TemporaryStore.create();
  const banned = await store.issueKey({ perMinute: 2 });
  const other = await store.issueKey();

  for (let round = 0; round < ROUNDS; round++) {
    await using server = await store.serve();
    if (round === 0) await untilBanned(server, banned.authorization);
    const { status, headers, json } = await call(server, "GET /v1/pets", banned);
    assertEquals(status, 429);
    assertGreater(Number(headers.get("retry-after")), 60);
    assertEquals(errorCode(json), "key_banned");
    assertEquals((await call(server, "GET /v1/pets", other)).status, 200);
    await server.crash();
  }
});

Deno.test("server keeps every message it accepted when it is killed while accepting", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();

  for (let round = 0; round < ROUNDS; round++) {
    const accepted: string[] = [];
    await crashUnderLoad(store, {
      send(server, request) {
        const body = { message: `${round}.${request}` };
        return call(server, "POST /v1/messages", { authorization, body });
      },
      received({ status, json }) {
        assertEquals(status, 202);
        accepted.push(JSON.stringify(json));
      },
    });

    const { code, stdout } = await store.run("messages", "take", "1000");
    assertEquals(code, 0);
    const lines = stdout.trim().split("\n");
    assertEquals(new Set(lines).size, lines.length);
    for (const message of accepted) assert(lines.includes(message), message);
  }
});

/** What clients do under load. */
interface Load {
  /** Sends a request, which is told its number. */
  send(server: ServerProcess, request: number): Promise<Answer>;
  /** Looks at the answer to it. */
  received(answer: Answer, request: number): void;
}

/** Kills a server in the middle of requests that clients send without pause. */
async function crashUnderLoad(store: TemporaryStore, { send, received }: Load): Promise<void> {
  await using server = await store.serve();
  const enough = Promise.withResolvers<void>();
  let requests = 0;
  let answers = 0;

  async function client(): Promise<void> {
    try {
      while (true) {
        const request = requests++;
        const answer = await send(server, request).catch(() => undefined);
        if (answer === undefined) return;
        received(answer, request);
        if (++answers === ANSWERS_BEFORE_CRASH) enough.resolve();
      }
    } finally {
      enough.resolve();
    }
  }

  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  await enough.promise;
  await server.crash();
  await clients;
  assertGreaterOrEqual(answers, ANSWERS_BEFORE_CRASH);
}

/** The ids of all animals by their names, which are unique. */
async function idsByName(server: ServerProcess, authorization: string): Promise<Map<string, number>> {
  const animals = await listAnimals(server, authorization);
  const ids = new Map(animals.map(({ id, name }) => [name, id]));
  assertEquals(ids.size, animals.length);
  assertEquals(new Set(ids.values()).size, animals.length);
  return ids;
}

/** Goes on after 429 until the key, of two requests a minute, is banned. */
async function untilBanned(server: ServerProcess, authorization: string): Promise<void> {
  for (let requests = 0; requests < 20; requests++) {
    const { json } = await call(server, "GET /v1/pets", { authorization });
    if (errorCode(json) === "key_banned") return;
  }
  throw new Error("The key was not banned");
}
