import { DAY } from "../base/mod.ts";
import { encodeJson, type Entry, type Transaction } from "../engine/mod.ts";
import type { Holder } from "./holder.ts";
import type { PermitsOptions } from "./permits.ts";
import { AHEAD, dayEnd, decodeUsage, roll, type Usage, usageKey } from "./usage.ts";
import { dayTotalKey, pastDay } from "./usage_days.ts";

/** A key after those of all usage rows. */
const END: Deno.KvKey = [`${String(usageKey("")[0])}\0`];

/**
 * Removes usage rows of holders that are not stored, once they no longer matter: their day is over, and their last ban
 * ended a day ago. Stores their day's totals.
 *
 * @throws {StoreUnavailable}
 * @throws {CorruptRow}
 */
export async function sweepUsage<Of extends Holder>(
  { store, transactions, holders }: Pick<PermitsOptions<Of>, "store" | "transactions" | "holders">,
  now: number,
): Promise<void> {
  for await (const page of store.pages(usageKey(""), END)) {
    const over = page.filter((row) => holders.key(idIn(row)) === undefined && isOver(decodeUsage(row), now));
    await Promise.all(over.map((row) => transactions.run(removing(row, now))));
  }
}

/** Removes a row, unless it is used again. The result is whether it was removed. */
function removing(entry: Entry, now: number): Transaction<boolean> {
  const { key } = entry;
  return {
    reads: [{ key, entry }],
    decide(rows, write) {
      const row = rows.get(key);
      const usage = row && decodeUsage(row);
      if (!usage || !isOver(usage, now)) return false;
      const past = pastDay(usage, roll(usage, now));
      if (past) write.set(dayTotalKey(past.day, idIn(entry)), encodeJson(past.total));
      write.delete(key);
      return true;
    },
  };
}

/** Whether a row can be written anew without an effect, even by a process whose clock is behind. */
function isOver(usage: Usage, now: number): boolean {
  return dayEnd(usage) + AHEAD <= now && usage.bannedUntil + DAY <= now;
}

function idIn({ key }: Entry): string {
  return String(key.at(-1));
}
