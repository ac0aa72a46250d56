import {
  answer,
  bearerToken,
  COUNT,
  createResponse,
  date,
  integer,
  jsonResponse,
  list,
  named,
  NO_IDEMPOTENCY_KEY,
  NO_STORE,
  nullable,
  object,
  oneOf,
  operation,
  optional,
  type Parsed,
  type Schema,
  stringifyJson,
  type Tag,
  text,
  timestamp,
} from "../web/mod.ts";
import { dayEnd, DAYS_KEPT, minuteEnd, roll, type Usage } from "../limits/mod.ts";
import { ACCESS, type Call, type Operation } from "../resource/mod.ts";
import { MAX_ROTATIONS, PLAN_LIMITS, PLANS, previousKeyExpiry, ROTATION_LIMIT } from "./account.ts";
import type { AccountState, AccountStore } from "./account_store.ts";
import { environmentOf, hashApiKey, invalidApiKey } from "./api_key.ts";

/** Operations on the account of an API key. */
export const ACCOUNT_TAG: Tag = {
  name: "Account",
  description: "The account of an API key: its limits, usage and key",
};
const PATH = "/v1/account";
const MAX_GRACE_SECONDS = 7 * 86_400;
/** Default time that the previous key stays valid after a rotation, in seconds. */
export const GRACE_SECONDS = 60;

/** Options of {@linkcode accountOperations}. */
export interface AccountOperationsOptions {
  readonly accounts: AccountStore;
  /** An account's usage, without permits that this process holds but has not handed out. */
  readonly usedBy: (state: AccountState) => Usage;
  /** The name of the service in challenges. */
  readonly realm: string;
}

/** Account fields in every response. */
export const ACCOUNT_FIELDS = {
  id: text(),
  name: text(),
  plan: named("Plan", oneOf(PLANS)),
};
/** An API key in a response. */
export const SHOWN_KEY: Schema<string> = {
  ...text({ description: "The API key. It is shown only in this response." }),
  accepts: (value): value is string => typeof value === "string" && environmentOf(value) !== undefined,
};
/** Examples in the document. */
export const EXAMPLES = {
  account: { id: "acct_7f3kQ2mZ8xVb1LpR", name: "me", plan: "free" },
  apiKey: "as_test_8vXn2QmT5kRj7LwZ3pYb9CdF1gHs4NaE6uVxWs",
};

/** How many requests of a window are used, in a response. */
export const USED: typeof COUNT = {
  ...COUNT,
  json: {
    ...COUNT.json,
    description:
      "Requests admitted in this window. Never too low. Too high by the permits that other processes hold " +
      "for upcoming requests: each takes at most a quarter of those that are free, and gives them back within 2 s.",
  },
};
const USAGE_WINDOW = named("UsageWindow", answer({ used: USED, reset: timestamp() }));

const ACCOUNT = named(
  "Account",
  answer({
    ...ACCOUNT_FIELDS,
    limits: answer({ minute: COUNT, day: COUNT }),
    usage: answer({ minute: USAGE_WINDOW, day: USAGE_WINDOW }),
    bannedUntil: nullable(
      timestamp({
        description: "When the ban ends; null if there is none. During a ban, this request is refused too.",
      }),
    ),
    createdAt: timestamp(),
    previousKeyExpiresAt: nullable(
      timestamp({ description: "When the previous key expires; null if no previous key is valid." }),
    ),
  }, {
    examples: [{
      ...EXAMPLES.account,
      limits: PLAN_LIMITS.free,
      usage: {
        minute: { used: 1, reset: "2026-11-21T20:48:00.000Z" },
        day: { used: 1, reset: "2026-11-22T00:00:00.000Z" },
      },
      bannedUntil: null,
      createdAt: "2026-11-21T20:47:39.746Z",
      previousKeyExpiresAt: null,
    }],
  }),
);

const KEY_ROTATION = named(
  "KeyRotation",
  object({
    graceSeconds: optional(
      integer(0, MAX_GRACE_SECONDS, {
        description: "How many seconds this request's key stays valid; 0 if the key has leaked",
      }),
      GRACE_SECONDS,
    ),
  }, { examples: [{ graceSeconds: 3_600 }] }),
);

const ROTATED_KEY = named(
  "RotatedKey",
  answer({ apiKey: SHOWN_KEY, previousKeyExpiresAt: nullable(timestamp()) }, {
    examples: [{ apiKey: EXAMPLES.apiKey, previousKeyExpiresAt: "2026-11-21T21:47:39.746Z" }],
  }),
);

const USAGE_DAY = named(
  "UsageDay",
  answer({
    date: date(),
    admitted: {
      ...COUNT,
      json: { ...COUNT.json, description: "Requests admitted. Never an undercount." },
    },
    refused: { ...COUNT, json: { ...COUNT.json, description: "Requests refused. May be an undercount." } },
  }),
);

