import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";
import { print, printOutput } from "../../src/process/process.ts";
import {
  type ConstantOptions,
  type Distance,
  startConstant,
  startLoaded,
  type Target,
} from "./contenders.ts";
import { compareInProcess } from "./in_process/compare.ts";
import { type Effort, figure, table, takeTurns } from "./measure.ts";
import { type Workload, WORKLOADS } from "./workloads.ts";

const HELP = `Measures the service's requests per second beside bare servers and other checkouts. Needs wrk.

  deno task bench [options]

  --against DIR   also measure another checkout of the service; repeatable
  --only WORD     measure only rows whose name contains the word; repeatable:
${WORKLOADS.map(({ name }) => `                  ${name}`).join("\n")}
  --latency MS    use a KV Connect server at this round trip: the binary that DENOKV names, or the engine of @deno/kv
  --staleness MS  MAX_STALENESS_MS. Default: 0
  --rounds N      rounds in which the servers take turns; the result is the median. Default: 5; in process, 100
  --seconds N     length of one measurement. Default: 3
  --in-process    without wrk and a network: time, CPU, allocation and calls of requests within the process

Prints a table on standard output and progress on standard error. Stores temporary data in data/.`;

const OWN = "This service";
const SECOND = "A/A";
/** Bare servers, by name. */
const CONSTANTS: Readonly<Record<string, ConstantOptions>> = {
  "Constant reply": {},
  "Constant, chunked": { coding: "chunked" },
  "Constant, native": { handler: "native" },
};

const { values: { help, against, only, latency, staleness, rounds, "in-process": inProcess, ...effort } } =
  parseArgs({
    options: {
      against: { type: "string", multiple: true, default: [] },
      only: { type: "string", multiple: true, default: [""] },
      latency: { type: "string" },
      staleness: { type: "string", default: "0" },
      rounds: { type: "string" },
      "in-process": { type: "boolean", default: false },
      seconds: { type: "string", default: "3" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
const distance: Distance = {
  latency: latency === undefined ? undefined : Number(latency),
  staleness: Number(staleness),
};
if (help) print(HELP);
else if (inProcess) {
  await printOutput(await compareInProcess({ against, only, rounds: Number(rounds ?? 100) }));
} else await printOutput(await comparison({ rounds: Number(rounds ?? 5), seconds: Number(effort.seconds) }));

/** A table of requests per second; in brackets, the service as a multiple of the other. */
async function comparison(effort: Effort): Promise<string> {
  const constant = distance.latency === undefined ? Object.keys(CONSTANTS) : [];
  const others = [...against.map((folder) => basename(resolve(folder))), ...constant];
  const rows: string[][] = [];
  for (const workload of WORKLOADS.filter(({ name }) => only.some((word) => name.includes(word)))) {
    const rates = await ratesOf(workload, effort);
    const own = rates.get(OWN) ?? NaN;
    const cells = others.map((name) => {
      const rate = rates.get(name);
      return rate === undefined ? "" : `${figure(rate)} (${(own / rate).toFixed(2)}×)`;
    });
    rows.push([workload.name, figure(own), `${((rates.get(SECOND) ?? NaN) / own).toFixed(2)}×`, ...cells]);
  }
  return table([`${effort.rounds} × ${effort.seconds} s`, OWN, SECOND, ...others], rows);
}

/** The rates of all servers, which start afresh. */
async function ratesOf(workload: Workload, effort: Effort): Promise<ReadonlyMap<string, number>> {
  await using cleanup = new AsyncDisposableStack();
  const own = await startLoaded(cleanup, workload, distance);
  const targets: Record<string, Target> = {
    [OWN]: own,
    [SECOND]: await startLoaded(cleanup, workload, distance),
  };
  for (const folder of against) {
    targets[basename(resolve(folder))] = await startLoaded(cleanup, workload, distance, resolve(folder));
  }
  if (workload.creates === 0 && distance.latency === undefined) {
    for (const [name, options] of Object.entries(CONSTANTS)) {
      targets[name] = await startConstant(cleanup, own, workload, options);
    }
  }
  return await takeTurns(targets, workload, effort);
}
