import { Counter, type Registry } from "../base/mod.ts";

/** Metrics of collections. */
export class ItemMetrics {
  readonly unreadable: Counter = new Counter(
    "unreadable_items_total",
    "Items that their declaration cannot read, each counted once.",
    ["resource"],
  );

  constructor(registry?: Registry) {
    registry?.add(this.unreadable);
  }
}
