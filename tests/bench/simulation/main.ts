import { parseArgs } from "node:util";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { figure, table } from "../report.ts";
import { ConnectServer, KV_TOKEN } from "../../process/process.ts";
import { METRIC } from "../../process/shipped.ts";
import type { NetworkOptions } from "../../process/tcp_proxy.ts";
import { CHECKOUT, DATA, type Server, startServer } from "../server.ts";
import { Failure, interrupted, note, print } from "../terminal.ts";
import { type Customer, sendClosedLoop, sendOpenLoop } from "./load.ts";

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

Set DENOKV to a denokv binary to use it as the store; otherwise it is the engine of @deno/kv. Prints the tables on
standard output and progress on standard error. Exit codes: 0 success, 1 failure or an exceeded limit, 2 invalid
arguments.`;

const OPERATOR_TOKEN = "simulated-operator-0123456789abcdef";
const WARM_UP = 5_000;
/** Number of accounts that one request creates. */
const BATCH = 50;
const UNLIMITED = 1_000_000_000;
const STORE_LIFETIME = 86_400_000;

let exitCode = 2;
try {
  const options = parse(Deno.args);
  exitCode = 1;
  if (options.help) print(HELP);
  else if (!await simulate(options)) throw new Failure("A limit was exceeded");
  exitCode = 0;
} catch (error) {
  if (!(error instanceof Error)) throw error;
  if (interrupted.aborted) note("Interrupted");
  else if (exitCode === 2) note(`${error.message.split("\n")[0]} (see --help)`);
  else if (error instanceof Failure) note(error.message);
  else throw error;
}
Deno.exit(exitCode);

/** Parses the command line. Throws if it is invalid. */
function parse(args: string[]) {
  const text = (otherwise: string) => ({ type: "string", default: otherwise }) as const;
  const { values } = parseArgs({
    args,
    options: {
      processes: text("3"),
      accounts: text("50"),
      latency: text("100"),
      jitter: text("0"),
      loss: text("0"),
      staleness: text("0"),
      seconds: text("10"),
      connections: text("64"),
      limit: text("0"),
      demand: text("2"),
      create: { type: "boolean", default: false },
      kill: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { create, kill, help, ...texts } = values;
  const number = (name: keyof typeof texts, most: number = Infinity) => {
    const value = Number(texts[name]);
    if (!(value >= 0 && value <= most)) {
      throw new Error(`--${name} must be a number from 0${most < Infinity ? ` to ${most}` : ""}`);
    }
    return value;
  };
  const count = (name: keyof typeof texts) => {
    const value = Number(texts[name]);
    if (!(Number.isSafeInteger(value) && value > 0)) throw new Error(`--${name} must be a positive integer`);
    return value;
  };
  return {
    processes: count("processes"),
    accounts: count("accounts"),
    network: { latency: number("latency"), jitter: number("jitter"), loss: number("loss", 1) },
    staleness: number("staleness"),
    seconds: count("seconds"),
    connections: count("connections"),
    limit: number("limit"),
    demand: number("demand"),
    isCreate: create,
    withKill: kill,
    help,
  };
}

type Options = ReturnType<typeof parse>;

/** Runs the simulation. Resolves to false if a limit was exceeded. */
async function simulate(options: Options): Promise<boolean> {
  const { limit, accounts, withKill } = options;
  await using cleanup = new AsyncDisposableStack();
  const url = await startStore(cleanup);
  note("Started the store.");
  const servers = await Promise.all(
    Array.from({ length: options.processes }, () => startProcess(cleanup, url, options)),
  );
  note(`Started ${servers.length} processes.`);
  const customers = await createCustomers(servers, accounts, limit || UNLIMITED);
  note(`Created ${customers.length} accounts.`);
  const latencies: number[] = [];
  const origins = servers.map(({ origin }) => origin);
  const everything = { origins, customers, isCreate: options.isCreate, latencies };
  let warmedUp = 0;
  if (limit > 0) await minuteStart();
  if (limit === 0) {
    note("Warming up.");
    await sendClosedLoop({ ...everything, end: performance.now() + WARM_UP }, options.connections);
    warmedUp = customers.reduce((sum, { admitted }) => sum + admitted, 0);
    for (const customer of customers) customer.admitted = customer.refused = customer.failed = 0;
    everything.latencies.length = 0;
  }
  const before = await total(servers);
  const seconds = limit > 0 ? 58 : options.seconds;
  const traffic = { ...everything, end: performance.now() + seconds * 1_000 };
  const progress = setInterval(() => note(`${latencies.length} responses`), 5_000);
  const killing = withKill ? killLater(servers, seconds * 500) : undefined;
  await (limit > 0
    ? sendOpenLoop(traffic, limit * options.demand)
    : sendClosedLoop(traffic, options.connections));
  clearInterval(progress);
  await killing;
  await delay(3_000 + 20 * options.network.latency);
  const after = await total(servers);
  const used = await usedToday(servers, customers.map(({ id }) => id)) - warmedUp;
  report({ options, customers, latencies, seconds, used, before, after });
  return limit === 0 || customers.every(({ admitted }) => admitted <= limit);
}

/** Starts a KV Connect server on a file that `cleanup` removes. Resolves to its URL. */
async function startStore(cleanup: AsyncDisposableStack): Promise<string> {
  await Deno.mkdir(DATA, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: DATA, prefix: "simulation-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  const store = await ConnectServer.start({ file: `${folder}/store.sqlite`, lifetime: STORE_LIFETIME });
  return cleanup.use(store).url;
}

/** Puts a simulated network in front of a URL. Resolves to the URL to use instead. */
async function openNetwork(
  cleanup: AsyncDisposableStack,
  url: string,
  network: NetworkOptions,
): Promise<string> {
  const worker = new Worker(new URL("./network_worker.ts", import.meta.url), {
    workerData: { url, network },
  });
  cleanup.defer(async () => void await worker.terminate());
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once("message", resolve);
  worker.once("error", reject);
  return await promise;
}

async function startProcess(cleanup: AsyncDisposableStack, url: string, options: Options): Promise<Server> {
  const isFar = Object.values(options.network).some((value) => value > 0);
  return await startServer(cleanup, CHECKOUT, {
    KV_PATH: isFar ? await openNetwork(cleanup, url, options.network) : url,
    DENO_KV_ACCESS_TOKEN: KV_TOKEN,
    MAX_STALENESS_MS: `${options.staleness}`,
    OPERATOR_TOKEN,
  });
}

/** Creates accounts through one of the processes. */
async function createCustomers(
  servers: readonly Server[],
  count: number,
  limit: number,
): Promise<Customer[]> {
  const limits = { minute: limit, day: UNLIMITED };
  const customers: Customer[] = [];
  while (customers.length < count) {
    const length = Math.min(count - customers.length, BATCH);
    const accounts = Array.from({ length }, () => ({ name: "customer" }));
    const made = await ask(servers, "POST", "/batch", { accounts, plan: "enterprise", limits });
    for (const { account, apiKey } of made) {
      customers.push({ id: account.id, key: apiKey, admitted: 0, refused: 0, failed: 0 });
    }
  }
  return customers;
}

/** Number of permits that the accounts have used today, according to the store. */
async function usedToday(servers: readonly Server[], ids: readonly string[]): Promise<number> {
  let used = 0;
  for (const id of ids) used += (await ask(servers, "GET", `/${id}`)).usage.day.used;
  return used;
}

/** Sends a request of an operator, about accounts, to the last process. Resolves to the JSON answer. */
async function ask(servers: readonly Server[], method: string, path: string, body?: object) {
  const response = await fetch(`${servers.at(-1)?.origin}/operator/v1/accounts${path}`, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Failure(`${method} ${path} returned ${response.status}`);
  return await response.json();
}

/** Sums of the metrics of all processes, by name and labels. */
async function total(servers: readonly Server[]): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const { origin } of servers) {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const text = await fetch(`${origin}/metrics`, { headers }).then((response) => response.text(), () => "");
    for (const [, name = "", value] of text.matchAll(new RegExp(`^(${METRIC}_\\S+) (\\S+)$`, "gm"))) {
      sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
  }
  return sums;
}

async function minuteStart(): Promise<void> {
  note("Waiting for the next clock minute.");
  await delay(60_000 - Date.now() % 60_000 + 100, undefined, { signal: interrupted });
}

async function killLater([first]: readonly Server[], ms: number): Promise<void> {
  await delay(ms, undefined, { signal: interrupted });
  if (first) Deno.kill(first.pid, "SIGKILL");
  note("Killed a process.");
}

interface Result {
  readonly options: Options;
  readonly customers: readonly Customer[];
  readonly latencies: readonly number[];
  readonly seconds: number;
  readonly used: number;
  readonly before: ReadonlyMap<string, number>;
  readonly after: ReadonlyMap<string, number>;
}

function report({ options, customers, latencies, seconds, used, before, after }: Result): void {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => figure(sorted[Math.floor(share * sorted.length)] ?? NaN);
  const sum = (count: "admitted" | "refused" | "failed") =>
    customers.reduce((sum, customer) => sum + customer[count], 0);
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const operations = (of: "count" | "sum", operation: "read" | "write") =>
    grown(`${METRIC}_kv_operation_duration_seconds_${of}{operation="${operation}"}`);
  const mean = (operation: "read" | "write") =>
    figure(operations("sum", operation) / operations("count", operation) * 1_000);
  const commits = operations("count", "write");
  const rows = [
    ["responses per second", figure(latencies.length / seconds)],
    ["p50 in ms", at(0.5)],
    ["p99 in ms", at(0.99)],
    ["refused with 429", `${sum("refused")}`],
    ["failed", `${sum("failed")}`],
    ["mean KV read in ms", mean("read")],
    ["mean KV commit in ms", mean("write")],
    ["commits per 1,000 responses", figure(commits / latencies.length * 1_000)],
    ["of them with a conflict", `${grown(`${METRIC}_kv_conflicts_total`)}`],
    ["permits counted but not used", `${used - sum("admitted")}`],
  ];
  print(table(["", "Simulation"], rows));
  if (options.limit === 0) return;
  const shares = customers.map(({ id, admitted, refused }) => [
    id,
    `${options.limit}`,
    `${admitted}`,
    `${refused}`,
    figure(admitted / options.limit * 100),
  ]);
  print(`\n${table(["account", "limit", "admitted", "refused", "% of limit"], shares)}`);
}
