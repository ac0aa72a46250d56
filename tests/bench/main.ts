import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";
import { print, printOutput } from "../../src/process/process.ts";
import { startConstant, startLoaded, type Target } from "./contenders.ts";
import { type Effort, figure, table, takeTurns } from "./measure.ts";
import { type Workload, WORKLOADS } from "./workloads.ts";

const HELP = `Measures the service's requests per second beside bare servers and other checkouts. Needs wrk.

  deno task bench [options]

  --against DIR   also measure another checkout of the service; repeatable
  --only WORD     measure only rows whose name contains the word; repeatable:
${WORKLOADS.map(({ name }) => `                  ${name}`).join("\n")}
  --rounds N      rounds in which the servers take turns; the result is the median. Default: 5
  --seconds N     length of one measurement. Default: 3

Prints a table on standard output and progress on standard error. Stores temporary data in data/.`;

const OWN = "This service";
const SECOND = "A/A";

const { values: { help, against, only, ...effort } } = parseArgs({
  options: {
    against: { type: "string", multiple: true, default: [] },
    only: { type: "string", multiple: true, default: [""] },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (help) print(HELP);
else await printOutput(await comparison({ rounds: Number(effort.rounds), seconds: Number(effort.seconds) }));

/** A table of requests per second; in brackets, the service as a multiple of the other. */
async function comparison(effort: Effort): Promise<string> {
  const others = [
    ...against.map((folder) => basename(resolve(folder))),
    "Constant reply",
    "Constant, chunked",
  ];
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
  const own = await startLoaded(cleanup, workload);
  const targets: Record<string, Target> = { [OWN]: own, [SECOND]: await startLoaded(cleanup, workload) };
  for (const folder of against) {
    targets[basename(resolve(folder))] = await startLoaded(cleanup, workload, resolve(folder));
  }
  if (workload.creates === 0) {
    targets["Constant reply"] = await startConstant(cleanup, own, workload);
    targets["Constant, chunked"] = await startConstant(cleanup, own, workload, "chunked");
  }
  return await takeTurns(targets, workload, effort);
}
