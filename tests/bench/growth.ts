import { commitsReport } from "./growth/commits.ts";
import { memoryReport } from "./growth/memory.ts";
import { pageLatencyReport } from "./growth/page_latency.ts";
import { startUpReport } from "./growth/start_up.ts";
import type { Options } from "./options.ts";
import { machine } from "./report.ts";
import { print } from "./terminal.ts";

/** Prints what the service costs as requests, animals and time go on. */
export async function growth(options: Options, signal: AbortSignal): Promise<void> {
  const { rounds, seconds, animals, requests } = options;
  print(`${machine()}.\n`);
  print(`${await commitsReport(seconds, signal)}\n`);
  print(`${await pageLatencyReport(animals, { rounds, seconds }, signal)}\n`);
  print(`${await memoryReport(requests, seconds, signal)}\n`);
  print(await startUpReport(rounds, signal));
}
