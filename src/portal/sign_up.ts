import type { AccountStore } from "../access/account_store.ts";
import type { Environment } from "../access/api_key.ts";
import type { Issued } from "../access/issue.ts";
import { PLAN_LIMITS } from "../access/plans.ts";
import { ApiError } from "../http/error.ts";
import { jsonResponse, NO_STORE } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
import { stringField } from "../http/validation.ts";
import { AGAIN, retried } from "../kv/deadline.ts";
import { decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { refuseIdempotencyKey } from "./account_routes.ts";

/** What signing up stands on. */
export interface SignUpOptions {
  readonly store: Store;
  readonly accounts: AccountStore;
  readonly environment: Environment;
  /** Whether anybody may make an account. */
  readonly isOpen: boolean;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PER_HOUR = 5;
const PER_DAY = 1_000;
const UNUSED_FOR = 30 * DAY;
const SWEEP_PAGE = 20;
const SIGN_UPS = "sign_ups";
const BY_HOUR = "sign_ups_by_hour";
const BY_DAY = "sign_ups_by_day";

/** How many sign-ups an address has left in the hour that ends at `reset` (ms since the epoch). */
interface Left {
  readonly remaining: number;
  readonly reset: number;
}

/** `createAccount`: anybody makes an account, a few an hour from one address and a thousand a day in all. */
export function signUpRoute({ store, accounts, environment, isOpen }: SignUpOptions): Route {
  async function createAccount(request: Request, call: Call): Promise<Response> {
    if (!isOpen) throw new ApiError("sign_up_closed", "Accounts are made by the operator of this service.");
    refuseIdempotencyKey(request);
    const { object } = await call.readBody();
    const name = stringField(object, "name", 100);
    if (/\p{Cc}/u.test(name)) throw new ApiError("invalid_request", "name must have no control characters.");
    const { issued, left } = await retried(() => signUp(name, call.address(), call.now));
    const { id, plan } = issued.account;
    return jsonResponse(JSON.stringify({ id, name, plan, apiKey: issued.apiKey }), {
      status: 201,
      headers: { ...NO_STORE, ...limitHeaders(left, call.now) },
    });
  }

  async function signUp(
    name: string,
    address: string,
    now: number,
  ): Promise<{ issued: Issued; left: Left } | typeof AGAIN> {
    const hour = { key: [BY_HOUR, Math.floor(now / HOUR), address], reset: now - now % HOUR + HOUR };
    const day = { key: [BY_DAY, Math.floor(now / DAY)], reset: now - now % DAY + DAY };
    const entries = await store.getMany([hour.key, day.key]);
    const [inHour = 0, inDay = 0] = entries.map(countIn);
    if (inHour >= PER_HOUR) throw limited({ remaining: 0, reset: hour.reset }, hour.reset, now);
    if (inDay >= PER_DAY) throw limited({ remaining: PER_HOUR - inHour, reset: hour.reset }, day.reset, now);
    const issued = await accounts.create(
      { name, plan: "free", limits: PLAN_LIMITS.free, environment, signedUp: true },
      now,
      ({ id }) => ({
        checks: [hour, day].map(({ key }, index) => ({
          key,
          versionstamp: entries[index]?.versionstamp ?? null,
        })),
        sets: [
          [hour.key, encodeJson(inHour + 1)],
          [day.key, encodeJson(inDay + 1)],
          [[SIGN_UPS, now, id], encodeJson({})],
        ],
      }),
    );
    const left = { remaining: PER_HOUR - inHour - 1, reset: hour.reset };
    return issued ? { issued, left } : AGAIN;
  }

  return { method: "POST", path: "/v1/accounts", access: "address", handler: createAccount };
}

/** Removes some accounts that signed up 30 days ago and never called; resolves to whether there may be more. */
export async function sweepSignUps(store: Store, accounts: AccountStore, now: number): Promise<boolean> {
  const range = { start: [SIGN_UPS], end: [SIGN_UPS, now - UNUSED_FOR] };
  const entries = await store.list(range, SWEEP_PAGE);
  for (const { key } of entries) {
    await accounts.remove(String(key.at(-1)), ({ usage }) => usage.minute === 0);
    await store.remove([key]);
  }
  return entries.length === SWEEP_PAGE;
}

/** Removes some counts of hours and days that are over; resolves to whether there may be more. */
export async function sweepCounts(store: Store, now: number): Promise<boolean> {
  const hours = await store.removeAll({ start: [BY_HOUR], end: [BY_HOUR, Math.floor(now / HOUR)] });
  const days = await store.removeAll({ start: [BY_DAY], end: [BY_DAY, Math.floor(now / DAY)] });
  return hours || days;
}

function countIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : 0;
}

function limited(left: Left, until: number, now: number): ApiError {
  const seconds = Math.ceil((until - now) / 1_000);
  const what = left.remaining === 0
    ? `${PER_HOUR} accounts an hour from one address`
    : `${PER_DAY} accounts a day`;
  return new ApiError("sign_up_limit", `No more than ${what}. Try again in ${seconds} s.`, {
    "retry-after": `${seconds}`,
    ...limitHeaders(left, now),
  });
}

function limitHeaders({ remaining, reset }: Left, now: number): Record<string, string> {
  return {
    "x-ratelimit-limit": `${PER_HOUR}`,
    "x-ratelimit-remaining": `${remaining}`,
    "x-ratelimit-reset": `${Math.ceil(reset / 1_000)}`,
    "ratelimit-policy": `"hour";q=${PER_HOUR};w=3600`,
    "ratelimit": `"hour";r=${remaining};t=${Math.ceil((reset - now) / 1_000)}`,
  };
}
