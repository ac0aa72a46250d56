// The servers that are measured: the service of some checkouts, and servers that always send the same response.
import config from "../../deno.json" with { type: "json" };
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { ConnectServer, DenoProcess, ServerProcess } from "../process/process.ts";
import { KEYS } from "../process/shipped.ts";
import { TcpProxy } from "../process/tcp_proxy.ts";
import { create, etagFor, sendOnce } from "./measure.ts";
import { CREATE, type Workload } from "./workloads.ts";

/** A running server, and the keys to send in turn. */
export interface Target {
  readonly origin: string;
  readonly keys: readonly string[];
}

/** Where the KV is, and how old a check of it may be, both in ms. A KV without a latency is a file. */
export interface Distance {
  readonly latency?: number | undefined;
  readonly staleness: number;
}

/** How a bare server responds: with a transfer coding, and with a handler that Deno can call in native code. */
export interface ConstantOptions {
  readonly coding?: string;
  readonly handler?: string;
}

/** The token of operators of every service here. */
export const OPERATOR_TOKEN = "measured-operator-0123456789abcdef";
/** Longer than any measurement, in ms. */
const LIFETIME = 86_400_000;
const ROOT = `${import.meta.dirname}/../..`;
/** All servers run with the flags of `deno task start`. */
export const V8_FLAGS = config.tasks.start.command.split(" ").filter((word) =>
  word.startsWith("--v8-flags=")
);
/** Numbers of items and accounts that are added at the same time. */
const AT_ONCE = 256;
const ACCOUNTS_AT_ONCE = 8;

/** Starts the service of a checkout, with the items and the accounts of a workload. `cleanup` ends it. */
export async function startLoaded(
  cleanup: AsyncDisposableStack,
  { accounts, perMinute, items, method }: Workload,
  { latency, staleness }: Distance,
  cwd: string = ROOT,
): Promise<Target> {
  const file = `${await makeDataFolder(cleanup)}/store.kv`;
  const KV_PATH = latency === undefined ? file : await serveFrom(file, latency, cleanup);
  const variables = { OPERATOR_TOKEN, KV_PATH, MAX_STALENESS_MS: `${staleness}` };
  const options = { cwd, runtime: V8_FLAGS, lifetime: LIFETIME };
  const server = cleanup.use(await ServerProcess.start(variables, options));
  const { origin } = server;
  const [key = ""] = await createAccounts(server, 1, CREATE.perMinute);
  let added = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (added++ < items) await create({ origin, keys: [key] });
  }));
  if (method === "PATCH") return { origin, keys: [key] }; // Only the account that has added an item can change it.
  if (accounts === 0) return { origin, keys: [KEYS.create("staging")] };
  return { origin, keys: await createAccounts(server, accounts, perMinute) };
}

/** Creates a folder for temporary data. The system's own may be in memory, where commits do not wait for a disk. */
export async function makeDataFolder(cleanup: AsyncDisposableStack): Promise<string> {
  const dir = `${ROOT}/data`;
  await Deno.mkdir(dir, { recursive: true });
  const folder = await Deno.makeTempDir({ dir, prefix: "bench-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  return folder;
}

/** Starts a KV Connect server on a file, with a round trip of `latency` ms. Resolves to its URL. */
async function serveFrom(file: string, latency: number, cleanup: AsyncDisposableStack): Promise<string> {
  const server = cleanup.use(await ConnectServer.start({ file, lifetime: LIFETIME }));
  return cleanup.use(new TcpProxy(server.url, latency)).url;
}

/** Creates accounts with this limit per minute. Resolves to their keys. */
async function createAccounts(server: ServerProcess, count: number, minute: number): Promise<string[]> {
  const keys: string[] = [];
  const json = { name: "customer", plan: CATALOGUE.plans.own, limits: { minute, day: 1_000_000_000 } };
  let begun = 0;
  await Promise.all(Array.from({ length: ACCOUNTS_AT_ONCE }, async () => {
    while (begun++ < count) {
      // Not as a batch, whose form has changed: any checkout can be measured.
      const response = await server.fetch("POST /operator/v1/accounts", { key: OPERATOR_TOKEN, json });
      if (!response.ok) throw new Error(`The creation of an account returned ${response.status}`);
      keys.push((await response.json()).apiKey);
    }
  }));
  return keys;
}

/** Starts a bare server that always sends the response that a target sends to a workload. */
export async function startConstant(
  cleanup: AsyncDisposableStack,
  target: Target,
  workload: Workload,
  { coding = "", handler = "" }: ConstantOptions,
): Promise<Target> {
  // The first request in a minute is within any limit.
  const etag = await etagFor(target, workload);
  await sendOnce(target, workload, etag);
  const response = await sendOnce(target, workload, etag);
  const framing = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];
  const headers = [...response.headers].filter(([name]) => !framing.includes(name));
  const text = await response.text();
  const REPLY = JSON.stringify({ status: response.status, headers, body: text || null });
  const args = [...V8_FLAGS, "-P", "tests/bench/constant_reply.ts", coding, handler];
  const options = { lifetime: LIFETIME, program: [Deno.execPath(), "run", "--config", "tests/deno.json"] };
  const server = cleanup.use(new DenoProcess(args, { REPLY }, options));
  return { ...target, origin: await server.wrote("stderr", /(?<=^Listening on )http:[^/]*\/\/[^/]+(?=\/)/m) };
}
