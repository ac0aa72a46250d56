import {
  CONSTANT_REPLIES,
  type Contender,
  RIVALS,
  SECOND,
  SERVICE,
  start,
  type Target,
  WORKERS,
} from "./contenders.ts";
import { type Effort, type Entry, sendOnce, takeTurns } from "./measure.ts";
import { figure, ratio, table } from "./report.ts";
import { Failure } from "./terminal.ts";
import type { Work } from "./works.ts";

const TRANSPORT_HEADERS = [
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
];

/** A table of requests per second, with ratios. */
export async function comparison(
  works: readonly Work[],
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string> {
  const rivals = [...CONSTANT_REPLIES, ...effort.isQuick ? [] : RIVALS];
  const rows: string[][] = [];
  for (const work of works) {
    const cells = work.creates > 0
      ? await compareWithIdle(work, checkouts, effort)
      : await compareWithOthers(work, [...checkouts, ...rivals], effort);
    rows.push([work.name, ...cells]);
  }
  const names = [...checkouts, ...rivals].map(({ name }) => name);
  return table([title(effort), SERVICE.name, "A/A", ...names], rows);
}

/** A table of CPU time per request in µs, with one worker and with two. */
export async function cpuTimes(
  works: readonly Work[],
  effort: Effort,
): Promise<string> {
  const rows: string[][] = [];
  for (const work of works) {
    await using cleanup = new AsyncDisposableStack();
    const entries: Entry[] = [];
    for (const contender of WORKERS) {
      const target = await start(contender, cleanup, work.caller);
      entries.push({ name: contender.name, target, work });
    }
    const [one = NaN, again = NaN, two = NaN] = await takeTurns(entries, effort, "cpuTime");
    rows.push([
      work.name,
      figure(one),
      ratio(again, one),
      `${figure(two)} (${ratio(two, one)})`,
    ]);
  }
  return table([title(effort), "WORKERS=1", "A/A", "WORKERS=2"], rows);
}

/** Rates of the service and of others; in brackets, the service as a multiple of the other. */
async function compareWithOthers(
  work: Work,
  others: readonly Contender[],
  effort: Effort,
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const service = await start(SERVICE, cleanup, work.caller);
  const entries: Entry[] = [{ name: SERVICE.name, target: service, work }];
  const env = { REPLY: await replyOf(service, work) };
  for (const contender of [SECOND, ...others]) {
    const target = CONSTANT_REPLIES.includes(contender)
      ? await start({ ...contender, env }, cleanup, work.caller, 0)
      : await start(contender, cleanup, work.caller);
    entries.push({ name: contender.name, target, work });
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
  work: Work,
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const entries: Entry[] = [];
  for (const contender of [SERVICE, SECOND, ...checkouts]) {
    const { name } = contender;
    const target = await start(contender, cleanup, work.caller);
    entries.push({ name, target, work });
    entries.push({ name: `${name}, no creates`, target, work: { ...work, creates: 0 } });
  }
  const rates = await takeTurns(entries, effort, "perSecond");
  const busy = rates.filter((_, index) => index % 2 === 0);
  const idle = rates.filter((_, index) => index % 2 === 1);
  const [own = NaN, second = NaN] = busy;
  const cells = busy.map((rate, index) => `${figure(rate)} (${ratio(rate, idle[index] ?? NaN)})`);
  return cells.with(1, ratio(second, own));
}

/** The service's response to the work, as JSON for the constant replies. */
async function replyOf(service: Target, work: Work): Promise<string> {
  // The first request in a minute is still within the limit.
  if (work.caller === "limited") await sendOnce(service, work);
  const response = await sendOnce(service, work);
  if (response.status !== work.status) {
    throw new Failure(`${work.name}: the service returned ${response.status}`);
  }
  const headers = [...response.headers].filter(([name]) => !TRANSPORT_HEADERS.includes(name));
  return JSON.stringify({
    status: work.status,
    headers,
    body: await response.text(),
  });
}

function title({ rounds, seconds, isQuick }: Effort): string {
  return `${isQuick ? "quick, " : ""}${rounds} × ${seconds} s`;
}
