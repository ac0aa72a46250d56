import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { pause } from "../../src/base/time.ts";
import { print, printOutput } from "../../src/process/process.ts";
import { ConnectServer, type ServerProcess } from "../process/process.ts";
import { ITEM, METRIC, PATH } from "../process/shipped.ts";
import type { NetworkOptions } from "../process/tcp_proxy.ts";
import {
  createCustomers,
  type Customer,
  LIFETIME,
  makeDataFolder,
  OPERATOR_TOKEN,
  startService,
} from "./contenders.ts";
import { figure, table } from "./measure.ts";

const HELP = `Simulates processes of the service with a distant KV Connect server.

  deno task simulate [options]

  --processes N     processes of the service. Default: 3
  --accounts N      accounts, which call all processes in turn. Default: 50
  --latency MS      round trip to the store. Default: 100
  --jitter MS       maximum extra delay in each direction. Default: 0
  --loss SHARE      share of the store's replies that are lost, such as 0.01. Default: 0
  --staleness MS    MAX_STALENESS_MS. Default: 0
  --seconds N       how long to send requests. Default: 10
  --connections N   simultaneous requests, unless --limit is given. Default: 64
  --limit N         instead, give each account this limit per minute, and send for one clock minute
  --demand X        with --limit: how many times its limit each account sends. Default: 2
  --create          add items instead of listing them
  --kill            kill one of the processes during the run

Set DENOKV to a denokv binary to use it as the store; otherwise it is the engine of @deno/kv. Prints a table on standard
output and progress on standard error. Exits with 1 if a limit was exceeded.`;

const WARM_UP = 5_000;
const MINUTE = 60_000;
const UNLIMITED = 1_000_000_000;

