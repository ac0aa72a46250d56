import type { Admission } from "./admission/gate.ts";
import type { Arrival } from "./arrival.ts";
import type { Log } from "./http/log.ts";
import type { Metrics } from "./metrics/metrics.ts";

/** Methods that metrics tell apart. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** Counts a request that has been answered, and logs it if that is wanted. */
export function record(
  { request, id, now, started, matched, admission }: Arrival,
  { status }: Response,
  log: Log,
  metrics: Metrics,
): void {
  const { method } = request;
  const ms = performance.now() - started;
  const route = matched.pattern;
  metrics.requests.add(1, route, METHODS.has(method) ? method : "other", `${status}`);
  metrics.requestDuration.observe(ms / 1_000, route);
  if (!log.access) return;
  const accountId = admission?.account?.id ?? "";
  const time = new Date(now).toISOString();
  log.access({ time, id, method, route, status, ms: Math.round(ms), accountId });
}

/** Counts a request that was charged. */
export function countAdmission({ account, decision: { refusal } }: Admission, metrics: Metrics): void {
  const plan = account?.plan ?? "";
  if (refusal === undefined) metrics.admitted.add(1, plan);
  else metrics.refused.add(1, plan, refusal);
}
