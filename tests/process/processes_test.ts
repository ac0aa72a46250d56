import { assertEquals } from "@std/assert";
import { callAtOnce, tally, upTo } from "../support/client.ts";
import type { ServerProcess } from "./process.ts";
import { addItem, idIn, LIST, listIds } from "./shipped.ts";
import { inOneDay, TemporaryStore } from "./temporary_store.ts";

const LIMIT = 50;

/** Two servers on one KV file. */
class Cluster implements AsyncDisposable {
  readonly store: TemporaryStore;
  readonly servers: readonly [ServerProcess, ServerProcess];

  private constructor(store: TemporaryStore, servers: readonly [ServerProcess, ServerProcess]) {
    this.store = store;
    this.servers = servers;
  }

  /** Starts both concurrently, on a file that does not exist yet. */
  static async start(): Promise<Cluster> {
    const store = await TemporaryStore.empty();
    return new Cluster(store, await Promise.all([store.serve(), store.serve()]));
  }

  /** The first server for an even index, the second for an odd one. */
  server(index: number): ServerProcess {
    return this.servers[index % 2 === 0 ? 0 : 1];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) await server[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

Deno.test("servers on one KV file admit exactly as many concurrent requests as the limit", () =>
  inOneDay(async () => {
    await using cluster = await Cluster.start();
    const { key } = await cluster.store.createAccount({ perDay: LIMIT });

    const answers = await callAtOnce(LIMIT + 40, cluster.servers, key, LIST);

    assertEquals(tally(answers), { "200": LIMIT, "429 rate_limit_day": 40 });
  }));

Deno.test("server immediately lists an item that another server on the same KV file added", async () => {
  await using cluster = await Cluster.start();
  const { key } = await cluster.store.createAccount();

  const [adding, listing] = cluster.servers;

  for (const _ of upTo(10)) {
    const id = idIn((await addItem(adding, key)).json);
    assertEquals((await listIds(listing, key)).at(-1), id);
  }
});

Deno.test("servers on one KV file create one item for concurrent requests with the same Idempotency-Key", async () => {
  await using cluster = await Cluster.start();
  const { key } = await cluster.store.createAccount();

  const answers = await Promise.all(
    upTo(60).map((index) => addItem(cluster.server(index), key, { "idempotency-key": `${index % 15}` })),
  );

  assertEquals(tally(answers), { "201": 60 });
  assertEquals(answers.filter(({ headers }) => headers.has("idempotency-replayed")).length, 45);
  const ids = answers.map(({ json }) => idIn(json));
  for (const [index, id] of ids.entries()) assertEquals(id, ids[index % 15]);
  assertEquals(await listIds(cluster.server(0), key), [...new Set(ids)].sort((a, b) => a - b));
  assertEquals(new Set(ids).size, 15);
});
