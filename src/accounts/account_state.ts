import type { Entry } from "../kv/row.ts";
import { type Account, accountKey, decodeAccount } from "./account.ts";
import { decodeUsage, type Usage, usageKey } from "./usage.ts";

/** An account and what it has used, and the two rows that tell. */
export interface AccountState {
  readonly account: Account;
  readonly accountRow: Entry;
  readonly usage: Usage;
  readonly usageRow: Entry;
}

/** Keys of both rows. */
export function stateKeys(accountId: string): [account: Deno.KvKey, usage: Deno.KvKey] {
  return [accountKey(accountId), usageKey(accountId)];
}

/**
 * What both rows tell; null where there is no account.
 *
 * @throws {CorruptRow}
 */
export function decodeState(
  accountRow: Entry | null | undefined,
  usageRow: Entry | null | undefined,
): AccountState | null {
  if (!accountRow || !usageRow) return null;
  return { account: decodeAccount(accountRow), accountRow, usage: decodeUsage(usageRow), usageRow };
}
