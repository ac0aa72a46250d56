import { median } from "../median.ts";
import { figure, ratio, table } from "../report.ts";
import { type Rival, startRival } from "../rivals.ts";
import { startService } from "../service.ts";
import { Session } from "../session.ts";
import { note } from "../terminal.ts";

const RIVALS_WITH_A_STORE: readonly Rival[] = ["hono", "fastify", "express"];

/** How long the servers take from the start of their process to their first answer. */
export async function startUpReport(rounds: number, signal: AbortSignal): Promise<string> {
  const times = new Map<string, number[]>();
  for (let round = 0; round <= rounds; round++) {
    await using session = new Session(signal);
    const targets = [await startService(session)];
    for (const rival of RIVALS_WITH_A_STORE) targets.push(await startRival(session, rival));
    if (round === 0) continue;
    for (const { name, server: { startUpMs } } of targets) {
      times.set(name, [...times.get(name) ?? [], startUpMs]);
      note(`start-up: ${name} ${startUpMs.toFixed(0)} ms`);
    }
  }
  const medians = [...times].map(([name, times]) => ({ name, time: median(times) }));
  const service = medians[0]?.time ?? NaN;
  const rows = medians.map(({ name, time }) => [name, figure(time), ratio(service, time)]);
  return [
    `From start to first answer in ms, median of ${rounds} starts.`,
    "",
    table(["", "start-up", "service as a multiple"], rows),
  ].join("\n");
}
