import { operation } from "../web/operation.ts";
import type { Operation } from "../resource/mod.ts";
import type { InFlight } from "../web/in_flight.ts";
import { createResponse, NO_STORE } from "../web/response.ts";
import { withDeadline } from "../engine/deadline.ts";
import { CorruptRow } from "../engine/row.ts";
import type { Store } from "../engine/store.ts";
import type { MessageStore } from "../messages/message_store.ts";
import type { Metrics } from "../base/metrics.ts";
import { gauge } from "../base/prometheus.ts";

/** Options of {@linkcode metricsOperation}. */
export interface MetricsOptions {
  /** What the service is called. */
  readonly title: string;
  /** Version of the service. */
  readonly version: string;
  readonly store: Store;
  /** The metrics of this process. */
  readonly metrics: Metrics;
  readonly messages: MessageStore;
  readonly inFlight: Pick<InFlight, "size">;
  /** Counts the leases of this process, and the permits left in them. */
  readonly permits: { count(): { readonly leases: number; readonly permits: number } };
}

/**
 * Maximum wait for the queue of messages, in ms: shorter than a request's budget, so that other metrics are still sent.
 */
const QUEUE_DEADLINE = 2_000;
const TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * The operation that Prometheus scrapes: metrics of this process and, if KV responds, of the queue of messages. Their names
 * begin with that of the service.
 */
export function metricsOperation(
  { title, version, store, metrics, messages, inFlight, permits }: MetricsOptions,
): Operation {
  const prefix = `${title.toLowerCase().replaceAll(/\W+/g, "_")}_`;
  return operation({
    id: "getMetrics",
    method: "GET",
    path: "/metrics",
    access: "metrics",
    summary: "Get metrics for Prometheus",
  }, async (_input, { now }) => {
    const queue = await queueGauges(messages, prefix, now);
    const bytes = store.fileSize;
    const held = permits.count();
    const text = [
      gauge(`${prefix}build_info`, "Version of the service, and of the stored rows.", 1, [
        `version="${version}"`,
        `schema="${store.schema.version}"`,
      ]),
      gauge(
        "process_start_time_seconds",
        "Start time of the process, as a Unix time in seconds.",
        performance.timeOrigin / 1_000,
      ),
      gauge("process_resident_memory_bytes", "Resident memory of the process.", Deno.memoryUsage().rss),
      metrics.text(prefix),
      gauge(`${prefix}requests_in_flight`, "Requests in flight.", inFlight.size),
      gauge(`${prefix}leases`, "Leases held.", held.leases),
      gauge(`${prefix}leased_places`, "Permits left in those leases.", held.permits),
      ...queue,
      ...(bytes === undefined
        ? []
        : [gauge(`${prefix}kv_file_bytes`, "Size of the KV's file, with its write-ahead log.", bytes)]),
    ];
    return createResponse(text.join(""), { headers: { "content-type": TYPE, ...NO_STORE } });
  });
}

/**
 * Metrics of the queue of messages; none if KV fails.
 *
 * @throws {CorruptRow}
 */
async function queueGauges(messages: MessageStore, prefix: string, now: number): Promise<string[]> {
  try {
    const reads = Promise.all([messages.countWaiting(), messages.list(1).next()]);
    const [waiting, { value: oldest }] = await withDeadline(reads, QUEUE_DEADLINE);
    const age = oldest ? Math.max(0, now - Date.parse(oldest.createdAt)) / 1_000 : 0;
    return [
      gauge(`${prefix}messages_waiting`, "Messages waiting to be taken, across all processes.", waiting),
      gauge(`${prefix}oldest_message_age_seconds`, "How long the oldest message has waited.", age),
    ];
  } catch (error) {
    if (error instanceof Error && error.cause instanceof CorruptRow) throw error.cause;
    return [];
  }
}
