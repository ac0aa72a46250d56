import { bearerToken, invalidApiKey } from "../access/bearer.ts";
import type { Gate } from "../access/gate.ts";
import { previousKeyExpiry } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_state.ts";
import type { AccountStore } from "../accounts/account_store.ts";
import { hashApiKey } from "../accounts/api_key.ts";
import { DAYS_KEPT, readDayTotals } from "../accounts/day_totals.ts";
import { dayEnd, minuteEnd, roll } from "../accounts/usage.ts";
import { ApiError } from "../http/error.ts";
import { createResponse, jsonResponse, NO_STORE } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
import { integerField, integerParameter, readQuery } from "../http/validation.ts";
import type { Store } from "../kv/store.ts";

const PATH = "/v1/account";
const GRACE_SECONDS = { min: 0, max: 7 * 86_400 };
const ROTATION_DEFAULTS = { graceSeconds: 60 };
const DAYS = { min: 1, max: DAYS_KEPT, otherwise: 30 };
const DAY = 86_400_000;

/** What an account can see and do about itself, by its key. */
export function accountRoutes(store: Store, accounts: AccountStore, gate: Gate): Route[] {
  async function getAccount(_request: Request, call: Call): Promise<Response> {
    return noStore(describe(await find(call), call.now));
  }

  async function rotateKey(request: Request, call: Call): Promise<Response> {
    refuseIdempotencyKey(request);
    const { object } = await call.readBody({ mayBeEmpty: true });
    const graceSeconds = integerField({ ...ROTATION_DEFAULTS, ...object }, "graceSeconds", GRACE_SECONDS);
    const key = bearerToken(request.headers.get("authorization")) ?? "";
    const grace = graceSeconds * 1_000;
    const issued = await accounts.rotate(call.accountId, grace, call.now, hashApiKey(key), call.checks);
    if (issued === null) throw invalidApiKey();
    const previousKeyExpiresAt = previousKeyExpiry(issued.account, call.now);
    return noStore({ apiKey: issued.apiKey, previousKeyExpiresAt }, 201);
  }

  async function getUsage(_request: Request, call: Call): Promise<Response> {
    const days = integerParameter(readQuery(call.query, ["days"]), "days", DAYS);
    const totals = await readDayTotals(store, await find(call), days, call.now);
    return noStore(totals.map(({ admitted, refused }, ago) => ({
      date: iso(call.now - ago * DAY).slice(0, 10),
      admitted,
      refused,
    })));
  }

  async function closeAccount(_request: Request, call: Call): Promise<Response> {
    const closed = await accounts.change(call.accountId, { closedAt: call.now }, call.checks);
    if (closed === null) throw invalidApiKey();
    return createResponse(null, { status: 204 });
  }

  async function find({ accountId }: Call): Promise<AccountState> {
    const state = await accounts.find(accountId);
    if (state === null) throw invalidApiKey();
    return { ...state, usage: gate.usedBy(state) };
  }

  return [
    { method: "GET", path: PATH, access: "key", handler: getAccount },
    { method: "DELETE", path: PATH, access: "key", handler: closeAccount },
    { method: "POST", path: `${PATH}/key`, access: "key", handler: rotateKey },
    { method: "GET", path: `${PATH}/usage`, access: "key", handler: getUsage },
  ];
}

/**
 * Refuses a request that issues a key to be repeated: replies are kept, and keys are not.
 *
 * @throws {ApiError} `invalid_request`.
 */
export function refuseIdempotencyKey({ headers }: Request): void {
  if (headers.has("idempotency-key")) {
    throw new ApiError(
      "invalid_request",
      "This operation takes no Idempotency-Key: a key is shown only once.",
    );
  }
}

function describe({ account, usage }: AccountState, now: number): object {
  const { id, name, plan, limits, createdAt } = account;
  const current = roll(usage, now);
  return {
    id,
    name,
    plan,
    limits,
    usage: {
      minute: { used: current.used, reset: iso(minuteEnd(current)) },
      day: { used: current.usedToday, reset: iso(dayEnd(current)) },
    },
    bannedUntil: current.bannedUntil > now ? iso(current.bannedUntil) : null,
    createdAt: iso(createdAt),
    previousKeyExpiresAt: previousKeyExpiry(account, now),
  };
}

function noStore(value: object, status = 200): Response {
  return jsonResponse(JSON.stringify(value), { status, headers: NO_STORE });
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
