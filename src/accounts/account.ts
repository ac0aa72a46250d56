import { BIDI_CONTROLS, CONTROLS, nameText } from "../api/name.ts";
import type { Schema } from "../api/schema.ts";
import { ApiError } from "../http/error.ts";
import { decodeJson, type Entry } from "../kv/row.ts";
import type { Environment } from "./api_key.ts";

/** Requests allowed in each window. */
export interface Limits {
  readonly minute: number;
  readonly day: number;
}

/** The plans. */
export const PLANS = ["free", "pro", "business", "enterprise"] as const;

/** A plan's name. */
export type Plan = typeof PLANS[number];

/** The limits of every plan that has fixed ones; Enterprise limits are agreed with each account. */
export const PLAN_LIMITS: Readonly<Record<Exclude<Plan, "enterprise">, Limits>> = {
  free: { minute: 60, day: 1_000 },
  pro: { minute: 300, day: 10_000 },
  business: { minute: 1_000, day: 100_000 },
};

/** Whether the text names a plan. */
export function isPlan(text: string): text is Plan {
  return PLANS.some((plan) => plan === text);
}

/** How often a client has rotated the key of its account in an hour of the UTC clock. */
export interface Rotations {
  /** The number of the hour, from the epoch on. */
  readonly hour: number;
  readonly count: number;
}

/** Most rotations in an hour: after each, every process reads the accounts in use anew. */
export const MAX_ROTATIONS = 10;

/**
 * Who calls: a name, a plan, and one API key, which can be rotated. What has been used, strikes and bans are the
 * account's, so no rotation gives a second allowance.
 */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly environment: Environment;
  readonly plan: Plan;
  readonly limits: Limits;
  /** Whether the account was made by `POST /v1/accounts`, and not by an operator. */
  readonly signedUp: boolean;
  /** Ms since the epoch, like all times here. */
  readonly createdAt: number;
  /** Since when an operator has its requests refused; its keys stay. */
  readonly suspendedAt: number | null;
  readonly closedAt: number | null;
  /** SHA-256 of the API key, in hex. */
  readonly keyHash: string;
  /** The key before, for as long as it stays valid. */
  readonly previousKey: { readonly hash: string; readonly expiresAt: number } | null;
  /** Left out before the first. */
  readonly rotations?: Rotations;
}

/** Most characters of the name of an account. */
export const MAX_NAME_LENGTH = 100;

/** What the name of an account has to be where one is sent, because operators see it; rows may hold others. */
export const ACCOUNT_NAME: Schema<string> = nameText(
  MAX_NAME_LENGTH,
  [CONTROLS, BIDI_CONTROLS],
  "The account's name",
);

/** An account, and its new key: the only time that it is known. */
export interface Issued {
  readonly account: Account;
  readonly apiKey: string;
}

/** The row whose version changes whenever an account is changed or removed, but not with its requests. */
export const ACCOUNTS_VERSION: Deno.KvKey = ["versions", "access"];

/** Whether the key with this hash opens the account at that time, suspended or not. */
export function isOpenedBy({ closedAt, keyHash, previousKey }: Account, hash: string, now: number): boolean {
  if (closedAt !== null) return false;
  return hash === keyHash || (hash === previousKey?.hash && now < previousKey.expiresAt);
}

/** Hashes of its keys: the latest, and the one before, if any. */
export function keyHashesOf({ keyHash, previousKey }: Account): string[] {
  return previousKey ? [keyHash, previousKey.hash] : [keyHash];
}

/** Until when the key before opens the account, as ISO 8601; null where it no longer does at `now`. */
export function previousKeyExpiry(account: Account, now: number): string | null {
  const { previousKey } = account;
  return previousKey && isOpenedBy(account, previousKey.hash, now)
    ? new Date(previousKey.expiresAt).toISOString()
    : null;
}

/**
 * The account that a row tells of; one that was stored before accounts could be suspended is not.
 *
 * @throws {CorruptRow}
 */
export function decodeAccount(entry: Entry): Account {
  const account = decodeJson<Account>(entry);
  return { ...account, suspendedAt: account.suspendedAt ?? null };
}

/** Key of the row of an account. */
export function accountKey(id: string): Deno.KvKey {
  return ["accounts", id];
}

/** Key of the row that tells whose a key is, until that is replaced, or its account removed. */
export function apiKeyKey(hash: string): Deno.KvKey {
  return ["api_keys", hash];
}

const HOUR = 3_600_000;

/**
 * The count with one rotation more at `now`, ms since the epoch. An hour that began by a clock slightly ahead goes on.
 *
 * @throws {ApiError} `rotation_limit`.
 */
export function countRotation(before: Rotations | undefined, now: number): Rotations {
  const hour = Math.floor(now / HOUR);
  const goesOn = before?.hour === hour || before?.hour === hour + 1;
  const current = before && goesOn ? before : { hour, count: 0 };
  if (current.count >= MAX_ROTATIONS) throw rotationLimit((current.hour + 1) * HOUR - now);
  return { ...current, count: current.count + 1 };
}

function rotationLimit(ms: number): ApiError {
  const seconds = Math.ceil(ms / 1_000);
  const message =
    `An account's key can be rotated at most ${MAX_ROTATIONS} times in an hour. Try again in ${seconds} s.`;
  return new ApiError("rotation_limit", message, { "retry-after": `${seconds}` });
}
