// What operators' operations on accounts have in common.
import type { Tag } from "../web/mod.ts";
import { type Schema, text } from "../web/schema.ts";
import { ACCESS, type Call, EXAMPLE_ACCOUNT_ID } from "../service/mod.ts";
import { ACCOUNT_NOT_FOUND, accountNotFound } from "./account.ts";
import type { AccountState, AccountStore } from "./account_store.ts";

/** Path of the accounts. */
export const ACCOUNTS_PATH = "/operator/v1/accounts";

const ACCOUNTS_TAG: Tag = { name: "Accounts", description: "All accounts" };
/** What all operations on accounts have in common. */
export const COMMON = { access: ACCESS.operator, tag: ACCOUNTS_TAG, timeoutMs: 30_000 } as const;

/** The id in a path. An id of any other form gets 404, because no account can have it. */
const ACCOUNT_ID: Schema<string> = {
  ...text({ description: "The account's id", examples: [EXAMPLE_ACCOUNT_ID] }),
  fromStrings([id = ""]) {
    if (/^\w{1,100}$/.test(id)) return id;
    throw accountNotFound(id);
  },
};
/** What operations on one account have in common. */
export const OF_ACCOUNT = { ...COMMON, params: { id: ACCOUNT_ID }, errors: [ACCOUNT_NOT_FOUND] } as const;

/** Finds an account, which is open if `kind` says so. @throws {ApiError} `account_not_found` */
export async function find(
  accounts: AccountStore,
  id: string,
  { note }: Call,
  kind: "" | "open " = "",
): Promise<AccountState> {
  const state = await accounts.find(id);
  if (state === null || (kind === "open " && state.holder.closedAt !== null)) throw accountNotFound(id, kind);
  note(id);
  return state;
}

/** What was found in a transaction. @throws {ApiError} `account_not_found` if there is no open account. */
export function open<Found>(found: Found | null, id: string): Found {
  if (found === null) throw accountNotFound(id, "open ");
  return found;
}
