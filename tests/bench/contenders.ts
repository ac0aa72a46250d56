// The servers that are measured: the service of some checkouts, and servers that always send the same response.
import config from "../../deno.json" with { type: "json" };
import { DenoProcess, ServerProcess, type Variables } from "../process/process.ts";
import { KEYS } from "../process/shipped.ts";
import { create, sendOnce } from "./measure.ts";
import { CREATE, type Workload } from "./workloads.ts";

/** A running server, and the keys to send in turn. */
export interface Target {
  readonly origin: string;
  readonly keys: readonly string[];
}

/** An account and its key. */
export interface Customer {
  readonly id: string;
  readonly key: string;
}

/** The token of operators of every service here. */
export const OPERATOR_TOKEN = "measured-operator-0123456789abcdef";
/** Longer than any measurement, in ms. */
export const LIFETIME = 86_400_000;
const ROOT = `${import.meta.dirname}/../..`;
/** All servers run with the flags of `deno task start`. */
const V8_FLAGS = config.tasks.start.command.split(" ").filter((word) => word.startsWith("--v8-flags="));
/** Number of accounts that one request creates. */
const BATCH = 50;
/** Number of items that are added at the same time. */
const AT_ONCE = 256;

/** Creates a folder for temporary data. The system's own may be in memory, where commits do not wait for a disk. */
export async function makeDataFolder(cleanup: AsyncDisposableStack): Promise<string> {
  const dir = `${ROOT}/data`;
  await Deno.mkdir(dir, { recursive: true });
  const folder = await Deno.makeTempDir({ dir, prefix: "bench-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  return folder;
}

/** Starts the service of a checkout. `cleanup` ends it. */
export async function startService(
  cleanup: AsyncDisposableStack,
  variables: Variables,
  cwd: string = ROOT,
): Promise<ServerProcess> {
  const options = { cwd, runtime: V8_FLAGS, lifetime: LIFETIME };
  return cleanup.use(await ServerProcess.start({ OPERATOR_TOKEN, ...variables }, options));
}

/** Starts the service of a checkout, with the items and the accounts of a workload. */
export async function startLoaded(
  cleanup: AsyncDisposableStack,
  { accounts, perMinute, items }: Workload,
  cwd?: string,
): Promise<Target> {
  const server = await startService(cleanup, { KV_PATH: `${await makeDataFolder(cleanup)}/store.kv` }, cwd);
  const [{ key } = { key: "" }] = await createCustomers(server, 1, CREATE.perMinute);
  let added = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (added++ < items) await create({ origin: server.origin, keys: [key] });
  }));
  const customers = await createCustomers(server, accounts, perMinute);
  const keys = accounts === 0 ? [KEYS.create("staging")] : customers.map(({ key }) => key);
  return { origin: server.origin, keys };
}

/** Creates accounts with this limit per minute. */
export async function createCustomers(
  server: ServerProcess,
  count: number,
  minute: number,
): Promise<Customer[]> {
  const customers: Customer[] = [];
  while (customers.length < count) {
    const length = Math.min(count - customers.length, BATCH);
    const accounts = Array.from({ length }, () => ({ name: "customer" }));
    const json = { accounts, plan: "enterprise", limits: { minute, day: 1_000_000_000 } };
    const response = await server.fetch("POST /operator/v1/accounts/batch", { key: OPERATOR_TOKEN, json });
    if (!response.ok) throw new Error(`The creation of accounts returned ${response.status}`);
    for (const { account, apiKey } of await response.json()) customers.push({ id: account.id, key: apiKey });
  }
  return customers;
}

/** Starts a bare server that always sends the response that a target sends to a workload, perhaps in chunks. */
export async function startConstant(
  cleanup: AsyncDisposableStack,
  target: Target,
  workload: Workload,
  ...coding: string[]
): Promise<Target> {
  // The first request in a minute is within any limit.
  await sendOnce(target, workload);
  const response = await sendOnce(target, workload);
  const framing = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];
  const headers = [...response.headers].filter(([name]) => !framing.includes(name));
  const REPLY = JSON.stringify({ status: response.status, headers, body: await response.text() });
  const args = [...V8_FLAGS, "-P", "tests/bench/constant_reply.ts", ...coding];
  const options = { lifetime: LIFETIME, program: [Deno.execPath(), "run", "--config", "tests/deno.json"] };
  const server = cleanup.use(new DenoProcess(args, { REPLY }, options));
  return { ...target, origin: await server.wrote("stderr", /(?<=^Listening on )http:[^/]*\/\/[^/]+(?=\/)/m) };
}
