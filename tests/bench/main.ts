import { parseArgs } from "node:util";
import { comparison } from "./comparison.ts";
import { checkout, SERVICE } from "./contenders.ts";
import { growth } from "./growth.ts";
import { Failure, interrupted, note, print } from "./terminal.ts";
import { WORKS } from "./works.ts";

const HELP = `Compares the service with other servers, and measures it as its data grows. Needs wrk.

  deno task bench [options]           requests per second
  deno task bench growth [options]    commits, latency, memory and start-up

  --against DIR   also measure another checkout of the service; repeatable
  --only WORD     measure only rows whose name contains the word; repeatable:
                  ${WORKS.map(({ name }) => name).join("; ")}
  --rounds N      rounds in which the servers take turns; the result is the median. Default: 5
  --seconds N     length of one measurement. Default: 3

Prints the table on standard output and progress on standard error. Stores temporary data in data/.
Exit codes: 0 success, 1 failure, 2 invalid arguments.`;

let exitCode = 2;
try {
  const { help, growing, works, others, effort } = parse(Deno.args);
  exitCode = 1;
  if (help) print(HELP);
  else if (growing) print(await growth([SERVICE, ...others], effort));
  else print(await comparison(works, others, effort));
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

/** What the command line asks for; throws when it is not understood. */
function parse(args: string[]) {
  const { values: { help, against, only, ...counts }, positionals } = parseArgs(
    {
      args,
      allowPositionals: true,
      options: {
        against: { type: "string", multiple: true, default: [] },
        only: { type: "string", multiple: true, default: [""] },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "3" },
        help: { type: "boolean", short: "h", default: false },
      },
    },
  );
  const growing = positionals.join(" ") === "growth";
  if (positionals.length > 0 && !growing) {
    throw new Error(`There is no ${positionals.join(" ")}`);
  }
  const works = WORKS.filter(({ name }) => only.some((word) => name.includes(word)));
  if (works.length === 0) {
    throw new Error(`No work has ${only.join(" or ")} in its name`);
  }
  const [rounds = NaN, seconds = NaN] = [counts.rounds, counts.seconds].map(
    Number,
  );
  if (
    ![rounds, seconds].every((count) => Number.isInteger(count) && count > 0)
  ) {
    throw new Error("--rounds and --seconds take a whole number from 1");
  }
  for (const dir of against) Deno.statSync(`${dir}/main.ts`);
  return {
    help,
    growing,
    works,
    others: against.map((dir) => checkout(dir)),
    effort: { rounds, seconds },
  };
}
