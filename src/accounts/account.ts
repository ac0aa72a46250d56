import { HOUR, MINUTE, SECOND } from "../base/mod.ts";
import { decodeJson, type Entry } from "../engine/mod.ts";
import { ApiError, type ErrorKind } from "../web/mod.ts";
import { BIDI_CONTROLS, nameText, type Schema, shownName } from "../web/schema.ts";
import type { Holders, Limits } from "../limits/mod.ts";
import { type Environment, type OwnLimit, usedUp } from "../service/mod.ts";
import { type AddedKey, isFirstKey, type OwnKeys, validKeysOf } from "./added_keys.ts";

/** A number of changes by clients in an hour (UTC). */
export interface HourCount {
  /** Hours since the epoch. */
  readonly hour: number;
  readonly count: number;
}

/** The table of accounts that signed up, by the time when they did. */
export const SIGN_UPS = "sign_ups";
/** Maximum rotations in an hour. After each one, every process rereads the accounts it is using. */
export const MAX_ROTATIONS = 10;
/** The error for accounts that rotate their key too often. */
export const ROTATION_LIMIT: ErrorKind = {
  code: "rotation_limit",
  status: 429,
  means: "The account has rotated its key too often in this hour (UTC).",
  todo:
    "Keep your current key, or try again after Retry-After. This request counted, unless a limit or a ban applied.",
};
const ROTATIONS: OwnLimit = {
  of: "account",
  name: "hour",
  count: MAX_ROTATIONS,
  ms: HOUR,
  kind: ROTATION_LIMIT,
  reason: (count) => `An account's key can be rotated at most ${count} times in an hour.`,
};

/** Maximum number of keys that clients add to an account in an hour. */
export const MAX_ADDITIONS = 10;
/** The error for accounts that add keys too often. */
export const KEY_ADDITIONS_LIMIT: ErrorKind = {
  code: "key_additions_limit",
  status: 429,
  means: "The account has added too many keys in this hour (UTC).",
  todo: "Use the keys that it has, or try again after Retry-After. This request counted.",
};
const ADDITIONS: OwnLimit = {
  of: "account",
  name: "hour",
  count: MAX_ADDITIONS,
  ms: HOUR,
  kind: KEY_ADDITIONS_LIMIT,
  reason: (count) => `At most ${count} keys can be added to an account in an hour.`,
};

/**
 * An account has a name, a plan and API keys: the first one, which can be rotated, and added ones. Usage, strikes and
 * bans belong to the account, so keys share them, and a rotation does not reset them.
 */
export interface Account extends OwnKeys {
  readonly id: string;
  readonly name: string;
  readonly environment: Environment;
  /** The name of its plan. */
  readonly plan: string;
  readonly limits: Limits;
  /** Whether the account was created by `POST /v1/accounts`, rather than by an operator. */
  readonly signedUp: boolean;
  /** In ms since the epoch, like all times here. */
  readonly createdAt: number;
  /** When an operator suspended the account. Its requests are refused, and its keys are kept. */
  readonly suspendedAt: number | null;
  readonly closedAt: number | null;
  /** Missing before the first rotation. */
  readonly rotations?: HourCount;
  /** Missing before a client adds the first key. */
  readonly keyAdditions?: HourCount;
  /** Unique, so that creating the account can safely be repeated. Clients do not see it. See {@linkcode referenceOf}. */
  readonly reference?: string;
}

const GENERATED = /^accounts-create\/[\da-f-]{36}$/;

/** A reference for the creation of an account for which no operator has chosen one. It can be replaced. */
export function generatedReference(): string {
  return `accounts-create/${crypto.randomUUID()}`;
}

/** The reference that an operator has chosen for an account; undefined if there is none. */
export function referenceOf(
  { reference }: { readonly reference?: string | undefined },
): string | undefined {
  return GENERATED.test(reference ?? "") ? undefined : reference;
}

/** Maximum length of an account's name. */
export const MAX_NAME_LENGTH = 100;

/** A name in a request. Operators' terminals show it. Stored names might break today's rules. */
export const ACCOUNT_NAME: Schema<string> = nameText(MAX_NAME_LENGTH, "The account's name", BIDI_CONTROLS);

/** An account and its new key, which is not stored. */
export interface Issued {
  readonly account: Account;
  readonly apiKey: string;
}

/** The row whose version changes when an account is changed or removed. Requests do not change it. */
export const ACCOUNTS_VERSION: Deno.KvKey = ["versions", "access"];

/** A valid key of an account: the first one or, until its grace period ends, the predecessor of that; or an added one. */
export type ValidKey = "first" | AddedKey;

/** The key with this hash if it is valid for the account at `now`, suspended or not; otherwise undefined. */
export function keyWith(account: Account, hash: string, now: number): ValidKey | undefined {
  if (account.closedAt !== null) return undefined;
  if (isFirstKey(account, hash, now)) return "first";
  return validKeysOf(account, now).find((key) => key.hash === hash);
}

