import { Counter, Histogram, type Registry } from "../base/mod.ts";

const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** Metrics of a store, its transactions and versions. */
export class EngineMetrics {
  readonly kvDuration: Histogram = new Histogram(
    "kv_operation_duration_seconds",
    "Duration of the KV's reads and writes.",
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
    ["round"],
    SIZES,
  );

  constructor(registry?: Registry) {
    for (const operation of ["read", "write"]) this.kvFailures.add(0, operation);
    registry?.add(this.kvDuration, this.kvFailures, this.kvConflicts, this.roundSize);
  }
}
