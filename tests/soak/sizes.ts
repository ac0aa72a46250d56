// Measures sizes and times of a large store, for the table in src/operator/README.md:
//     deno run --config tests/deno.json -P tests/soak/sizes.ts
import { assert, assertEquals } from "@std/assert";
import { DAY } from "../../src/base/mod.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/open.ts";
import { openCollections, sweepGenerations } from "../../src/resource/mod.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { call, upTo } from "../support/client.ts";
import { residentMemory, type ServerProcess, succeeds } from "../process/process.ts";
import { addItem, itemWith, LIST, PATH, SHIPPED } from "../process/shipped.ts";
import { TemporaryStore } from "../process/temporary_store.ts";

const ITEMS = 300_000;
const ACCOUNTS = 10_000;
const PER_BATCH = 50;
const AT_ONCE = 64;
/** Requests of a kind, one after the other. */
const REQUESTS = 300;

await using store = await TemporaryStore.create();
const { key } = await store.createAccount();
const empty = await storeBytes(store.kvPath);
const emptyStart = await startOf(store);

{
  await using server = await serve(store);
  await inParallel(ACCOUNTS / PER_BATCH, 4, async (batch) => {
    const accounts = upTo(PER_BATCH).map((number) => ({ name: `Customer ${batch * PER_BATCH + number}` }));
    const { status } = await call(server, OPERATOR_TOKEN, "POST /operator/v1/accounts/batch", {
      json: { accounts, plan: "pro" },
    });
    assertEquals(status, 200);
  });
  await server.stop();
}
const withAccounts = await storeBytes(store.kvPath);

const adding = performance.now();
{
  await using server = await serve(store);
  await inParallel(ITEMS, AT_ONCE, async () => assertEquals((await addItem(server, key)).status, 201));
  await server.stop();
}
const added = performance.now() - adding;
const withItems = await storeBytes(store.kvPath);
const fullStart = await startOf(store);

print("thing", "measured");
print("---", "--:");
print("an account", kilobytes((withAccounts - empty) / ACCOUNTS));
print("an item, an animal with a short name", kilobytes((withItems - withAccounts) / ITEMS));
print(
  `the file with ${ACCOUNTS.toLocaleString("en")} accounts and ${inWords(ITEMS)} items`,
  megabytes(withItems),
);
print(`adding them, ${AT_ONCE} requests at a time`, seconds(added));
print("start, with an empty store", seconds(emptyStart.ms));
print(`start, with ${inWords(ITEMS)} items`, seconds(fullStart.ms));
print("memory after the start, with an empty store", megabytes(emptyStart.memory));
print(`memory after the start, with ${inWords(ITEMS)} items`, megabytes(fullStart.memory));

{
  await using server = await serve(store);
  const [filter] = SHIPPED.filters;
  const query = filter === undefined ? "" : `?${filter}=${JSON.parse(itemWith(1))[filter]}`;
  const someId = () => 1 + Math.floor(Math.random() * ITEMS);
  const kinds: readonly (readonly [name: string, send: () => Promise<{ status: number }>])[] = [
    ["the first page", () => call(server, key, LIST)],
    [
      "a page from somewhere, by its cursor",
      () => call(server, key, `${LIST}?cursor=${btoa(`${someId()}`).replaceAll("=", "")}`),
    ],
    ["a page of one filter", () => call(server, key, LIST + query)],
    ["an item", () => call(server, key, `${LIST}/${someId()}`)],
    ["a new item", () => addItem(server, key)],
    [
      "a change of an item",
      () => call(server, key, `PATCH ${PATH}/${someId()}`, { json: SHIPPED.examples.change }),
    ],
    [
      "a page of accounts, for operators",
      () => call(server, OPERATOR_TOKEN, "GET /operator/v1/accounts?limit=100"),
    ],
  ];
  for (const [name, send] of kinds) {
    const times: number[] = [];
    for (let count = 0; count < REQUESTS; count++) {
      const began = performance.now();
      const { status } = await send();
      times.push(performance.now() - began);
      assert(status < 300, `${name}: ${status}`);
    }
    times.sort((a, b) => a - b);
    const [median = NaN, late = NaN] = [0.5, 0.99].map((share) => times[Math.floor(REQUESTS * share)]);
    print(`${name}: median, 99 of 100`, `${median.toFixed(1)} ms, ${late.toFixed(1)} ms`);
  }
  print("memory after these requests", megabytes(await residentMemory(server.pid)));
  await server.stop();
}

const backedUp = await timed(() => store.run("backup", `${store.folder}/backup.kv`));
print("backup", seconds(backedUp));
const before = await storeBytes(store.kvPath);
const times = (bytes: number) => `${megabytes(bytes)}, ${(bytes / before).toFixed(1)} times as much`;
let peak = 0;
const watch = setInterval(async () => peak = Math.max(peak, await storeBytes(store.kvPath)), 50);
const rebuilt = await timed(() => store.run("items", SHIPPED.name, "rebuild"));
clearInterval(watch);
print("rebuild", seconds(rebuilt));
print("the file and its log during a rebuild", times(peak));
print("the file after a rebuild", times(await storeBytes(store.kvPath)));
await sweep();
print("the file once the former rows are deleted", times(await storeBytes(store.kvPath)));
const smaller = `${store.folder}/smaller.kv`;
const copied = await timed(async () => {
  assert(await succeeds("sqlite3", store.kvPath, `VACUUM INTO '${smaller}'`), "install sqlite3");
  return { code: 0 };
});
print("copying it smaller", `${seconds(copied)}, ${megabytes(await storeBytes(smaller))}`);

/** Deletes the rows of the former generation, as the service does a day later. */
async function sweep(): Promise<void> {
  const clock = () => Date.now() + 2 * DAY;
  const opened = await openStore(store.kvPath, { clock, create: false });
  const generations = await openCollections(opened, CATALOGUE, { create: false });
  while (await sweepGenerations(opened, CATALOGUE.resources, generations, clock()));
  await opened.close();
}

function serve(store: TemporaryStore): Promise<ServerProcess> {
  return store.serve({ OPERATOR_TOKEN });
}

/** How long a start takes until it listens, and the memory of the process then. */
async function startOf(store: TemporaryStore): Promise<{ readonly ms: number; readonly memory: number }> {
  const began = performance.now();
  await using server = await serve(store);
  const ms = performance.now() - began;
  await server.fetch("GET /ready").then((response) => response.body?.cancel());
  const memory = await residentMemory(server.pid);
  await server.stop();
  return { ms, memory };
}

/** Runs a task `count` times, some of them at once. */
async function inParallel(
  count: number,
  atOnce: number,
  task: (number: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    upTo(atOnce).map(async () => {
      while (next < count) await task(next++);
    }),
  );
}

/** How long a command takes that must succeed, in ms. */
async function timed(run: () => Promise<{ readonly code: number }>): Promise<number> {
  const began = performance.now();
  assertEquals((await run()).code, 0);
  return performance.now() - began;
}

/** Size of a store's file and its write-ahead log. */
async function storeBytes(path: string): Promise<number> {
  const sizes = await Promise.all(["", "-wal"].map(async (end) => {
    try {
      return (await Deno.stat(path + end)).size;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return 0;
      throw error;
    }
  }));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function print(...cells: readonly string[]): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`| ${cells.join(" | ")} |\n`));
}

function inWords(count: number): string {
  return count.toLocaleString("en");
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1_000).toFixed(2)} kB`;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_000_000)} MB`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