/** Usage per day, in a response. */
export const USAGE_DAYS = named(
  "UsageDays",
  list(USAGE_DAY, DAYS_KEPT, { examples: [[{ date: "2026-11-21", admitted: 12, refused: 0 }]] }),
);

/** What operations that return the usage per day have in common. */
export const OF_DAYS = {
  query: { days: optional(integer(1, DAYS_KEPT, { description: "Number of days returned" }), 30) },
  answers: {
    200: { description: "Usage per day, newest first", body: USAGE_DAYS, headers: ["Cache-Control"] },
  },
} as const;

/** A client's operations on its own account. */
export function accountOperations({ accounts, usedBy, realm }: AccountOperationsOptions): Operation[] {
  const common = { access: ACCESS.key, tag: ACCOUNT_TAG, isExtension: true } as const;

  const getAccount = operation({
    ...common,
    id: "getAccount",
    method: "GET",
    path: PATH,
    summary: "Get the account, its limits and usage",
    answers: { 200: { description: "The account", body: ACCOUNT, headers: ["Cache-Control"] } },
  }, async (_input, call: Call) => shown<typeof ACCOUNT>(describe(await find(call), call.now)));

  const closeAccount = operation({
    ...common,
    id: "closeAccount",
    method: "DELETE",
    path: PATH,
    summary: "Close the account",
    description: "Closes the account permanently. Its API keys stop working; its items stay.",
    answers: { 204: { description: "The account was closed" } },
  }, async (_input, { accountId, now, transact }: Call) => {
    const closed = await transact(accounts.changing(accountId, () => ({ closedAt: now })));
    if (closed === null) throw invalidApiKey(realm);
    return createResponse(null, { status: 204 });
  });

  const rotateKey = operation({
    ...common,
    id: "rotateKey",
    method: "POST",
    path: `${PATH}/key`,
    summary: "Rotate the API key",
    description: "Creates a new API key. The key of this request stays valid for `graceSeconds`, " +
      `${GRACE_SECONDS} by default. So if the response is lost, you can send the request again with the same key. The ` +
      "lost key then stops working, and the grace period starts again. If a key has leaked, set `graceSeconds` to 0: " +
      "every earlier key stops working immediately, and `previousKeyExpiresAt` is null. If that response is lost, the " +
      "account may be left without a key, and only the operator can make a new one. A rotation does not reset " +
      `usage. An account can rotate its key ${MAX_ROTATIONS} times per UTC hour, even if its limits are used up or it is ` +
      `banned; then nothing is charged. Do not send an Idempotency-Key: it ` +
      "is rejected, because API keys are not stored.",
    headers: { "Idempotency-Key": NO_IDEMPOTENCY_KEY },
    body: KEY_ROTATION,
    bodyIsOptional: true,
    isVital: true,
    answers: { 201: { description: "The new API key", body: ROTATED_KEY, headers: ["Cache-Control"] } },
    errors: [ROTATION_LIMIT],
  }, async ({ body: { graceSeconds } }, { request, accountId, now, transact }: Call) => {
    const key = bearerToken(request.headers.get("authorization")) ?? "";
    const issued = await transact(accounts.rotating(accountId, graceSeconds * 1_000, now, hashApiKey(key)));
    if (issued === null) throw invalidApiKey(realm);
    const previousKeyExpiresAt = previousKeyExpiry(issued.account, now);
    return shown<typeof ROTATED_KEY>({ apiKey: issued.apiKey, previousKeyExpiresAt }, 201);
  });

  const getUsage = operation(
    {
      ...common,
      id: "getUsage",
      method: "GET",
      path: `${PATH}/usage`,
      summary: "Get usage per day",
      description: "Returns one entry per day (UTC), starting with today.",
      ...OF_DAYS,
    },
    async ({ query: { days } }, call: Call) =>
      shown<typeof USAGE_DAYS>(await accounts.usagePerDay(await find(call), days, call.now)),
  );

  async function find({ accountId }: Call): Promise<AccountState> {
    const state = await accounts.find(accountId);
    if (state === null) throw invalidApiKey(realm);
    return { ...state, usage: usedBy(state) };
  }

  return [getAccount, closeAccount, rotateKey, getUsage];
}

function describe({ holder: account, usage }: AccountState, now: number): Parsed<typeof ACCOUNT> {
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

/** A response that must not be cached, with a value that matches a schema. */
export function shown<Of>(
  value: Parsed<Of>,
  status: number = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return jsonResponse(stringifyJson(value), { status, headers: { ...NO_STORE, ...headers } });
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
