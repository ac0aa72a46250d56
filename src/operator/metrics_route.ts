import { createResponse, NO_STORE } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
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
}

const TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** What happens in this process, and in the queue of messages, for Prometheus to scrape. */
export function metricsRoute({ version, requestsInFlight, leases, messages }: MetricsOptions): Route {
  async function metrics(_request: Request, { now }: Call): Promise<Response> {
    const { count, places } = leases();
    const waiting = await messages.countWaiting();
    const { value: oldest } = await messages.list(1).next();
    const age = oldest ? Math.max(0, now - Date.parse(oldest.createdAt)) / 1_000 : 0;
    const text = [
      gauge("animal_store_build_info", "The version that runs.", 1, [`version="${version}"`]),
      ...METRICS.map((metric) => metric.text()),
      gauge("animal_store_requests_in_flight", "Requests being answered.", requestsInFlight()),
      gauge("animal_store_leases", "Accounts that this process holds leases of.", count),
      gauge("animal_store_leased_places", "Places left in those leases.", places),
      gauge("animal_store_messages_waiting", "Messages that wait to be taken, of all processes.", waiting),
      gauge("animal_store_oldest_message_age_seconds", "How long the oldest of them has waited.", age),
    ];
    return createResponse(text.join(""), { headers: { "content-type": TYPE, ...NO_STORE } });
  }

  return { method: "GET", path: "/metrics", access: "operator", handler: metrics };
}
