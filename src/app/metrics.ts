import { Counter, Histogram, Registry } from "../base/mod.ts";
import { EngineMetrics } from "../engine/mod.ts";
import { LimitMetrics } from "../limits/mod.ts";
import { ItemMetrics } from "../resource/mod.ts";

/** The metrics of one service. */
export class Metrics {
  readonly requests: Counter = new Counter("requests_total", "Requests completed.", [
    "route",
    "method",
    "status",
  ]);
  readonly requestDuration: Histogram = new Histogram(
    "request_duration_seconds",
    "Time from the arrival of a request to its response.",
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
  readonly limits: LimitMetrics;
  readonly engine: EngineMetrics;
  readonly items: ItemMetrics;
  readonly logLinesDropped: Counter = new Counter(
    "log_lines_dropped_total",
    "Log lines that were lost because their reader stalled or the disk was full.",
  );
  /** All of them, in their order for Prometheus. */
  readonly registry: Registry = new Registry();

  constructor() {
    this.registry.add(this.requests, this.requestDuration, this.admitted, this.refused);
    this.limits = new LimitMetrics(this.registry);
    this.engine = new EngineMetrics(this.registry);
    this.items = new ItemMetrics(this.registry);
    this.registry.add(this.logLinesDropped);
  }
}
