import { load, originalOf, probe, UnexpectedAnswer } from "./load.ts";
import { median } from "./median.ts";
import { startRival } from "./rivals.ts";
import { startService } from "./service.ts";
import { Session } from "./session.ts";
import type { Target } from "./target.ts";
import { note } from "./terminal.ts";
import type { Work } from "./works.ts";
import type { Measurement } from "./wrk.ts";

/** How often and how long everything is measured. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
}

/** Medians over the rounds. */
export interface Result {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p99: number;
}

/** The results of one work by column heading; undefined where an answer was not as expected. */
export type Results = ReadonlyMap<string, Result | undefined>;

interface Contender {
  readonly target: Target;
  readonly measurements: Measurement[];
  failed: boolean;
}

const WARM_UP_SECONDS = 1;

/** Measures the service and its rivals with one work, in turn, round after round. */
export async function compare(work: Work, effort: Effort, signal: AbortSignal): Promise<Results> {
  await using session = new Session(signal);
  const contenders = (await startTargets(work, session)).map((target): Contender => ({
    target,
    measurements: [],
    failed: false,
  }));
  for (let round = 0; round <= effort.rounds; round++) {
    for (const contender of contenders.filter(({ failed }) => !failed)) {
      await takeTurn(contender, work, round === 0 ? WARM_UP_SECONDS : effort.seconds, signal);
      if (round === 0) contender.measurements.length = 0;
    }
  }
  return new Map(contenders.map((contender) => [contender.target.name, summarize(contender)]));
}

async function startTargets(work: Work, session: Session): Promise<Target[]> {
  const service = await startService(session);
  await probe(service, work);
  const original = originalOf(service, work);
  const targets = [service];
  for (const rival of work.rivals) targets.push(await startRival(session, rival, { original }));
  return targets;
}

async function takeTurn(
  contender: Contender,
  work: Work,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  const { target, measurements } = contender;
  try {
    const measurement = await load(target, work, { seconds, signal });
    measurements.push(measurement);
    note(`${work.name}: ${target.name} ${measurement.perSecond.toFixed(0)}/s`);
  } catch (error) {
    if (!(error instanceof UnexpectedAnswer)) throw error;
    contender.failed = true;
    note(`error: ${error.message}`);
  }
}

function summarize({ measurements, failed }: Contender): Result | undefined {
  if (failed) return undefined;
  return {
    perSecond: median(measurements.map(({ perSecond }) => perSecond)),
    p99: median(measurements.map(({ p99 }) => p99)),
  };
}
