import { type Account, previousKeyExpiry } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_store.ts";
import { dayEnd, hasCalled, minuteEnd, roll, type Usage } from "../accounts/usage.ts";
import { type Columns, printable } from "./table.ts";

/** An account as it is shown at `now` (ms since the epoch). */
export interface Shown extends AccountState {
  readonly now: number;
}

/** What a list tells of an account. */
export const ACCOUNT_COLUMNS: Columns<Shown> = {
  id: ({ account }) => account.id,
  name: ({ account }) => account.name,
  environment: ({ account }) => account.environment,
  plan: ({ account }) => account.plan,
  perMinute: ({ account }) => account.limits.minute,
  perDay: ({ account }) => account.limits.day,
  state: stateOf,
  usedToday: ({ usage, now }) => roll(usage, now).usedToday,
  lastUsed: ({ usage }) => lastUsed(usage),
};

/** Everything that an operator may know of an account. */
export function detailsOf(shown: Shown): object {
  const { account, now } = shown;
  const { id, name, environment, plan, limits, signedUp, createdAt, suspendedAt, closedAt } = account;
  const usage = roll(shown.usage, now);
  return {
    id,
    name,
    environment,
    plan,
    state: stateOf(shown),
    limits,
    usage: {
      minute: { used: usage.used, start: iso(usage.minute), reset: iso(minuteEnd(usage)) },
      day: { used: usage.usedToday, reset: iso(dayEnd(usage)) },
      refusedThisMinute: usage.strikes,
    },
    bannedUntil: usage.bannedUntil > now ? iso(usage.bannedUntil) : null,
    bans: usage.bans,
    signedUp,
    createdAt: iso(createdAt),
    suspendedAt: suspendedAt === null ? null : iso(suspendedAt),
    closedAt: closedAt === null ? null : iso(closedAt),
    lastUsed: lastUsed(shown.usage),
    previousKeyExpiresAt: previousKeyExpiry(account, now),
  };
}

/** An account in one line. */
export function describe({ id, name, environment, plan, limits: { minute, day } }: Account): string {
  const limits = `${minute} requests a minute, ${day} a day`;
  return `${id}, ${printable(name)}, ${environment}, plan ${plan}, ${limits}.`;
}

function stateOf({ account, usage, now }: Shown): string {
  if (account.closedAt !== null) return "closed";
  if (account.suspendedAt !== null) return "suspended";
  return usage.bannedUntil > now ? "banned" : "active";
}

/** The day of the last request that was admitted; null before the first. */
function lastUsed(usage: Usage): string | null {
  return hasCalled(usage) ? iso(usage.minute).slice(0, 10) : null;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
