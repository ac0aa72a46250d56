import { StoreUnavailable } from "../kv/deadline.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { CorruptRow, decodeJson, encodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { dayOf, hasCalled, type Usage } from "./usage.ts";

/** What an account's requests of a day came to. */
export interface DayTotal {
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

/** Lowers a day's total by what was given back when it was over. Too high a total is better than a failure. */
export async function lowerDayTotal(
  store: Store,
  accountId: string,
  { day, admitted: tooMany }: { readonly day: number; readonly admitted: number },
): Promise<void> {
  const key = dayTotalKey(day, accountId);
  try {
    await retried(async () => {
      const entry = await store.get(key);
      if (entry === null) return;
      const { admitted, refused } = decodeJson<DayTotal>(entry);
      const { ok } = await store.commit((operation) => {
        operation.check(entry).set(key, encodeJson({ admitted: admitted - tooMany, refused }));
      });
      return ok ? undefined : AGAIN;
    });
  } catch (error) {
    if (!(error instanceof StoreUnavailable || error instanceof CorruptRow)) throw error;
  }
}

/** Removes some totals of days that are long past; resolves to whether there may be more. */
export function sweepDayTotals(store: Store, now: number): Promise<boolean> {
  return store.removeAll({ start: dayTotalKey(0, ""), end: dayTotalKey(dayOf(now) - DAYS_KEPT, "") });
}
