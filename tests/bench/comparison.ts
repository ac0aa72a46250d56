import {
  CONSTANT_REPLIES,
  type Contender,
  RIVALS,
  SECOND,
  SERVICE,
  start,
  type Target,
} from "./contenders.ts";
import { type Effort, type Entry, sendOnce, takeTurns } from "./measure.ts";
import { figure, ratio, table } from "./report.ts";
import { Failure } from "./terminal.ts";
import type { Workload } from "./workloads.ts";

const TRANSPORT_HEADERS = [
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
];

/** A table of requests per second, with ratios. */
export async function comparison(
  workloads: readonly Workload[],
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string> {
  const rivals = [...CONSTANT_REPLIES, ...effort.isQuick ? [] : RIVALS];
  const rows: string[][] = [];
  for (const workload of workloads) {
    const cells = workload.creates > 0
      ? await compareWithIdle(workload, checkouts, effort)
      : await compareWithOthers(workload, [...checkouts, ...rivals], effort);
    rows.push([workload.name, ...cells]);
  }
  const names = [...checkouts, ...rivals].map(({ name }) => name);
  return table([title(effort), SERVICE.name, "A/A", ...names], rows);
}

/** Rates of the service and of others; in brackets, the service as a multiple of the other. */
async function compareWithOthers(
  workload: Workload,
  others: readonly Contender[],
  effort: Effort,
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const service = await start(SERVICE, cleanup, workload.caller);
  const entries: Entry[] = [{ name: SERVICE.name, target: service, workload }];
  const env = { REPLY: await replyOf(service, workload) };
  for (const contender of [SECOND, ...others]) {
    const target = CONSTANT_REPLIES.includes(contender)
      ? await start({ ...contender, env }, cleanup, workload.caller, 0)
      : await start(contender, cleanup, workload.caller);
    entries.push({ name: contender.name, target, workload });
  }
  const [own = NaN, second = NaN, ...rates] = await takeTurns(entries, effort, "perSecond");
  return [
    figure(own),
    ratio(second, own),
    ...rates.map((rate) => `${figure(rate)} (${ratio(own, rate)})`),
  ];
}

/** Rates of checkouts while another client creates; in brackets, as a multiple of the same server's rate without it. */
async function compareWithIdle(
  workload: Workload,
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const entries: Entry[] = [];
  for (const contender of [SERVICE, SECOND, ...checkouts]) {
    const { name } = contender;
    const target = await start(contender, cleanup, workload.caller);
    entries.push({ name, target, workload });
    entries.push({ name: `${name}, no creates`, target, workload: { ...workload, creates: 0 } });
  }
  const rates = await takeTurns(entries, effort, "perSecond");
  const busy = rates.filter((_, index) => index % 2 === 0);
  const idle = rates.filter((_, index) => index % 2 === 1);
  const [own = NaN, second = NaN] = busy;
  const cells = busy.map((rate, index) => `${figure(rate)} (${ratio(rate, idle[index] ?? NaN)})`);
  return cells.with(1, ratio(second, own));
}

/** The service's response to the workload, as JSON for the constant replies. */
async function replyOf(service: Target, workload: Workload): Promise<string> {
  // The first request in a minute is still within the limit.
  if (workload.caller === "limited") await sendOnce(service, workload);
  const response = await sendOnce(service, workload);
  if (response.status !== workload.status) {
    throw new Failure(`${workload.name}: the service returned ${response.status}`);
  }
  const headers = [...response.headers].filter(([name]) => !TRANSPORT_HEADERS.includes(name));
  return JSON.stringify({
    status: workload.status,
    headers,
    body: await response.text(),
  });
}

function title({ rounds, seconds, isQuick }: Effort): string {
  return `${isQuick ? "quick, " : ""}${rounds} × ${seconds} s`;
}
