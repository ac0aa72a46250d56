import type { Effort, Result, Results } from "./comparison.ts";
import { RIVALS } from "./rivals.ts";
import { SERVICE } from "./service.ts";
import type { Work } from "./works.ts";

/** A table in Markdown; numbers stand on the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => column === 0 ? "---" : "---:");
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A number of three digits, or of as many as it has before the point. */
export function figure(value: number): string {
  return value.toLocaleString(
    "en-US",
    value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 },
  );
}

/** How many times as large as the second number the first one is. */
export function ratio(value: number, of: number): string {
  const digits = { maximumSignificantDigits: value < of * 100 ? 2 : 3 };
  return `${(value / of).toLocaleString("en-US", digits)}×`;
}

/** What the measurements were made on. */
export function machine(): string {
  const { os, arch } = Deno.build;
  return `Deno ${Deno.version.deno}, ${os} ${arch}, ${navigator.hardwareConcurrency} CPUs, wrk with one thread`;
}

/** The comparison as two tables: of throughput, and of latency. */
export function comparisonReport(
  results: ReadonlyMap<Work, Results>,
  { rounds, seconds }: Effort,
): string {
  return [
    `Requests per second, median of rounds: ${rounds} of ${seconds} s (${machine()}).`,
    `64 connections and one key where nothing else is said. In brackets: ${SERVICE.toLowerCase()} as a multiple.`,
    "",
    comparisonTable(results, ({ perSecond }) => perSecond),
    "",
    "Latency of the slowest hundredth (p99) in ms, likewise.",
    "",
    comparisonTable(results, ({ p99 }) => p99),
  ].join("\n");
}

function comparisonTable(results: ReadonlyMap<Work, Results>, pick: (result: Result) => number): string {
  const columns = [SERVICE, ...Object.values(RIVALS).map(({ name }) => name)];
  const rows = [...results].map(([work, results]) => {
    const service = results.get(SERVICE);
    return [work.name, ...columns.map((column) => cell(results, column, service, pick))];
  });
  return table(["", ...columns], rows);
}

function cell(
  results: Results,
  column: string,
  service: Result | undefined,
  pick: (result: Result) => number,
): string {
  const result = results.get(column);
  if (result === undefined) return results.has(column) ? "failed" : "";
  if (result === service || service === undefined) return figure(pick(result));
  return `${figure(pick(result))} (${ratio(pick(service), pick(result))})`;
}
