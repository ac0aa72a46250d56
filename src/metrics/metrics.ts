import { Counter, Histogram, type Metric } from "./prometheus.ts";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];

export const REQUESTS: Counter = new Counter("animal_store_requests_total", "Requests answered.", [
  "route",
  "method",
  "status",
]);

export const REQUEST_DURATION: Histogram = new Histogram(
  "animal_store_request_duration_seconds",
  "Time from a request's head to its response's.",
  SECONDS,
  ["route"],
);

export const ADMITTED: Counter = new Counter(
  "animal_store_admitted_total",
  "Requests admitted, by plan; anonymous ones have none.",
  ["plan"],
);

export const REFUSED: Counter = new Counter(
  "animal_store_refused_total",
  "Requests refused with 429, by plan and by what refused them.",
  ["plan", "window"],
);

export const BANS: Counter = new Counter("animal_store_bans_total", "Bans that began.");

export const KV_DURATION: Histogram = new Histogram(
  "animal_store_kv_operation_duration_seconds",
  "Time that KV took for a read or a write.",
  SECONDS,
  ["operation"],
);

export const KV_FAILURES: Counter = new Counter(
  "animal_store_kv_failures_total",
  "KV operations that failed or were given up.",
  ["operation"],
);

for (const operation of ["read", "write"]) KV_FAILURES.add(0, operation);

export const KV_CONFLICTS: Counter = new Counter(
  "animal_store_kv_conflicts_total",
  "Commits refused because a row had changed.",
);

export const ROUND_SIZE: Histogram = new Histogram(
  "animal_store_round_size",
  "Requests that shared a look, accounts that shared a commit of leases, changes that shared a commit.",
  SIZES,
  ["round"],
);

export const LOG_LINES_DROPPED: Counter = new Counter(
  "animal_store_log_lines_dropped_total",
  "Log lines that could not be written, for their reader stalled or the disk was full.",
);

/** Everything that is counted. */
export const METRICS: readonly Metric[] = [
  REQUESTS,
  REQUEST_DURATION,
  ADMITTED,
  REFUSED,
  BANS,
  KV_DURATION,
  KV_FAILURES,
  KV_CONFLICTS,
  ROUND_SIZE,
  LOG_LINES_DROPPED,
];
