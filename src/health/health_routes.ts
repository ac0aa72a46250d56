import { jsonResponse } from "../http/response.ts";
import type { Route } from "../http/router.ts";
import { batched } from "../kv/batcher.ts";
import type { Store } from "../kv/store.ts";

/** Whether the process is alive, and whether it can serve: both public, so that a load balancer can ask. */
export function healthRoutes(store: Store): Route[] {
  const probe = batched<void, void>(async (round) => {
    await store.probe();
    for (const { resolve } of round) resolve();
  });

  async function ready(): Promise<Response> {
    await probe();
    return statusResponse("ready");
  }

  return [
    { method: "GET", path: "/health", access: "public", handler: () => statusResponse("alive") },
    { method: "GET", path: "/ready", access: "public", handler: ready },
  ];
}

function statusResponse(status: string): Response {
  return jsonResponse(JSON.stringify({ status }));
}
