import type { Target } from "./contenders.ts";
import { figure, median } from "./report.ts";
import { Failure, interrupted, note } from "./terminal.ts";
import type { Work } from "./works.ts";

/** Something to measure again and again. */
export interface Entry {
  readonly name: string;
  readonly target: Target;
  readonly work: Work;
}

/** How often and how long to measure. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
}

/** A name and the figure that goes with it. */
export type Row = readonly [name: string, value: number];

/** What wrk saw of a server under load. */
export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  /** Median latency in milliseconds. */
  readonly p50: number;
}

const SCRIPT = `${import.meta.dirname}/traffic.lua`;
const WARM_UP_SECONDS = 1;

/** The median of each entry. They take turns, so that what slows the machine slows all of them. */
export async function takeTurns(
  entries: readonly Entry[],
  effort: Effort,
  unit: keyof Load,
): Promise<Row[]> {
  for (const { target, work } of entries) {
    await load(target, work, WARM_UP_SECONDS);
  }
  const series = entries.map((entry) => ({
    ...entry,
    values: new Array<number>(),
  }));
  for (let round = 0; round < effort.rounds; round++) {
    for (const { name, target, work, values } of series) {
      const { [unit]: value } = await load(target, work, effort.seconds);
      note(`${name}, ${work.name}: ${figure(value)}`);
      values.push(value);
    }
  }
  return series.map(({ name, values }) => [name, median(values)]);
}

/** Sends the work's request once; the response is complete. */
export async function ask(
  { origin, keys: [key] }: Target,
  { path, body }: Work,
): Promise<Response> {
  // Uncompressed, as wrk asks for it.
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

/** Sends the work's request over and over for some seconds, from one thread of wrk. */
export async function load(
  { origin, keys }: Target,
  work: Work,
  seconds: number,
): Promise<Load> {
  const { name, caller, path, body, connections, status } = work;
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
  // A limit of one request a minute lets one through whenever a minute begins.
  const tolerated = caller === "limited" ? Math.ceil(seconds / 60) : 0;
  if (!(requests > 0) || missing > 0 || unexpected > tolerated) {
    throw new Failure(
      `${name}: ${unexpected} of ${requests} answers unexpected, ${missing} never came`,
    );
  }
  return { requests, perSecond, p50 };
}
