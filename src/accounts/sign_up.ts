import { NO_IDEMPOTENCY_KEY } from "../api/headers.ts";
import { type Call, type Operation, operation } from "../api/operation.ts";
import { answer, named, object } from "../api/schema.ts";
import { ApiError } from "../http/error.ts";
import { jsonResponse, NO_STORE } from "../http/response.ts";
import { decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import type { Transaction } from "../store/transaction.ts";
import { ACCOUNT_NAME, type Issued, PLAN_LIMITS } from "./account.ts";
import type { AccountState, AccountStore } from "./account_store.ts";
import { ACCOUNT_FIELDS, EXAMPLES, SHOWN_KEY } from "./account_operations.ts";
import { hasCalled } from "./usage.ts";

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

/** How many may be made in an hour from one address. */
export const HOURLY: Limit = { window: "hour", ms: HOUR, count: 5, per: "in an hour from one address" };
/** How many may be made in a day in all. */
export const DAILY: Limit = { window: "day", ms: DAY, count: 1_000, per: "in a day" };

const NEW_ACCOUNT = named("NewAccount", object({ name: ACCOUNT_NAME }, { examples: [{ name: "me" }] }));
const SIGNED_UP_ACCOUNT = named(
  "SignedUpAccount",
  answer({ ...ACCOUNT_FIELDS, apiKey: SHOWN_KEY }, {
    examples: [{ ...EXAMPLES.account, apiKey: EXAMPLES.apiKey }],
  }),
);

/** Anybody makes an account: a few an hour from one address, and some a day in all. */
export function signUpOperation({ store, accounts, isOpen }: SignUpOptions): Operation {
  const createAccount = operation({
    id: "createAccount",
    method: "POST",
    path: "/v1/accounts",
    access: "address",
    tag: "Account",
    summary: "Sign up",
    description:
      "Creates an account on the Free plan and returns its API key, which is shown only once. An address can create " +
      `${HOURLY.count} accounts an hour, and all together can create ${
        DAILY.count.toLocaleString("en")
      } a day. The limit ` +
      "headers describe the hour, or the limit that refused the request. An Idempotency-Key is refused, because keys " +
      "are not stored.",
    isExtension: true,
    headers: { "Idempotency-Key": NO_IDEMPOTENCY_KEY },
    body: NEW_ACCOUNT,
    answers: {
      201: {
        description: "The account and its API key",
        body: SIGNED_UP_ACCOUNT,
        headers: ["Cache-Control"],
      },
    },
    errors: ["sign_up_closed", "sign_up_limit"],
    async before(call) {
      if (!isOpen) {
        throw new ApiError("sign_up_closed", "Sign-up is closed. Ask the operator of the service for a key.");
      }
      const keys = countKeys(call);
      const [hour = null, day = null] = await store.getMany(keys);
      requireRoom(hour, day, call.now);
    },
  }, async ({ body: { name } }, call) => {
    const { issued, left } = await call.transact(signingUp(name, call));
    const { id, plan } = issued.account;
    return jsonResponse(JSON.stringify({ id, name, plan, apiKey: issued.apiKey }), {
      status: 201,
      headers: { ...NO_STORE, ...limitHeaders(HOURLY, left, call.now) },
    });
  });

  /** Makes an account; `left` is how many more the address may make in the hour. */
  function signingUp(name: string, call: Call): Transaction<{ issued: Issued; left: number }> {
    const { now } = call;
    const [hourKey, dayKey] = countKeys(call);
    const creation = accounts.creating(
      { name, plan: "free", limits: PLAN_LIMITS.free, signedUp: true },
      now,
    );
    return {
      ...creation,
      reads: [hourKey, dayKey],
      decide(rows, write, decidedAt) {
        const { inHour, inDay } = requireRoom(rows.get(hourKey), rows.get(dayKey), now);
        const issued = creation.decide(rows, write, decidedAt);
        write.set(hourKey, encodeJson(inHour + 1));
        write.set(dayKey, encodeJson(inDay + 1));
        write.set([SIGN_UPS, now, issued.account.id], encodeJson({}));
        return { issued, left: HOURLY.count - inHour - 1 };
      },
    };
  }

  return createAccount;
}

/**
 * Removes some accounts that signed up 30 days ago and never called, but for those that an operator has moved to
 * another plan, or suspended; resolves to whether there may be more. `remove` removes an account if the condition allows
 * it.
 */
export async function sweepSignUps(
  store: Store,
  remove: (id: string, condition: (state: AccountState) => boolean) => Promise<unknown>,
  now: number,
): Promise<boolean> {
  const range = { start: [SIGN_UPS], end: [SIGN_UPS, now - UNUSED_FOR] };
  const entries = await store.list(range, SWEEP_PAGE);
  for (const { key } of entries) {
    await remove(
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

/** Keys of how many accounts were made in the hour from the address, and in the day. */
function countKeys({ address, now }: Call): [hour: Deno.KvKey, day: Deno.KvKey] {
  return [[BY_HOUR, Math.floor(now / HOUR), address()], [BY_DAY, Math.floor(now / DAY)]];
}

/**
 * How many accounts were made, as these rows tell.
 *
 * @throws {ApiError} `sign_up_limit` if these are as many as may be made.
 */
function requireRoom(hour: Entry | null, day: Entry | null, now: number): { inHour: number; inDay: number } {
  const [inHour = 0, inDay = 0] = [hour, day].map((entry) => entry ? decodeJson<number>(entry) : 0);
  if (inHour >= HOURLY.count) throw limited(HOURLY, now);
  if (inDay >= DAILY.count) throw limited(DAILY, now);
  return { inHour, inDay };
}

function limited(limit: Limit, now: number): ApiError {
  const seconds = Math.ceil((limit.ms - now % limit.ms) / 1_000);
  const message = `At most ${limit.count} accounts can be created ${limit.per}. Try again in ${seconds} s.`;
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
