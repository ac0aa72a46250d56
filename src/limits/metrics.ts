import { Counter, type Registry } from "../base/mod.ts";

/** Metrics of permits. */
export class LimitMetrics {
  readonly bans: Counter = new Counter("bans_total", "Bans started.");

  constructor(registry?: Registry) {
    registry?.add(this.bans);
  }
}
