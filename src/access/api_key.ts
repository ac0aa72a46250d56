import type { Limits, Plan } from "./plans.ts";
import type { Environment } from "./secret.ts";
import type { Usage } from "./usage.ts";

/** One secret of a key. */
export interface Secret {
  /** SHA-256 in hex. */
  readonly hash: string;
  /** When it stops being valid, ms since the epoch; absent while it is the current one. */
  readonly expiresAt?: number;
}

/**
 * A key lineage: who holds it and what it may do. Rotation changes its secrets only, so neither quota nor
 * ban is escaped by it.
 *
 * What it has used is a row of its own, which is the key's lock: whoever changes the key writes its usage
 * row in the same commit, so an admission that checks the usage row has checked both, and sees the change
 * in every process at the very next request.
 */
export interface ApiKey {
  readonly id: string;
  readonly account: string;
  readonly environment: Environment;
  readonly plan: Plan;
  readonly limits: Limits;
  readonly createdAt: number;
  readonly revokedAt?: number;
  readonly secrets: readonly Secret[];
}

/** A key with what it has used. */
export interface KeyState extends ApiKey {
  readonly usage: Usage;
}

/** Whether the secret opens the key at that time (ms). */
export function isValid(key: ApiKey, hash: string, now: number): boolean {
  if (key.revokedAt !== undefined) return false;
  return key.secrets.some((secret) => secret.hash === hash && (secret.expiresAt ?? Infinity) > now);
}
