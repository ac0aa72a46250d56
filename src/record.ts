import type { Admission } from "./access/admission.ts";
import { type Arrival, patternOf } from "./arrival.ts";
import type { Log } from "./http/log.ts";
import { ADMITTED, REFUSED, REQUEST_DURATION, REQUESTS } from "./metrics/metrics.ts";

/** Methods that metrics tell apart. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** Counts a request that has been answered, and logs it where that is wanted; the clock tells ms since the epoch. */
export function record(
  { request, id, now, started, matched, admission }: Arrival,
  { status }: Response,
  log: Log,
  clock: () => number,
): void {
  const { method } = request;
  const route = patternOf(matched);
  REQUESTS.add(1, route, METHODS.has(method) ? method : "other", `${status}`);
  REQUEST_DURATION.observe((performance.now() - started) / 1_000, route);
  if (!log.access) return;
  const accountId = admission?.account?.id ?? "";
  log.access({ time: new Date(now).toISOString(), id, method, route, status, ms: clock() - now, accountId });
}

/** Counts a request that was charged. */
export function countAdmission({ account, decision: { refusal } }: Admission): void {
  const plan = account?.plan ?? "";
  if (refusal === undefined) ADMITTED.add(1, plan);
  else REFUSED.add(1, plan, refusal);
}
