import { type Operation, operation } from "../api/operation.ts";
import { createResponse, NO_STORE } from "../http/response.ts";
import type { MessageStore } from "../messages/message_store.ts";
import { METRICS } from "../metrics/metrics.ts";
import { gauge } from "../metrics/prometheus.ts";

/** What is as it is when somebody asks. */
export interface MetricsOptions {
  readonly version: string;
  readonly requestsInFlight: () => number;
  /** Leases held, and places in them that are left. */
  readonly leases: () => { readonly count: number; readonly places: number };
  readonly messages: MessageStore;
  /** How many bytes the file of the KV has; undefined where that cannot be told. */
  readonly fileSize: () => number | undefined;
}

const STARTED = performance.timeOrigin / 1_000;
const TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** What happens in this process, and in the queue of messages, for Prometheus to scrape. */
export function metricsOperation(
  { version, requestsInFlight, leases, messages, fileSize }: MetricsOptions,
): Operation {
  return operation({
    id: "getMetrics",
    method: "GET",
    path: "/metrics",
    access: "operator",
    summary: "Get what happens in this process, for Prometheus",
  }, async (_input, { now }) => {
    const { count, places } = leases();
    const waiting = await messages.countWaiting();
    const { value: oldest } = await messages.list(1).next();
    const age = oldest ? Math.max(0, now - Date.parse(oldest.createdAt)) / 1_000 : 0;
    const bytes = fileSize();
    const text = [
      gauge("animal_store_build_info", "The version that runs.", 1, [`version="${version}"`]),
      gauge("process_start_time_seconds", "When the process started, Unix time.", STARTED),
      gauge("process_resident_memory_bytes", "Memory that the process occupies.", Deno.memoryUsage().rss),
      ...METRICS.map((metric) => metric.text()),
      gauge("animal_store_requests_in_flight", "Requests being answered.", requestsInFlight()),
      gauge("animal_store_leases", "Accounts that this process holds leases of.", count),
      gauge("animal_store_leased_places", "Places left in those leases.", places),
      gauge("animal_store_messages_waiting", "Messages that wait to be taken, of all processes.", waiting),
      gauge("animal_store_oldest_message_age_seconds", "How long the oldest of them has waited.", age),
      ...(bytes === undefined ? [] : [gauge("animal_store_kv_file_bytes", "Size of the KV's file.", bytes)]),
    ];
    return createResponse(text.join(""), { headers: { "content-type": TYPE, ...NO_STORE } });
  });
}
