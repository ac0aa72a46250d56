import type { Issued } from "../accounts/account.ts";
import type { AccountStore } from "../accounts/account_store.ts";
import { PLAN_LIMITS } from "../accounts/plans.ts";
import { hasCalled } from "../accounts/usage.ts";
import { ApiError } from "../http/error.ts";
import { jsonResponse, NO_STORE } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
import { stringField } from "../http/validation.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { decodeJson, encodeJson, type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { refuseIdempotencyKey } from "./account_routes.ts";

/** What signing up stands on. */
export interface SignUpOptions {
  readonly store: Store;
  readonly accounts: AccountStore;
  /** Whether anybody may make an account. */
  readonly isOpen: boolean;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const UNUSED_FOR = 30 * DAY;
const SWEEP_PAGE = 20;
const SIGN_UPS = "sign_ups";
const BY_HOUR = "sign_ups_by_hour";
const BY_DAY = "sign_ups_by_day";

/** How many accounts may be made in each hour or day of the UTC clock. */
interface Limit {
  readonly window: "hour" | "day";
  /** Length of the window. */
  readonly ms: number;
  readonly count: number;
  /** How the message goes on after the count. */
  readonly per: string;
}

const HOURLY: Limit = { window: "hour", ms: HOUR, count: 5, per: "an hour from one address" };
const DAILY: Limit = { window: "day", ms: DAY, count: 1_000, per: "a day" };

/** `createAccount`: anybody makes an account, a few an hour from one address and a thousand a day in all. */
export function signUpRoute({ store, accounts, isOpen }: SignUpOptions): Route {
  async function createAccount(request: Request, call: Call): Promise<Response> {
    if (!isOpen) throw new ApiError("sign_up_closed", "Accounts are made by the operator of this service.");
    refuseIdempotencyKey(request);
    const { object } = await call.readBody();
    const name = stringField(object, "name", 100);
    if (/\p{Cc}/u.test(name)) throw new ApiError("invalid_request", "name must have no control characters.");
    const { issued, left } = await retried(() => signUp(name, call));
    const { id, plan } = issued.account;
    return jsonResponse(JSON.stringify({ id, name, plan, apiKey: issued.apiKey }), {
      status: 201,
      headers: { ...NO_STORE, ...limitHeaders(HOURLY, left, call.now) },
    });
  }

  /** Makes an account; `left` is how many more the address may make in the hour. */
  async function signUp(
    name: string,
    { address, now, checks }: Call,
  ): Promise<{ issued: Issued; left: number } | typeof AGAIN> {
    const hourKey = [BY_HOUR, Math.floor(now / HOUR), address()];
    const dayKey = [BY_DAY, Math.floor(now / DAY)];
    const [hour = null, day = null] = await store.getMany([hourKey, dayKey]);
    const [inHour, inDay] = [countIn(hour), countIn(day)];
    if (inHour >= HOURLY.count) throw limited(HOURLY, now);
    if (inDay >= DAILY.count) throw limited(DAILY, now);
    const issued = await accounts.create(
      { name, plan: "free", limits: PLAN_LIMITS.free, signedUp: true },
      now,
      ({ id }) => ({
        checks: [
          { key: hourKey, versionstamp: versionstampOf(hour) },
          { key: dayKey, versionstamp: versionstampOf(day) },
        ],
        sets: [
          [hourKey, encodeJson(inHour + 1)],
          [dayKey, encodeJson(inDay + 1)],
          [[SIGN_UPS, now, id], encodeJson({})],
        ],
        mayBegin: checks,
      }),
    );
    return issued ? { issued, left: HOURLY.count - inHour - 1 } : AGAIN;
  }

  return { method: "POST", path: "/v1/accounts", access: "address", handler: createAccount };
}

/**
 * Removes some accounts that signed up 30 days ago and never called, but for those that an operator has moved to
 * another plan, or suspended; resolves to whether there may be more.
 */
export async function sweepSignUps(store: Store, accounts: AccountStore, now: number): Promise<boolean> {
  const range = { start: [SIGN_UPS], end: [SIGN_UPS, now - UNUSED_FOR] };
  const entries = await store.list(range, SWEEP_PAGE);
  for (const { key } of entries) {
    await accounts.remove(
      String(key.at(-1)),
      ({ account, usage }) => account.plan === "free" && account.suspendedAt === null && !hasCalled(usage),
    );
    await store.remove([key]);
  }
  return entries.length === SWEEP_PAGE;
}

/**
 * Removes some counts of hours and days that are over, but for the last of each, which go on where a clock is
 * behind; resolves to whether there may be more.
 */
export async function sweepCounts(store: Store, now: number): Promise<boolean> {
  const hours = await store.removeAll({ start: [BY_HOUR], end: [BY_HOUR, Math.floor(now / HOUR) - 1] });
  const days = await store.removeAll({ start: [BY_DAY], end: [BY_DAY, Math.floor(now / DAY) - 1] });
  return hours || days;
}

function countIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : 0;
}

function limited(limit: Limit, now: number): ApiError {
  const seconds = Math.ceil((limit.ms - now % limit.ms) / 1_000);
  const message = `No more than ${limit.count} accounts ${limit.per}. Try again in ${seconds} s.`;
  const headers = { "retry-after": `${seconds}`, ...limitHeaders(limit, 0, now) };
  return new ApiError("sign_up_limit", message, headers);
}

function limitHeaders({ window, ms, count }: Limit, left: number, now: number): Record<string, string> {
  const reset = now - now % ms + ms;
  return {
    "x-ratelimit-limit": `${count}`,
    "x-ratelimit-remaining": `${left}`,
    "x-ratelimit-reset": `${reset / 1_000}`,
    "ratelimit-policy": `"${window}";q=${count};w=${ms / 1_000}`,
    "ratelimit": `"${window}";r=${left};t=${Math.ceil((reset - now) / 1_000)}`,
  };
}
