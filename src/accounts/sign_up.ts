import { DAY, HOUR } from "../base/mod.ts";
import { decodeJson, encodeJson, type Entry, type Store, type Transaction } from "../engine/mod.ts";
import { ApiError, type ErrorKind, operation, valueResponse, WAIT } from "../web/mod.ts";
import { named, object, type Parsed } from "../web/schema.ts";
import { hasCalled } from "../limits/mod.ts";
import {
  ACCESS,
  type Call,
  limitHeaders,
  type Operation,
  type OwnLimit,
  type Plans,
  usedUp,
} from "../service/mod.ts";
import { type Account, ACCOUNT_NAME, type Issued, SIGN_UPS, signUpKey } from "./account.ts";
import { ACCOUNT_TAG } from "./account_operations.ts";
import type { AccountState, AccountStore, NewAccount } from "./account_store.ts";
import { type ClientSchemas, NO_IDEMPOTENCY_KEY } from "./account_view.ts";
import { planOf } from "./plans.ts";

const UNUSED_FOR = 30 * DAY;
const SWEEP_PAGE = 20;
const BY_HOUR = "sign_ups_by_hour";
const BY_DAY = "sign_ups_by_day";

const SIGN_UP_CLOSED: ErrorKind = {
  code: "sign_up_closed",
  status: 403,
  means: "Sign-up is closed.",
  todo: "Ask the operator of the service for a key.",
};
const SIGN_UP_LIMIT: ErrorKind = {
  code: "sign_up_limit",
  status: 429,
  means: "Too many accounts were created.",
  todo: WAIT,
};

/** The limit on new accounts of one address. */
export const HOURLY: Required<OwnLimit> = {
  of: "address",
  name: "hour",
  count: 5,
  ms: HOUR,
  kind: SIGN_UP_LIMIT,
  reason: (count) => `At most ${count} accounts can be created in an hour from one address.`,
};
/** The limit on new accounts of all addresses together. */
export const DAILY: Required<OwnLimit> = {
  of: "service",
  name: "day",
  count: 1_000,
  ms: DAY,
  kind: SIGN_UP_LIMIT,
  reason: (count) => `At most ${count} accounts can be created in a day.`,
};

const CREATION = named("AccountCreation", object({ name: ACCOUNT_NAME }, { examples: [{ name: "me" }] }));

/** The operation by which clients create accounts, if sign-up is open. */
export function signUpOperation(
  accounts: AccountStore,
  { plans, schemas, isOpen }: {
    readonly plans: Plans;
    readonly schemas: ClientSchemas;
    readonly isOpen: boolean;
  },
): Operation {
  return operation({
    id: "createAccount",
    method: "POST",
    path: "/v1/accounts",
    access: ACCESS.address,
    tag: ACCOUNT_TAG,
    summary: "Sign up",
    description:
      `Creates an account on the ${plans.signUp} plan and returns its API key, which is shown only once. An address ` +
      `can create ${HOURLY.count} accounts an hour, and all addresses together ${
        DAILY.count.toLocaleString("en")
      } a day. The limit ` +
      "headers describe the hourly limit, or the limit that refused the request. An Idempotency-Key is rejected.",
    isExtension: true,
    headers: NO_IDEMPOTENCY_KEY,
    body: CREATION,
    answers: {
      201: {
        description: "The account and its API key",
        body: schemas.signedUpAccount,
        headers: ["Cache-Control"],
      },
    },
    errors: [SIGN_UP_CLOSED, SIGN_UP_LIMIT],
    before() {
      if (isOpen) return;
      const message = "Sign-up is closed. Ask the operator of the service for a key.";
      throw new ApiError(SIGN_UP_CLOSED, message);
    },
  }, async ({ body: { name } }, call: Call) => {
    const { issued, left } = await call.transact(signingUp(accounts, { name, ...planOf(plans, {}) }, call));
    const { account: { id, plan }, apiKey } = issued;
    const headers = limitHeaders(HOURLY, { left, reset: endOf(HOURLY, call.now), now: call.now });
    return valueResponse<Parsed<ClientSchemas["signedUpAccount"]>>({ id, name, plan, apiKey }, {
      status: 201,
      headers,
    });
  });
}

/** Creates an account. `left` is how many more the address can create in this hour. */
function signingUp(
  accounts: AccountStore,
  chosen: Pick<NewAccount, "name" | "plan" | "limits">,
  { now, address }: Call,
): Transaction<{ issued: Issued; left: number }> {
  const hourKey = [BY_HOUR, Math.floor(now / HOUR), address()];
  const dayKey = [BY_DAY, Math.floor(now / DAY)];
  const creation = accounts.creating({ ...chosen, signedUp: true }, now);
  return {
    ...creation,
    reads: [hourKey, dayKey],
    decide(rows, write, decidedAt) {
      const inHour = countIn(rows.get(hourKey));
      const inDay = countIn(rows.get(dayKey));
      if (inHour >= HOURLY.count) throw usedUp(HOURLY, endOf(HOURLY, now), now);
      if (inDay >= DAILY.count) throw usedUp(DAILY, endOf(DAILY, now), now);
      const issued = creation.decide(rows, write, decidedAt);
      write.set(hourKey, encodeJson(inHour + 1));
      write.set(dayKey, encodeJson(inDay + 1));
      write.set(signUpKey(now, issued.account.id), encodeJson({}));
      return { issued, left: HOURLY.count - inHour - 1 };
    },
  };
}

/**
 * Removes some accounts that signed up at least 30 days ago and never sent a request. Accounts that an operator has
 * suspended, moved to another plan, given a reference or added items for stay. `remove` removes an account if the condition allows it, and
 * if the row of its sign-up is still there. Resolves to true if there may be more.
 */
export async function sweepSignUps(
  store: Store,
  remove: (
    id: string,
    condition: (state: AccountState) => boolean,
    signUp: Deno.KvKey,
  ) => Promise<unknown>,
  { signUp }: Plans,
  now: number,
): Promise<boolean> {
  const range = { start: [SIGN_UPS], end: [SIGN_UPS, now - UNUSED_FOR] };
  const entries = await store.list(range, SWEEP_PAGE);
  for (const { key } of entries) {
    await remove(
      String(key.at(-1)),
      ({ holder, usage }) => isUntouched(holder, signUp) && !hasCalled(usage),
      key,
    );
    await store.remove([key]);
  }
  return entries.length === SWEEP_PAGE;
}

/** Whether no operator has done anything with an account that signed up on this plan. */
function isUntouched({ plan, suspendedAt, reference }: Account, signUp: string): boolean {
  return plan === signUp && suspendedAt === null && reference === undefined;
}

/**
 * Removes some counts for past hours and days. The latest ones are kept, because a process whose clock is behind still
 * uses them. Resolves to true if there may be more.
 */
export async function sweepCounts(store: Store, now: number): Promise<boolean> {
  const hours = await store.removeAll({ start: [BY_HOUR], end: [BY_HOUR, Math.floor(now / HOUR) - 1] });
  const days = await store.removeAll({ start: [BY_DAY], end: [BY_DAY, Math.floor(now / DAY) - 1] });
  return hours || days;
}

/** The number of new accounts in a row; 0 if there is no row yet. */
function countIn(row: Entry | null): number {
  return row ? decodeJson<number>(row) : 0;
}

/** When the current window ends. */
function endOf({ ms }: Required<OwnLimit>, now: number): number {
  return now - now % ms + ms;
}