/** Whether the key with this hash is valid for the account at `now`, suspended or not. */
export function hasKey(account: Account, hash: string, now: number): boolean {
  return keyWith(account, hash, now) !== undefined;
}

/** When the previous key expires (ISO 8601); null if it is not valid at `now`. */
export function previousKeyExpiry(account: Account, now: number): string | null {
  const { previousKey } = account;
  return previousKey && hasKey(account, previousKey.hash, now)
    ? new Date(previousKey.expiresAt).toISOString()
    : null;
}

/**
 * Decodes an account's row. Rows from earlier releases have no `suspendedAt`.
 *
 * @throws {CorruptRow}
 */
export function decodeAccount(entry: Entry): Account {
  const account = decodeJson<Account>(entry);
  return { ...account, suspendedAt: account.suspendedAt ?? null };
}

/** Accounts, as holders of limits. Their credentials are hashes of API keys. */
export const ACCOUNTS: Holders<Account> = {
  key: accountKey,
  decode: (_id, row) => row ? decodeAccount(row) : undefined,
  isOpenedBy: (account, hash, now) => account.suspendedAt === null && hasKey(account, hash, now),
};

/** Key of an account's row. */
export function accountKey(id: string): Deno.KvKey {
  return ["accounts", id];
}

/** Key of the row of an account that signed up. It is removed after 30 days, with the account if nobody used it. */
export function signUpKey(createdAt: number, id: string): Deno.KvKey {
  return [SIGN_UPS, createdAt, id];
}

/** Key of the row with the ID of the account that has a reference. 1.0.0 does not delete it with the account. */
export function referenceKey(reference: string): Deno.KvKey {
  return ["account_references", reference];
}

/** Key of the row with an API key's account ID. */
export function apiKeyKey(hash: string): Deno.KvKey {
  return ["api_keys", hash];
}

/** The error for an id that no account has. */
export const ACCOUNT_NOT_FOUND: ErrorKind = {
  code: "account_not_found",
  status: 404,
  means: "No account has this id, or the account is closed.",
  todo: "List the accounts to find the right id.",
};
/** The error for this id. `kind` says which accounts could have it. */
export function accountNotFound(id: string, kind: "" | "open " = ""): ApiError {
  return new ApiError(
    ACCOUNT_NOT_FOUND,
    `There is no ${kind}account with the id ${shownName(id)}.`,
  );
}
/** The error for the removal of an open account. */
export const ACCOUNT_OPEN: ErrorKind = {
  code: "account_open",
  status: 409,
  means: "The account is open, or was closed less than a minute ago.",
  todo: "Close the account first. Then try again after Retry-After.",
};
/** Requires that an account was closed a minute before `now`, so that its last requests have ended. @throws {ApiError} */
export function requireClosed({ id, closedAt }: Account, now: number): void {
  if (closedAt === null) throw new ApiError(ACCOUNT_OPEN, `Account ${id} is open; close it first.`);
  const seconds = Math.ceil((closedAt + MINUTE - now) / SECOND);
  if (seconds <= 0) return;
  const message = `Account ${id} was closed just now, and requests of it may still be under way.`;
  throw new ApiError(ACCOUNT_OPEN, message, { "retry-after": `${seconds}` });
}

/** The error for a reference that another account has. */
export const ACCOUNT_EXISTS: ErrorKind = {
  code: "account_exists",
  status: 409,
  means: "An account has this reference. Its id is `accountId`.",
  todo: "Use that account. If its key is lost, give it a new one.",
  texts: { accountId: "With `account_exists`: the id of the account" },
};

/** The error for another reference of an account that has one. */
export const REFERENCE_SET: ErrorKind = {
  code: "reference_set",
  status: 409,
  means: "The account has a reference, which never changes.",
  todo: "Use the reference that the account has.",
};

/** Another account has this reference. */
export class AccountExists extends ApiError {
  readonly accountId: string;

  constructor(accountId: string) {
    super(ACCOUNT_EXISTS, `Account ${accountId} has this reference.`, {}, { accountId });
    this.accountId = accountId;
  }
}

/** Counts a rotation at `now`. @throws {ApiError} `rotation_limit` */
export function countRotation(before: HourCount | undefined, now: number): HourCount {
  return countIn(ROTATIONS, before, now);
}

/** Counts the addition of a key at `now`. @throws {ApiError} `key_additions_limit` */
export function countAddition(before: HourCount | undefined, now: number): HourCount {
  return countIn(ADDITIONS, before, now);
}

/** Counts a change. If a clock that is ahead has already begun the next hour, that hour continues. */
function countIn(limit: OwnLimit, before: HourCount | undefined, now: number): HourCount {
  const hour = Math.floor(now / HOUR);
  const continues = before?.hour === hour || before?.hour === hour + 1;
  const current = before && continues ? before : { hour, count: 0 };
  if (current.count >= limit.count) throw usedUp(limit, (current.hour + 1) * HOUR, now);
  return { ...current, count: current.count + 1 };
}
