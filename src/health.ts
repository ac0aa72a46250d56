import { jsonResponse } from "./http/response.ts";
import type { Route } from "./http/router.ts";
import type { Store } from "./kv/store.ts";
import { VERSION } from "./version.ts";

const PROBE_INTERVAL = 1_000;

/** Whether the process is alive, and whether it can serve: both public, so that a load balancer can ask. */
export function healthRoutes(store: Store): Route[] {
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

  return [
    { method: "GET", path: "/health", access: "public", handler: () => statusResponse("alive") },
    { method: "GET", path: "/ready", access: "public", handler: ready },
  ];
}

function statusResponse(status: string): Response {
  return jsonResponse(JSON.stringify({ status, version: VERSION }));
}
