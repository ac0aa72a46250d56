import { type Operation, operation } from "./api/operation.ts";
import { jsonResponse } from "./http/response.ts";
import type { Store } from "./kv/store.ts";
import { VERSION } from "./version.ts";

const PROBE_INTERVAL = 1_000;

/** Whether the process is alive, and whether it can serve: both public, so that a load balancer can ask. */
export function healthOperations(store: Store): Operation[] {
  let probe = Promise.resolve();
  let nextProbe = -Infinity;

  /** A probe writes, so those who ask within the same second share one. */
  async function ready(): Promise<Response> {
    if (performance.now() >= nextProbe) {
      nextProbe = Infinity;
      probe = store.probe().finally(() => nextProbe = performance.now() + PROBE_INTERVAL);
    }
    await probe;
    return statusResponse("ready");
  }

  const common = { method: "GET", access: "public", tag: "Service" } as const;
  return [
    operation({
      ...common,
      id: "getHealth",
      path: "/health",
      summary: "Tell whether it is alive",
      answers: { 200: { description: "It is alive" } },
    }, () => statusResponse("alive")),
    operation({
      ...common,
      id: "getReadiness",
      path: "/ready",
      summary: "Tell whether it can serve",
      answers: { 200: { description: "The store takes writes" } },
    }, ready),
  ];
}

function statusResponse(status: string): Response {
  return jsonResponse(JSON.stringify({ status, version: VERSION }));
}
