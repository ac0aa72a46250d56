import { type MonotonicTime, msBetween } from "../base/mod.ts";
import { codeOf } from "../web/mod.ts";
import type { Admissions } from "./admission.ts";
import type { Arrival } from "./arrival.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

/** Options of {@linkcode record}. */
export interface RecordOptions {
  readonly admissions: Admissions;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Statuses of requests that metrics count as refused, whatever their content. */
const REFUSALS: ReadonlySet<number> = new Set([403, 429, 503]);
/** Methods that metrics and the access log name. Any other is `other`, because a client can send any text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** Updates the metrics when a response is complete, logs an operator's request, and writes the access log if it is on. */
export function record(
  { request, id, now, at, idleMs, matched, address, admission, limitOf, byOperator }: Arrival,
  { made, ended }: { readonly made: Response; readonly ended: MonotonicTime },
  { admissions, log, metrics }: RecordOptions,
): void {
  const { status } = made;
  const code = codeOf(made);
  const method = METHODS.has(request.method) ? request.method : "other";
  const ms = msBetween(at, ended) - idleMs;
  const route = matched.pattern;
  metrics.requests.add(1, route, method, `${status}`);
  metrics.requestDuration.observe(ms / 1_000, route);
  const isRefused = REFUSALS.has(status);
  const plan = admission?.account?.plan ?? "";
  if (isRefused) metrics.refused.add(1, plan, code);
  if (admission && !admission.isFree && !admission.decision.refusal) metrics.admitted.add(1, plan);
  if (!byOperator && !log.access) return;
  const time = new Date(now).toISOString();
  if (byOperator) {
    const { grant: { operator }, operation, ids, changed } = byOperator;
    const line = { time, id, address: address(), ...(operator && { operator }), operation, ids: [...ids] };
    const isChanged = status < 400 && Object.keys(changed).length > 0;
    log.operator({ ...line, ...(isChanged && { changed }), status });
  }
  if (!log.access) return;
  const isOfKey = isRefused || status === 401;
  const accountId = admission?.account?.id ?? (isOfKey ? admissions.ownerOf(request) : "");
  const line = { time, id, address: address(), method, route, status, code, ms: Math.round(ms), accountId };
  const { key } = admission ?? {};
  const keyId = key === undefined || key === "first" ? undefined : key.id;
  log.access({ ...line, ...(keyId && { keyId }), ...(limitOf && { limitOf }) });
}
