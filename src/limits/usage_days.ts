import { dayOf } from "../base/mod.ts";
import { decodeJson, type Store } from "../engine/mod.ts";
import { hasCalled, type Usage } from "./usage.ts";

/** A holder's request totals for a day. */
export interface DayTotal {
  /** Never too low: it includes permits that were leased but not used at the end of the day. */
  readonly admitted: number;
  /** May be too low. */
  readonly refused: number;
}

/** The previous day's totals, if the usage has moved on to a later day; otherwise undefined. */
export function pastDay(
  before: Usage,
  after: Usage,
): { readonly day: number; readonly total: DayTotal } | undefined {
  const day = dayOf(before.minute);
  if (!hasCalled(before) || day >= dayOf(after.minute)) return undefined;
  return { day, total: { admitted: before.usedToday, refused: before.refusedToday } };
}

/** Key of the row with a holder's totals for a day. */
export function dayTotalKey(day: number, id: string): Deno.KvKey {
  return ["usage_days", day, id];
}

/** For how many days totals are kept. */
export const DAYS_KEPT = 90;

/** Reads the totals for the last `count` days, starting with today. */
export async function readDayTotals(
  store: Store,
  { id, usage }: { readonly id: string; readonly usage: Usage },
  count: number,
  now: number,
): Promise<DayTotal[]> {
  const days = Array.from({ length: count }, (_, ago) => dayOf(now) - ago);
  const entries = await store.getMany(days.map((day) => dayTotalKey(day, id)));
  return days.map((day, index) => {
    if (day === dayOf(usage.minute)) return { admitted: usage.usedToday, refused: usage.refusedToday };
    const entry = entries[index];
    return entry ? decodeJson<DayTotal>(entry) : { admitted: 0, refused: 0 };
  });
}

/** Removes some expired totals. Resolves to true if there may be more. */
export function sweepDayTotals(store: Store, now: number): Promise<boolean> {
  return store.removeAll({ start: dayTotalKey(0, ""), end: dayTotalKey(dayOf(now) - DAYS_KEPT, "") });
}
