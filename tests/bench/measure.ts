import { print } from "../../src/process/process.ts";
import type { Target } from "./contenders.ts";
import { CREATE, type Workload } from "./workloads.ts";

/** How often to measure, and how long each time, in seconds. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
}

const SCRIPT = `${import.meta.dirname}/traffic.lua`;
/** How late creates may be, in ms: enough for a pause of the machine. */
const MAX_LAG = 250;

/**
 * The median number of responses per second of each target. They take turns, so a disturbance of the machine slows all
 * of them.
 */
export async function takeTurns(
  targets: Readonly<Record<string, Target>>,
  workload: Workload,
  { rounds, seconds }: Effort,
): Promise<Map<string, number>> {
  const rates = new Map<string, number[]>();
  for (let round = 0; round <= rounds; round++) {
    for (const [name, target] of Object.entries(targets)) {
      const [rate] = await Promise.all([
        runWrk(target, workload, round === 0 ? 1 : seconds),
        createSteadily(target, workload.creates, round === 0 ? 1 : seconds),
      ]);
      if (round === 0) continue; // To warm up.
      print(`${name}, ${workload.name}: ${figure(rate)}`);
      rates.set(name, [...rates.get(name) ?? [], rate]);
    }
  }
  return new Map([...rates].map(([name, values]) => [name, median(values)]));
}

/** Sends the workload's request once. Resolves when the response is complete. */
export async function sendOnce(
  { origin, keys: [key] }: Target,
  { method, path, body }: Workload,
  etag = "",
): Promise<Response> {
  // Uncompressed, like the responses to wrk.
  const headers = { "accept-encoding": "identity", "content-type": "application/json" };
  const response = await fetch(origin + path, {
    method,
    headers: { ...headers, authorization: `Bearer ${key}`, ...(etag && { "if-none-match": etag }) },
    body: body.split("\n")[0] || null,
  });
  const bytes = await response.bytes();
  return new Response(bytes.length > 0 ? bytes : null, response);
}

/** The ETag that the requests of a workload have; empty for none. */
export async function etagFor(target: Target, workload: Workload): Promise<string> {
  if (!workload.isConditional) return "";
  const etag = (await sendOnce(target, workload)).headers.get("etag") ?? "";
  const { status } = await sendOnce(target, workload, etag);
  if (status !== workload.status) throw new Error(`A response to ${etag} has the status ${status}`);
  return etag;
}

/** Adds an item. */
export async function create(target: Target): Promise<void> {
  const { status } = await sendOnce(target, CREATE);
  if (status !== CREATE.status) throw new Error(`A create returned ${status}`);
}

/** Runs wrk with one thread. Resolves to the responses per second. */
async function runWrk(target: Target, workload: Workload, seconds: number): Promise<number> {
  const { origin, keys } = target;
  const { name, perMinute, method, path, body, connections, status } = workload;
  const etag = await etagFor(target, workload);
  const options = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout=30s", `--script=${SCRIPT}`];
  const args = [...options, origin, "--", method, path, etag, body, ...keys];
  const { success, stdout } = await new Deno.Command("wrk", { args }).output();
  const output = new TextDecoder().decode(stdout).trimEnd();
  if (!success) throw new Error(`wrk failed: ${output}`);
  const [requests = 0, refused = 0, missing = 0, rate = 0] = (output.split("\n").at(-1) ?? "").split(" ")
    .map(Number);
  const unexpected = status >= 400 ? requests - refused : refused;
  // A limit of one request a minute admits one at each start of a minute.
  const tolerated = perMinute === 1 ? Math.ceil(seconds / 60) : 0;
  if (!(requests > 0) || missing > 0 || unexpected > tolerated) {
    throw new Error(
      `${name}: ${requests} responses, ${unexpected} with an unexpected status, ${missing} missing`,
    );
  }
  return rate;
}

/** Sends creates at a steady rate, without waiting for responses. Throws if requests or responses are late. */
async function createSteadily(target: Target, perSecond: number, seconds: number): Promise<void> {
  const started = performance.now();
  const sent: Promise<unknown>[] = [];
  while (sent.length < perSecond * seconds) {
    const due = started + sent.length * 1_000 / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    throwIfLate(due);
    sent.push(create(target));
  }
  await Promise.all(sent);
  throwIfLate(started + seconds * 1_000);

  function throwIfLate(due: number): void {
    const lag = performance.now() - due;
    if (perSecond > 0 && lag > MAX_LAG) {
      throw new Error(`${perSecond} creates a second: ${figure(lag)} ms late`);
    }
  }
}

/** A table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => column === 0 ? "---" : "--:");
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Formats a number with three significant digits, or with all of its integer part. */
export function figure(value: number): string {
  const digits = value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en-US", digits);
}

/** The median: for an even count, the higher of the two middle numbers. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;
}
