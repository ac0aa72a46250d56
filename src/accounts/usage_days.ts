import { decodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { dayOf, hasCalled, type Usage } from "./usage.ts";

/** What an account's requests of a day came to. */
export interface DayTotal {
  /** Never too low; too high by what was leased and not handed out when the day ended. */
  readonly admitted: number;
  /** At least. */
  readonly refused: number;
}

/** A day that is over. */
export interface PastDay {
  readonly day: number;
  readonly total: DayTotal;
}

/** What the day before a change of the usage came to, if the change ends it. */
export function pastDay(before: Usage, after: Usage): PastDay | undefined {
  const day = dayOf(before.minute);
  if (!hasCalled(before) || day >= dayOf(after.minute)) return undefined;
  return { day, total: { admitted: before.usedToday, refused: before.refusedToday } };
}

/** Key of the row that tells what an account's day came to. */
export function dayTotalKey(day: number, accountId: string): Deno.KvKey {
  return ["usage_days", day, accountId];
}

/** For how many days they are kept. */
export const DAYS_KEPT = 90;

/** What the requests of an account came to on each of the last `count` days, today's first. */
export async function readDayTotals(
  store: Store,
  { account, usage }: { readonly account: { readonly id: string }; readonly usage: Usage },
  count: number,
  now: number,
): Promise<DayTotal[]> {
  const days = Array.from({ length: count }, (_, ago) => dayOf(now) - ago);
  const entries = await store.getMany(days.map((day) => dayTotalKey(day, account.id)));
  return days.map((day, index) => {
    if (day === dayOf(usage.minute)) return { admitted: usage.usedToday, refused: usage.refusedToday };
    const entry = entries[index];
    return entry ? decodeJson<DayTotal>(entry) : { admitted: 0, refused: 0 };
  });
}

/** Removes some totals of days that are long past; resolves to whether there may be more. */
export function sweepDayTotals(store: Store, now: number): Promise<boolean> {
  return store.removeAll({ start: dayTotalKey(0, ""), end: dayTotalKey(dayOf(now) - DAYS_KEPT, "") });
}
