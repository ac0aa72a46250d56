import { setTimeout as delay } from "node:timers/promises";
import type { Target } from "./contenders.ts";
import { figure, median } from "./report.ts";
import { Failure, interrupted, note } from "./terminal.ts";
import { CREATE, type Workload } from "./workloads.ts";

/** A server and the workload to measure it with. */
export interface Entry {
  readonly name: string;
  readonly target: Target;
  readonly workload: Workload;
}

/** How often and how long to measure. */
export interface Effort {
  readonly rounds: number;
  /** Length of one measurement. */
  readonly seconds: number;
  /** Whether to leave out the slow rivals. */
  readonly isQuick: boolean;
}

/** Results of a load. */
export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  /** Median latency in ms. */
  readonly p50: number;
}

const SCRIPT = `${import.meta.dirname}/traffic.lua`;
const WARM_UP_SECONDS = 1;
/** How late creates may be, in ms: enough for a pause of the machine. */
const MAX_LAG = 250;

/** Returns the median of each entry. The entries take turns, so a disturbance of the machine slows all of them. */
export async function takeTurns(
  entries: readonly Entry[],
  effort: Effort,
  unit: keyof Load,
): Promise<number[]> {
  for (const { target, workload } of entries) {
    await load(target, workload, WARM_UP_SECONDS);
  }
  const series = entries.map((entry) => ({
    ...entry,
    values: new Array<number>(),
  }));
  for (let round = 0; round < effort.rounds; round++) {
    for (const { name, target, workload, values } of series) {
      const { [unit]: value } = await load(target, workload, effort.seconds);
      note(`${name}, ${workload.name}: ${figure(value)}`);
      values.push(value);
    }
  }
  return series.map(({ values }) => median(values));
}

/** Sends the workload's request once. Resolves when the response is complete. */
export async function sendOnce(
  { origin, keys: [key] }: Target,
  { path, body }: Workload,
): Promise<Response> {
  // Uncompressed, like the responses to wrk.
  const headers = {
    "accept-encoding": "identity",
    "content-type": "application/json",
  };
  const response = await fetch(origin + path, {
    method: body ? "POST" : "GET",
    headers: { ...headers, authorization: `Bearer ${key}` },
    body: body || null,
    signal: interrupted,
  });
  return new Response(await response.bytes(), response);
}

/** Sends the request of a workload repeatedly for `seconds`. Creates items at the same time if the workload says so. */
export async function load(
  target: Target,
  workload: Workload,
  seconds: number,
): Promise<Load> {
  const [result] = await Promise.all([
    runWrk(target, workload, seconds),
    createSteadily(target, workload.creates, seconds),
  ]);
  return result;
}

/** Runs wrk with one thread. */
async function runWrk(
  { origin, keys }: Target,
  workload: Workload,
  seconds: number,
): Promise<Load> {
  const { name, caller, path, body, connections, status } = workload;
  const options = [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "--timeout=30s",
    `--script=${SCRIPT}`,
  ];
  const args = [...options, origin, "--", path, body, ...keys];
  const { success, stdout } = await new Deno.Command("wrk", {
    args,
    signal: interrupted,
  }).output().catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Failure("wrk is missing: apt-get install wrk, or brew install wrk");
  });
  const output = new TextDecoder().decode(stdout);
  if (!success) throw new Failure(`wrk failed: ${output}`);
  const lastLine = output.trimEnd().split("\n").at(-1) ?? "";
  const [requests = 0, refused = 0, missing = 0, perSecond = 0, p50 = 0] = lastLine.split(" ").map(Number);
  const unexpected = status >= 400 ? requests - refused : refused;
  // A limit of one request a minute admits one at each start of a minute.
  const tolerated = caller === "limited" ? Math.ceil(seconds / 60) : 0;
  if (!(requests > 0) || missing > 0 || unexpected > tolerated) {
    throw new Failure(
      `${name}: ${requests} responses, ${unexpected} with an unexpected status, ${missing} missing`,
    );
  }
  return { requests, perSecond, p50 };
}

/** Sends creates at a steady rate, without waiting for responses. Throws if requests or responses are late. */
async function createSteadily(
  target: Target,
  perSecond: number,
  seconds: number,
): Promise<void> {
  const started = performance.now();
  const statuses: Promise<number>[] = [];
  while (statuses.length < perSecond * seconds) {
    const due = started + statuses.length * 1_000 / perSecond;
    await delay(Math.max(0, due - performance.now()));
    throwIfLate(due);
    statuses.push(sendOnce(target, CREATE).then(({ status }) => status, () => 0));
  }
  const failed = (await Promise.all(statuses)).filter((status) => status !== CREATE.status);
  if (failed.length > 0) throw new Failure(`${failed.length} of ${statuses.length} creates failed`);
  throwIfLate(started + seconds * 1_000);

  function throwIfLate(due: number): void {
    const lag = performance.now() - due;
    if (lag > MAX_LAG) throw new Failure(`${perSecond} creates a second: ${figure(lag)} ms late`);
  }
}
