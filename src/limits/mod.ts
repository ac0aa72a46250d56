/**
 * Exact limits per minute and per day (UTC) for anything that has an id, across many processes. What it
 * promises:
 *
 * - A limit is never exceeded, not even by a single request. This holds after any crash, lost response or late commit,
 *   and while clocks differ by up to five minutes. Windows follow the clock that is ahead.
 * - A request is refused wrongly only after a crash, a missed deadline, or a process that was silent for three seconds.
 * - A holder that keeps sending requests long after a refusal is banned for a while. A burst never leads to a ban.
 *
 * What it costs: a row of about 100 bytes for each holder, and a commit for its first request after a pause. After
 * that, most requests are decided in memory: a process leases permits in advance, from a hundredth to a quarter of
 * those that are free, and gives unused ones back in another commit. The last requests of a window may wait up to three
 * seconds for permits that other processes hold.
 *
 * How to use it:
 *
 * - Holders: `unstored()` limits any text of up to 2,000 bytes, and each text gets a row. If you store what you limit,
 *   implement `Holders`. It names and decodes the row that has a holder's limits, and checks credentials.
 * - Decisions: `Permits.admit()`. It notices another process's changes within two seconds. `Permits.learn()` and
 *   `Allowance` are for programs that learn of changes sooner.
 * - Changes: a transaction that changes a holder or its usage (`reset()`, `pardon()`) writes the holder's row, so that
 *   processes with leases notice. A transaction that changes the limits also writes the usage that `changeLimits()`
 *   returns. Otherwise, no permits are leased until a window that was full has ended, and each request costs a commit.
 * - Rows: `["usage", id]` counts permits. The first request writes it. Holders of two kinds need different ids, because
 *   the key has nothing else. Delete this row only together with its holder, or used permits are forgotten. If holders
 *   are not stored, `sweepUsage()` removes the rows of past days. `["usage_days", day, id]` has the totals of a past
 *   day. These rows stay until you call `sweepDayTotals()`.
 * - End: call `Permits.settle()` before you close the store, or leased permits count as used until their day ends.
 *
 * Requests without a credential have no holder. `AnonymousLimiter` limits them by client address, in memory.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { openStore, Transactions } from "../engine/mod.ts";
 *
 * const clock = Date.now;
 * const store = await openStore(":memory:", { clock, create: true });
 * const transactions = new Transactions(store, clock);
 * const holders = unstored(() => ({ minute: 60, day: 1_000 }));
 * const permits = new Permits({ store, transactions, holders, clock });
 *
 * async function handle(request: Request): Promise<Response> {
 *   const decision = await permits.admit(request.headers.get("x-tenant") ?? "");
 *   if (decision === undefined) return new Response("Unknown tenant", { status: 401 });
 *   const response = new Response("Hello", { status: decision.refusal ? 429 : 200 });
 *   setLimitHeaders(response.headers, decision);
 *   return response;
 * }
 * // Deno.serve(handle);
 *
 * const request = new Request("http://localhost/", { headers: { "x-tenant": "any string" } });
 * const responses = await Promise.all(Array.from({ length: 90 }, () => handle(request)));
 * assertEquals(responses.filter(({ status }) => status === 200).length, 60);
 * await permits.settle();
 * await store.close();
 * ```
 *
 * @module
 */
export { monotonicNow, type MonotonicTime } from "../base/mod.ts";
export { type Allowance, type PermitRequest, UNDECIDED } from "./allowance.ts";
export { AnonymousLimiter } from "./anonymous.ts";
export { decodeState, type Holder, type Holders, type HolderState, stateKeys, unstored } from "./holder.ts";
export {
  decisiveWindow,
  hasSamePolicy,
  isSameRefusal,
  limitHeadersOf,
  retryAfter,
  setLimitHeaders,
  setPolicy,
  setRemaining,
} from "./limit_headers.ts";
export { LimitMetrics } from "./metrics.ts";
export { Permits, type PermitsOptions } from "./permits.ts";
export {
  changeLimits,
  dayEnd,
  type Decision,
  decodeUsage,
  encodeUsage,
  hasCalled,
  isSameLimits,
  type Limits,
  minuteEnd,
  pardon,
  type Refusal,
  reset,
  roll,
  uncharged,
  UNUSED,
  type Usage,
  usageKey,
  type Window,
} from "./usage.ts";
export {
  DAYS_KEPT,
  type DayTotal,
  dayTotalKey,
  pastDay,
  readDayTotals,
  sweepDayTotals,
} from "./usage_days.ts";
export { sweepUsage } from "./usage_sweep.ts";
