import { ApiError, type ErrorKind } from "../web/mod.ts";
import type { KeyScope } from "../service/mod.ts";

/** A key that was added to an account, beside its first one. */
export interface AddedKey extends KeyScope {
  readonly id: string;
  /** What it is for. */
  readonly label: string;
  /** SHA-256 of the API key, in hex. */
  readonly hash: string;
  /** In ms since the epoch, like all times here. */
  readonly createdAt: number;
  /** Missing if it does not expire. */
  readonly expiresAt?: number;
}

/** The keys of an account. */
export interface OwnKeys {
  /** SHA-256 of its first key, in hex. */
  readonly keyHash: string;
  /** The predecessor of the first key, which is valid until `expiresAt`. */
  readonly previousKey: { readonly hash: string; readonly expiresAt: number } | null;
  /** Missing until a key is added. */
  readonly addedKeys?: {
    /**
     * Hashes of the first key and its predecessor when these keys were last written. The keys are valid while one of
     * them still is the first key or its predecessor. So a rotation by a release that does not know them ends them, if
     * it leaves no predecessor.
     */
    readonly of: readonly string[];
    readonly keys: readonly AddedKey[];
  };
}

/** Maximum number of keys that are added to an account. */
export const MAX_ADDED_KEYS = 20;

/** The error for a key too many. */
export const TOO_MANY_KEYS: ErrorKind = {
  code: "too_many_keys",
  status: 409,
  means: `The account has ${MAX_ADDED_KEYS} added keys.`,
  todo: "Revoke one first.",
};

/** The error for a label that another valid key of the account has. */
export const KEY_EXISTS: ErrorKind = {
  code: "key_exists",
  status: 409,
  means: "A valid key of the account has this label. Its id is `keyId`.",
  todo: "Use another label. If the response that had the key was lost, revoke that key, and add it again.",
  texts: { keyId: "With `key_exists`: the id of the key" },
};

/** The error for an id that no added key of the account has. */
export const KEY_NOT_FOUND: ErrorKind = {
  code: "key_not_found",
  status: 404,
  means: "No added key of the account has this id.",
  todo: "List the keys to find the right id.",
};

/** The error for the id of a key. */
export function keyNotFound(): ApiError {
  return new ApiError(KEY_NOT_FOUND, "No added key of the account has this id.");
}

/** Whether this is the account's first key or, until its grace period ends, the predecessor. */
export function isFirstKey({ keyHash, previousKey }: OwnKeys, hash: string, now: number): boolean {
  return hash === keyHash || (hash === previousKey?.hash && now < previousKey.expiresAt);
}

/** The keys that were added to an account and have not been revoked, also those that have expired. */
export function addedKeysOf(account: OwnKeys): readonly AddedKey[] {
  const { of = [], keys = [] } = account.addedKeys ?? {};
  return firstHashesOf(account).some((hash) => of.includes(hash)) ? keys : [];
}

/** Those of an account's added keys that are valid at `now`. */
export function validKeysOf(account: OwnKeys, now: number): readonly AddedKey[] {
  return addedKeysOf(account).filter(({ expiresAt = Infinity }) => now < expiresAt);
}

/** An account with these added keys in place of its own. */
export function withAddedKeys<Of extends OwnKeys>(account: Of, keys: readonly AddedKey[]): Of {
  return { ...account, addedKeys: { ...account.addedKeys, of: firstHashesOf(account), keys } };
}

/**
 * The added keys with a further one. Those that have expired by `now` are dropped.
 *
 * @throws {ApiError} `key_exists` or `too_many_keys`
 */
export function withKey(account: OwnKeys, added: AddedKey, now: number): readonly AddedKey[] {
  const valid = validKeysOf(account, now);
  const same = valid.find(({ label }) => label === added.label);
  if (same !== undefined) {
    throw new ApiError(KEY_EXISTS, `The key ${same.id} has this label.`, {}, { keyId: same.id });
  }
  if (valid.length >= MAX_ADDED_KEYS) {
    throw new ApiError(TOO_MANY_KEYS, `The account has ${MAX_ADDED_KEYS} added keys. Revoke one first.`);
  }
  return [...valid, added];
}

/** The added keys without the one that has this id. @throws {ApiError} `key_not_found` */
export function withoutKey(account: OwnKeys, id: string): readonly AddedKey[] {
  const keys = addedKeysOf(account);
  const left = keys.filter((key) => key.id !== id);
  if (left.length === keys.length) throw keyNotFound();
  return left;
}

/** Hashes of all keys in the account's row, valid or not. */
export function keyHashesOf(account: OwnKeys): readonly string[] {
  return [...firstHashesOf(account), ...account.addedKeys?.keys.map(({ hash }) => hash) ?? []];
}

/** Hashes of the first key and, even if its grace period has ended, its predecessor. */
function firstHashesOf({ keyHash, previousKey }: OwnKeys): readonly string[] {
  return previousKey ? [keyHash, previousKey.hash] : [keyHash];
}
