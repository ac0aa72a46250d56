import { compare, type Results } from "./comparison.ts";
import { growth } from "./growth.ts";
import { UnexpectedAnswer } from "./load.ts";
import { HELP, type Options, parseOptions, UsageError } from "./options.ts";
import { profile } from "./profile.ts";
import { comparisonReport } from "./report.ts";
import { note, print } from "./terminal.ts";
import { type Work, WORKS } from "./works.ts";
import { isWrkInstalled } from "./wrk.ts";

/** Runs the benchmark; the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort(new DOMException("interrupted", "AbortError"));
  for (const name of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(name, interrupt);
  try {
    const options = parseOptions(args);
    if (options === undefined) return print(HELP), 0;
    if (!await isWrkInstalled()) {
      note("wrk is missing. Get it with: apt-get install wrk (Debian, Ubuntu), brew install wrk (macOS)");
      return 1;
    }
    const { signal } = interruption;
    switch (options.subject) {
      case "comparison":
        return await comparison(options, signal);
      case "growth":
        return await growth(options, signal), 0;
      case "profile":
        return await profile(options, signal), 0;
    }
  } catch (error) {
    if (interruption.signal.aborted) return note("interrupted"), 130;
    if (error instanceof UnexpectedAnswer) return note(`error: ${error.message}`), 1;
    if (error instanceof UsageError) return note(`${error.message} (see --help)`), 2;
    throw error;
  }
}

async function comparison(options: Options, signal: AbortSignal): Promise<number> {
  const results = new Map<Work, Results>();
  for (const name of options.works) {
    results.set(WORKS[name], await compare(WORKS[name], options, signal));
  }
  print(comparisonReport(results, options));
  const failed = [...results.values()].some((results) => [...results.values()].includes(undefined));
  return failed ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
