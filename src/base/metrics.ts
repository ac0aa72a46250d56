import { Counter, Histogram } from "./prometheus.ts";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/**
 * The metrics of one service. They are declared here, and not where they are counted, so that their names, and their
 * order for Prometheus, are in one place.
 */
export class Metrics {
  readonly requests: Counter = new Counter("requests_total", "Requests completed.", [
    "route",
    "method",
    "status",
  ]);
  readonly requestDuration: Histogram = new Histogram(
    "request_duration_seconds",
    "Time from the arrival of a request to its response.",
    SECONDS,
    ["route"],
  );
  readonly admitted: Counter = new Counter(
    "admitted_total",
    "Requests admitted, by plan. Anonymous requests have no plan.",
    ["plan"],
  );
  readonly refused: Counter = new Counter(
    "refused_total",
    "Requests refused with 403, 429 or 503, by plan and by the error's code. Requests without an account have no plan.",
    ["plan", "code"],
  );
  readonly bans: Counter = new Counter("bans_total", "Bans started.");
  readonly kvDuration: Histogram = new Histogram(
    "kv_operation_duration_seconds",
    "Duration of the KV's reads and writes.",
    SECONDS,
    ["operation"],
  );
  readonly kvFailures: Counter = new Counter(
    "kv_failures_total",
    "KV operations that failed or timed out.",
    ["operation"],
  );
  readonly kvConflicts: Counter = new Counter(
    "kv_conflicts_total",
    "Commits refused because a row had changed.",
  );
  readonly roundSize: Histogram = new Histogram(
    "round_size",
    "Number of requests per version check, or of transactions per commit.",
    SIZES,
    ["round"],
  );
  readonly logLinesDropped: Counter = new Counter(
    "log_lines_dropped_total",
    "Log lines that were lost because their reader stalled or the disk was full.",
  );

  constructor() {
    for (const operation of ["read", "write"]) this.kvFailures.add(0, operation);
  }

  /** All metrics in the Prometheus text format. Names begin with `prefix`. */
  text(prefix: string): string {
    const families = [
      ...[this.requests, this.requestDuration, this.admitted, this.refused, this.bans],
      ...[this.kvDuration, this.kvFailures, this.kvConflicts, this.roundSize, this.logLinesDropped],
    ];
    return families.map((family) => family.text(prefix)).join("");
  }
}
