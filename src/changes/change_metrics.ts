import { gauge } from "../base/mod.ts";
import { withDeadline } from "../engine/mod.ts";
import type { ChangeStore } from "./change_store.ts";

/** Maximum wait for the feed, in ms: shorter than a request's budget, so that other metrics are still sent. */
const DEADLINE = 2_000;

/** Metrics of the feed at `now` (ms since the epoch); none if it has no rows, or if KV fails. */
export async function changeGauges(changes: ChangeStore, prefix: string, now: number): Promise<string[]> {
  const at = await withDeadline(changes.oldestAt(), DEADLINE).catch(() => undefined);
  if (at === undefined) return [];
  const age = Math.max(0, now - at) / 1_000;
  return [gauge(`${prefix}oldest_change_age_seconds`, "Age of the oldest change in the feed.", age)];
}
