import process from "node:process";
import { counter, gauge, type Registry } from "../base/mod.ts";
import type { Store } from "../engine/mod.ts";
import { createResponse, NO_STORE, operation } from "../web/mod.ts";
import { ACCESS, type Operation } from "../service/mod.ts";
import { changeGauges } from "../changes/change_metrics.ts";
import type { ChangeStore } from "../changes/change_store.ts";
import type { Part } from "./part.ts";

/** Options of {@linkcode metricsOperation}. */
export interface MetricsOptions {
  /** The beginning of the names of the service's own metrics. */
  readonly prefix: string;
  /** Version of the service. */
  readonly version: string;
  readonly store: Store;
  readonly changes: ChangeStore;
  /** The metrics of this process. */
  readonly metrics: { readonly registry: Registry };
  readonly parts: readonly Part[];
  readonly inFlight: { readonly size: number; readonly capacity: number };
  /** Undefined if timers do not run between requests. */
  readonly eventLoopDelay: { readonly take: () => number } | undefined;
  /** Counts the leases of this process, and the permits left in them. */
  readonly permits: { count(): { readonly leases: number; readonly permits: number } };
}

const DELAY =
  "Longest time for which the event loop did not run a timer that was due, since the last scrape.";
const TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * The operation that Prometheus scrapes: metrics of this process and of the parts of the service. Their names
 * begin with that of the service.
 */
export function metricsOperation(
  { prefix, version, store, changes, metrics, parts, inFlight, eventLoopDelay, permits }: MetricsOptions,
): Operation {
  return operation({
    id: "getMetrics",
    method: "GET",
    path: "/metrics",
    access: ACCESS.metrics,
    isForMonitoring: true,
    summary: "Get metrics for Prometheus",
  }, async (_input, { now }) => {
    const [ofChanges, ...ofParts] = await Promise.all([
      changeGauges(changes, prefix, now),
      ...parts.map(({ gauges }) => gauges?.(store, prefix, now) ?? []),
    ]);
    const bytes = store.fileSize;
    const held = permits.count();
    const text = [
      gauge(`${prefix}build_info`, "Version of the service, and of the stored rows.", 1, [
        `version="${version}"`,
        `schema="${store.schema.version}"`,
      ]),
      ...ofProcess(),
      metrics.registry.text(prefix),
      gauge(`${prefix}requests_in_flight`, "Requests in flight.", inFlight.size),
      gauge(`${prefix}requests_capacity`, "Maximum number of requests in flight.", inFlight.capacity),
      ...(eventLoopDelay ? [gauge(`${prefix}event_loop_delay_seconds`, DELAY, eventLoopDelay.take())] : []),
      gauge(`${prefix}leases`, "Leases held.", held.leases),
      gauge(`${prefix}leased_permits`, "Permits left in those leases.", held.permits),
      gauge(`${prefix}leased_places`, "The former name of leased_permits.", held.permits),
      ...ofChanges,
      ...ofParts.flat(),
      ...(bytes === undefined
        ? []
        : [gauge(`${prefix}kv_file_bytes`, "Size of the KV's file, with its write-ahead log.", bytes)]),
    ];
    return createResponse(text.join(""), { headers: { "content-type": TYPE, ...NO_STORE } });
  });
}

/** The metrics that Prometheus's own clients have for every process, with their names. */
function ofProcess(): string[] {
  const { user, system } = process.cpuUsage();
  const started = performance.timeOrigin / 1_000;
  return [
    gauge("process_start_time_seconds", "Start time of the process, as a Unix time in seconds.", started),
    counter("process_cpu_seconds_total", "CPU time of all threads, in seconds.", (user + system) / 1_000_000),
    gauge("process_resident_memory_bytes", "Resident memory of the process.", Deno.memoryUsage().rss),
  ];
}
