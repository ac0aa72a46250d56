import { parseArgs } from "node:util";
import { comparison } from "./comparison.ts";
import { checkout, SERVICE } from "./contenders.ts";
import { growth } from "./growth.ts";
import { Failure, interrupted, note, print } from "./terminal.ts";
import { WORKLOADS } from "./workloads.ts";

const HELP = `Compares the service with other servers, and measures it as its data grows. Needs wrk.

  deno task bench [options]           requests per second
  deno task bench growth [options]    commits, latency, memory and start-up

  --against DIR   also measure another checkout of the service; repeatable
  --only WORD     measure only rows whose name contains the word; repeatable:
${WORKLOADS.map(({ name }) => `                  ${name}`).join("\n")}
  --rounds N      rounds in which the servers take turns; the result is the median. Default: 5
  --seconds N     length of one measurement. Default: 3
  --quick         one round of 1 second, without Naive Deno KV and Fastify: two minutes in all

Prints the tables on standard output and progress on standard error. Stores temporary data in data/.
Exit codes: 0 success, 1 failure, 2 invalid arguments.`;

let exitCode = 2;
try {
  const { help, growing, workloads, others, effort } = parse(Deno.args);
  exitCode = 1;
  if (help) print(HELP);
  else if (growing) print(await growth([SERVICE, ...others], effort));
  else print(await comparison(workloads, others, effort));
  exitCode = 0;
} catch (error) {
  if (!(error instanceof Error)) throw error;
  if (interrupted.aborted) note("Interrupted");
  else if (exitCode === 2) note(`${error.message} (see --help)`);
  else if (error instanceof Failure || error instanceof Deno.errors.NotFound) {
    note(error.message);
  } else throw error;
}
Deno.exit(exitCode);

/** Parses the command line; throws if it is invalid. */
function parse(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      against: { type: "string", multiple: true, default: [] },
      only: { type: "string", multiple: true, default: [""] },
      rounds: { type: "string" },
      seconds: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { help, against, only, quick } = values;
  const growing = positionals.join(" ") === "growth";
  if (positionals.length > 0 && !growing) {
    throw new Error(`Unknown command: ${positionals.join(" ")}`);
  }
  const workloads = WORKLOADS.filter(({ name }) => only.some((word) => name.includes(word)));
  if (workloads.length === 0) {
    throw new Error(`No row's name contains ${only.join(" or ")}`);
  }
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const seconds = Number(values.seconds ?? (quick ? 1 : 3));
  if (![rounds, seconds].every((count) => Number.isInteger(count) && count > 0)) {
    throw new Error("--rounds and --seconds must be integers of at least 1");
  }
  for (const dir of against) Deno.statSync(`${dir}/main.ts`);
  return {
    help,
    growing,
    workloads,
    others: against.map((dir) => checkout(dir)),
    effort: { rounds, seconds, isQuick: quick },
  };
}
