import { ask } from "./answering.ts";
import type { Effort } from "./comparison.ts";
import { load, originalOf, probe } from "./load.ts";
import { median } from "./median.ts";
import { PARTS } from "./profile/parts.ts";
import type { Sample } from "./profile/sampler.ts";
import { figure, machine, table } from "./report.ts";
import { startRival } from "./rivals.ts";
import { startService } from "./service.ts";
import { Session } from "./session.ts";
import type { Target } from "./target.ts";
import { note, print } from "./terminal.ts";
import { type Work, WORKS } from "./works.ts";

/** CPU time of the main thread per request in microseconds, by part. */
type Costs = Readonly<Record<string, number>>;

interface Profiled {
  readonly heading: string;
  readonly target: Target;
  readonly work: Work;
  /** One for each round. */
  readonly costs: Costs[];
}

const PRELOAD = `${import.meta.dirname}/profile/sampler.ts`;
const KERNEL = "kernel";
const NATIVE = "Deno's HTTP server and event loop";
const ROWS = [KERNEL, NATIVE, ...Object.values(PARTS)];
const LIST = WORKS.list;
const OTHERS = [WORKS["list-100-keys"], WORKS.refused, WORKS.create];

/** Prints where the main thread's time goes, the whole of a constant reply being 100. */
export async function profile({ rounds, seconds }: Effort, signal: AbortSignal): Promise<void> {
  await using session = new Session(signal);
  const profiled = await startProfiled(session);
  for (let round = 0; round <= rounds; round++) {
    for (const { target, work, costs } of profiled) {
      const cost = await measure(target, work, seconds, signal);
      note(`${work.name}: ${target.name} ${figure(total(cost))} µs a request`);
      if (round > 0) costs.push(cost);
    }
  }
  print(report(profiled, rounds));
}

async function startProfiled(session: Session): Promise<Profiled[]> {
  const service = await startService(session, { preload: PRELOAD });
  await probe(service, LIST);
  const original = originalOf(service, LIST);
  const ceiling = await startRival(session, "ceiling", { original, preload: PRELOAD });
  const profiled: Profiled[] = [
    { heading: ceiling.name, target: ceiling, work: LIST, costs: [] },
    { heading: LIST.name, target: service, work: LIST, costs: [] },
  ];
  for (const work of OTHERS) {
    const target = await startService(session, { preload: PRELOAD });
    profiled.push({ heading: work.name, target, work, costs: [] });
  }
  return profiled;
}

async function measure(target: Target, work: Work, seconds: number, signal: AbortSignal): Promise<Costs> {
  const before = await ask(target, signal) as Sample;
  const { requests } = await load(target, work, { seconds, signal });
  const after = await ask(target, signal) as Sample;
  const user = after.user - before.user;
  const cpu: Costs = {
    ...after.parts,
    [KERNEL]: after.system - before.system,
    [NATIVE]: user - total(after.parts),
  };
  return Object.fromEntries(Object.entries(cpu).map(([part, time]) => [part, time / requests]));
}

function report(columns: readonly Profiled[], rounds: number): string {
  const whole = median(columns[0]?.costs.map(total) ?? []);
  const percent = (of: (costs: Costs) => number): string[] =>
    columns.map(({ costs }) => (median(costs.map(of)) / whole * 100).toFixed(0));
  return [
    `CPU time of the main thread per request, median of ${rounds} rounds (${machine()}).`,
    "The whole of a constant reply is 100.",
    "",
    table(["", ...columns.map(({ heading }) => heading)], [
      ...ROWS.map((part) => [part, ...percent((costs) => costs[part] ?? 0)]),
      ["all", ...percent(total)],
    ]),
  ].join("\n");
}

function total(costs: Costs): number {
  return Object.values(costs).reduce((sum, cost) => sum + cost, 0);
}
