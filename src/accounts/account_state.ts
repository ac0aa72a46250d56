import type { Entry } from "../kv/row.ts";
import { type Account, accountKey, decodeAccount } from "./account.ts";
import { decodeUsage, type Usage, usageKey } from "./usage.ts";

/** An account and what it has used, as its two rows tell, and the versions of these. */
export interface AccountState {
  readonly account: Account;
  readonly accountVersionstamp: string;
  readonly usage: Usage;
  readonly usageVersionstamp: string;
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
  account: Entry | null | undefined,
  usage: Entry | null | undefined,
): AccountState | null {
  return account && usage
    ? {
      account: decodeAccount(account),
      accountVersionstamp: account.versionstamp,
      usage: decodeUsage(usage),
      usageVersionstamp: usage.versionstamp,
    }
    : null;
}
