import { FUTURE, monotonicNow, PAST, plus } from "../base/mod.ts";
import type { Store } from "../engine/mod.ts";
import { operation, valueResponse } from "../web/mod.ts";
import { ACCESS, type Operation, STOPPING } from "../service/mod.ts";
import { SERVICE_TAG } from "./document_operations.ts";
import type { InFlight } from "./in_flight.ts";
import { VERSION } from "./version.ts";

const PROBE_INTERVAL = 1_000;

/** Liveness and readiness checks. They are public, so that a load balancer can call them. */
export function healthOperations(store: Store, inFlight: Pick<InFlight, "isStopping">): Operation[] {
  let probe = Promise.resolve();
  let nextProbe = PAST;

  /** Probes the store at most once a second, because a probe writes. */
  async function ready(): Promise<Response> {
    if (inFlight.isStopping) throw STOPPING;
    if (monotonicNow() >= nextProbe) {
      nextProbe = FUTURE;
      probe = store.probe().finally(() => nextProbe = plus(monotonicNow(), PROBE_INTERVAL));
    }
    await probe;
    return statusResponse("ready");
  }

  const common = { method: "GET", access: ACCESS.public, tag: SERVICE_TAG, isForMonitoring: true } as const;
  return [
    operation({
      ...common,
      id: "getHealth",
      path: "/health",
      summary: "Check liveness",
      answers: { 200: { description: "The process is running" } },
    }, () => statusResponse("alive")),
    operation({
      ...common,
      id: "getReadiness",
      path: "/ready",
      summary: "Check readiness",
      answers: { 200: { description: "The store accepts writes" } },
    }, ready),
  ];
}

function statusResponse(status: string): Response {
  return valueResponse({ status, version: VERSION });
}