const { values: { create, kill, help, ...texts } } = parseArgs({
  options: {
    processes: { type: "string", default: "3" },
    accounts: { type: "string", default: "50" },
    latency: { type: "string", default: "100" },
    jitter: { type: "string", default: "0" },
    loss: { type: "string", default: "0" },
    staleness: { type: "string", default: "0" },
    seconds: { type: "string", default: "10" },
    connections: { type: "string", default: "64" },
    limit: { type: "string", default: "0" },
    demand: { type: "string", default: "2" },
    create: { type: "boolean", default: false },
    kill: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const limit = Number(texts.limit);
const seconds = limit > 0 ? 58 : Number(texts.seconds);

/** What the requests of an account have got. */
interface Caller extends Customer {
  admitted: number;
  refused: number;
  failed: number;
}

if (help) print(HELP);
else if (!await simulate()) Deno.exit(1);

/** Runs the simulation. Resolves to false if a limit was exceeded. */
async function simulate(): Promise<boolean> {
  await using cleanup = new AsyncDisposableStack();
  const file = `${await makeDataFolder(cleanup)}/store.sqlite`;
  const store = cleanup.use(await ConnectServer.start({ file, lifetime: LIFETIME }));
  const servers = await Promise.all(
    Array.from({ length: Number(texts.processes) }, async () =>
      await startService(cleanup, {
        KV_PATH: await openNetwork(cleanup, store.url),
        MAX_STALENESS_MS: texts.staleness,
      })),
  );
  const customers = await createCustomers(last(servers), Number(texts.accounts), limit || UNLIMITED);
  const callers = customers.map((customer): Caller => ({ ...customer, admitted: 0, refused: 0, failed: 0 }));
  const latencies: number[] = [];
  print(`Started ${servers.length} processes, and created ${callers.length} accounts.`);
  if (limit > 0) await pause(MINUTE - Date.now() % MINUTE + 100); // Until the next clock minute.
  else await send(servers, callers, latencies, WARM_UP);
  const warmedUp = sumOf(callers, "admitted");
  for (const caller of callers) caller.admitted = caller.refused = caller.failed = 0;
  latencies.length = 0;

  const before = await metricsOf(servers);
  const killing = kill ? pause(seconds * 500).then(() => servers[0]?.crash()) : undefined;
  await send(servers, callers, latencies, seconds * 1_000);
  await killing;
  await pause(3_000 + 20 * Number(texts.latency)); // Until leases are returned.
  const used = await usedToday(last(servers), callers) - warmedUp;
  await report(callers, latencies, used, before, await metricsOf(servers));
  return limit === 0 || callers.every(({ admitted }) => admitted <= limit);
}

function last(servers: readonly ServerProcess[]): ServerProcess {
  const server = servers.at(-1);
  if (server === undefined) throw new Error("--processes must be a positive integer");
  return server;
}

/** Puts a simulated network in front of a URL. Resolves to the URL to use instead. */
async function openNetwork(cleanup: AsyncDisposableStack, url: string): Promise<string> {
  const network: NetworkOptions = {
    latency: Number(texts.latency),
    jitter: Number(texts.jitter),
    loss: Number(texts.loss),
  };
  const worker = new Worker(new URL("./network_worker.ts", import.meta.url), {
    workerData: { url, network },
  });
  cleanup.defer(async () => void await worker.terminate());
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once("message", resolve);
  worker.once("error", reject);
  return await promise;
}

/** Sends requests for `ms`: on each connection one after another or, with --limit, at a fixed rate. */
async function send(
  servers: readonly ServerProcess[],
  callers: readonly Caller[],
  latencies: number[],
  ms: number,
): Promise<void> {
  const [started, end] = [performance.now(), performance.now() + ms];
  const perMs = limit * Number(texts.demand) * callers.length / MINUTE;
  const sent: Promise<void>[] = [];
  let turn = 0;
  const next = () => sendOne(servers, callers, latencies, turn++);
  if (limit === 0) {
    await Promise.all(Array.from({ length: Number(texts.connections) }, async () => {
      while (performance.now() < end) await next();
    }));
  } else {
    while (performance.now() < end) {
      while (sent.length < (performance.now() - started) * perMs) sent.push(next());
      await pause(5);
    }
  }
  await Promise.all(sent);
}

/** Sends a request. Callers and processes take turns, and each caller uses every process. */
async function sendOne(
  servers: readonly ServerProcess[],
  callers: readonly Caller[],
  latencies: number[],
  turn: number,
): Promise<void> {
  const caller = callers[turn % callers.length];
  const server = servers[(turn % callers.length + Math.floor(turn / callers.length)) % servers.length];
  if (caller === undefined || server === undefined) return;
  const started = performance.now();
  try {
    const body = create ? { body: ITEM, headers: { "content-type": "application/json" } } : {};
    const response = await server.fetch(`${create ? "POST" : "GET"} ${PATH}`, { key: caller.key, ...body });
    await response.bytes();
    latencies.push(performance.now() - started);
    if (response.ok) caller.admitted++;
    else if (response.status === 429) caller.refused++;
    else caller.failed++;
  } catch {
    caller.failed++;
  }
}

function sumOf(callers: readonly Caller[], count: "admitted" | "refused" | "failed"): number {
  return callers.reduce((sum, caller) => sum + caller[count], 0);
}

/** Number of permits that the accounts have used today, according to the store. */
async function usedToday(server: ServerProcess, callers: readonly Caller[]): Promise<number> {
  let used = 0;
  for (const { id } of callers) {
    const response = await server.fetch(`GET /operator/v1/accounts/${id}`, { key: OPERATOR_TOKEN });
    used += (await response.json()).usage.day.used;
  }
  return used;
}

/** Sums of the metrics of all processes that respond, by name and labels. */
async function metricsOf(servers: readonly ServerProcess[]): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const server of servers) {
    const text = await server.fetch("GET /metrics", { key: OPERATOR_TOKEN })
      .then((response) => response.text(), () => "");
    for (const [, name = "", value] of text.matchAll(new RegExp(`^${METRIC}_(\\S+) (\\S+)$`, "gm"))) {
      sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
  }
  return sums;
}

/** Prints the results. */
async function report(
  callers: readonly Caller[],
  latencies: readonly number[],
  used: number,
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Promise<void> {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => figure(sorted[Math.floor(share * sorted.length)] ?? NaN);
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const operations = (of: "count" | "sum", operation: "read" | "write") =>
    grown(`kv_operation_duration_seconds_${of}{operation="${operation}"}`);
  const mean = (operation: "read" | "write") =>
    figure(operations("sum", operation) / operations("count", operation) * 1_000);
  const admitted = callers.map((caller) => caller.admitted);
  const rows = [
    ["responses per second", figure(latencies.length / seconds)],
    ["p50 in ms", at(0.5)],
    ["p99 in ms", at(0.99)],
    ["admitted per account", `${Math.min(...admitted)} to ${Math.max(...admitted)}`],
    ["refused with 429", `${sumOf(callers, "refused")}`],
    ["failed", `${sumOf(callers, "failed")}`],
    ["mean KV read in ms", mean("read")],
    ["mean KV commit in ms", mean("write")],
    ["commits per 1,000 responses", figure(operations("count", "write") / latencies.length * 1_000)],
    ["of them with a conflict", `${grown("kv_conflicts_total")}`],
    ["permits counted but not used", `${used - sumOf(callers, "admitted")}`],
  ];
  await printOutput(table(["", "Simulation"], rows));
}
