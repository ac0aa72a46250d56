import { StoreUnavailable } from "../engine/mod.ts";
import {
  answer,
  ApiError,
  boolean,
  COUNT,
  createResponse,
  ERRORS,
  integer,
  list,
  named,
  NO_IDEMPOTENCY_KEY,
  nullable,
  object,
  oneOf,
  operation,
  optional,
  type Parsed,
  partial,
  REPLAY_HOURS,
  type Schema,
  shownName,
  type Tag,
  text,
  timestamp,
} from "../web/mod.ts";
import {
  dayEnd,
  hasCalled,
  type Limits,
  minuteEnd,
  pardon,
  reset,
  roll,
  UNUSED,
  type Usage,
} from "../limits/mod.ts";
import { ACCESS, type Call, type Operation } from "../resource/mod.ts";
import {
  type Account,
  ACCOUNT_EXISTS,
  ACCOUNT_NAME,
  ACCOUNT_NOT_FOUND,
  ACCOUNT_OPEN,
  AccountExists,
  type Issued,
  type Plan,
  PLAN_LIMITS,
  PLANS,
  previousKeyExpiry,
} from "./account.ts";
import { EXAMPLES, OF_DAYS, shown, SHOWN_KEY, type USAGE_DAYS, USED } from "./account_operations.ts";
import type { AccountState, AccountStore, NewAccount, Removal } from "./account_store.ts";

/** Options of {@linkcode operatorAccountOperations}. */
export interface OperatorAccountOptions {
  readonly accounts: AccountStore;
  /** What optional parts add to the removal of an account. */
  readonly removals: readonly Removal[];
  /** An account's usage, without permits that this process holds but has not handed out. */
  readonly usedBy: (state: AccountState) => Usage;
}

/** Path of the accounts. */
export const ACCOUNTS_PATH = "/operator/v1/accounts";
/** Maximum number of accounts in a page, and of accounts read for one. */
export const MAX_LISTED = 500;
/** Maximum number of accounts created by one request. */
export const MAX_BATCH = 50;
/** Maximum of a limit. */
export const MAX_LIMIT = 1e12;
/** Maximum time that the previous key stays valid after a rotation, in seconds. */
const MAX_GRACE_SECONDS = 999_999 * 86_400;

const ACCOUNTS_TAG: Tag = { name: "Accounts", description: "All accounts" };
const STATES = ["active", "banned", "suspended", "closed"] as const;
const PLAN: Schema<Plan> = named("Plan", oneOf(PLANS));
const LIMIT: Schema<number> = integer(1, MAX_LIMIT);
const ISO: Schema<string> = timestamp();

/** An account as operators see it. */
export const ACCOUNT = named(
  "Account",
  answer({
    id: text(),
    name: text(),
    reference: nullable(text({ description: "Chosen when the account was created; null if there is none" })),
    environment: oneOf(["production", "staging"]),
    plan: PLAN,
    state: oneOf(STATES),
    limits: answer({ minute: COUNT, day: COUNT }),
    usage: answer({
      minute: answer({ used: USED, start: ISO, reset: ISO }),
      day: answer({ used: USED, reset: ISO }),
      refusedThisMinute: COUNT,
    }),
    bannedUntil: nullable(timestamp({ description: "When the ban ends; null if there is none" })),
    bans: { ...COUNT, json: { ...COUNT.json, description: "Number of successive bans" } },
    signedUp: boolean({ description: "Whether a client created the account, rather than an operator" }),
    createdAt: ISO,
    suspendedAt: nullable(ISO),
    closedAt: nullable(ISO),
    lastUsed: nullable(text({ description: "Day of the last admitted request; null before the first" })),
    previousKeyExpiresAt: nullable(
      timestamp({ description: "When the previous key expires; null if no previous key is valid" }),
    ),
  }, {
    examples: [{
      id: EXAMPLES.account.id,
      name: EXAMPLES.account.name,
      reference: "customer-7",
      environment: "staging",
      plan: "free",
      state: "active",
      limits: PLAN_LIMITS.free,
      usage: {
        minute: { used: 1, start: "2026-11-21T20:47:00.000Z", reset: "2026-11-21T20:48:00.000Z" },
        day: { used: 1, reset: "2026-11-22T00:00:00.000Z" },
        refusedThisMinute: 0,
      },
      bannedUntil: null,
      bans: 0,
      signedUp: false,
      createdAt: "2026-11-21T20:47:39.746Z",
      suspendedAt: null,
      closedAt: null,
      lastUsed: "2026-11-21",
      previousKeyExpiresAt: null,
    }],
  }),
);

/** A page of accounts. */
export const ACCOUNT_PAGE = named("Accounts", list(ACCOUNT, MAX_LISTED));

/** An account and its new key. */
export const ISSUED = named("IssuedKey", answer({ account: ACCOUNT, apiKey: SHOWN_KEY }));

/** The result of a batch: the outcome for each account, in order. */
export const CREATIONS = named(
  "Creations",
  list(
    answer({
      name: text(),
      reference: optional(text()),
      outcome: oneOf(["created", "exists", "failed"], {
        description:
          "`exists`: the account `accountId` has this reference. `failed`: the store did not respond, so it " +
          "is unknown whether the account was created.",
      }),
      account: optional(ACCOUNT),
      apiKey: optional(SHOWN_KEY),
      accountId: optional(text()),
    }),
    MAX_BATCH,
  ),
);

const LIMITS_TEXT = "Requests allowed in each window; only for the enterprise plan, whose limits are agreed";
const PLAN_MEMBERS = {
  plan: optional(PLAN, "free"),
  limits: optional(object({ minute: LIMIT, day: LIMIT }, { description: LIMITS_TEXT })),
};
/** The reference in a request. */
export const REFERENCE: Schema<string> = text({
  max: 100,
  pattern: /^[!-~]*$/,
  rule: "have only visible ASCII characters",
  description: "Your own identifier of the account. No other account can have it, and it never changes.",
});
const IDENTITY = { name: ACCOUNT_NAME, reference: optional(REFERENCE) };
const CREATION = named(
  "AccountCreation",
  object({ ...IDENTITY, ...PLAN_MEMBERS }, {
    examples: [{ name: "me", reference: "customer-7", plan: "pro" }],
  }),
);
const BATCH = named(
  "AccountBatch",
  object({ accounts: list(object(IDENTITY), MAX_BATCH), ...PLAN_MEMBERS }, {
    examples: [{ accounts: [{ name: "me", reference: "customer-7" }, { name: "you" }] }],
  }),
);
const ACCOUNT_PATCH = named(
  "AccountPatch",
  object({
    plan: optional(PLAN),
    limits: optional(object(partial({ minute: LIMIT, day: LIMIT }), { description: LIMITS_TEXT })),
    suspended: optional(boolean({
      description:
        "Whether every request of the account gets 403 `account_suspended`. Its keys and items stay.",
    })),
  }, { examples: [{ plan: "enterprise", limits: { minute: 5_000, day: 1_000_000 } }] }),
);
const ROTATION = named(
  "Rotation",
  object({
    graceSeconds: optional(
      integer(0, MAX_GRACE_SECONDS, { description: "How many seconds the current key stays valid" }),
      0,
    ),
  }, { examples: [{ graceSeconds: 86_400 }] }),
);
/** The id in a path. An id of any other form gets 404, because no account can have it. */
const ACCOUNT_ID: Schema<string> = {
  ...text({ description: "The account's id", examples: [EXAMPLES.account.id] }),
  fromStrings([id = ""]) {
    if (/^\w{1,100}$/.test(id)) return id;
    throw notFound(id);
  },
};
const ID = { id: ACCOUNT_ID };

/** Operators' operations on accounts. */
export function operatorAccountOperations(
  { accounts, removals, usedBy }: OperatorAccountOptions,
): Operation[] {
  const common = { access: ACCESS.operator, tag: ACCOUNTS_TAG, timeoutMs: 30_000 } as const;
  const ofAccount = { ...common, params: ID, errors: [ACCOUNT_NOT_FOUND] } as const;
  const shownAccount = { 200: { description: "The account", body: ACCOUNT, headers: ["Cache-Control"] } };
  const shownKey = (description: string) => ({
    201: { description, body: ISSUED, headers: ["Cache-Control", "Location"] },
  });

  const listAccounts = operation({
    ...common,
    id: "listAccounts",
    method: "GET",
    path: ACCOUNTS_PATH,
    summary: "List accounts",
    description:
      `Returns accounts in the order of their ids. The service reads at most ${MAX_LISTED} accounts for a ` +
      "page. So a page of filtered accounts may be short or empty, and still have a next one: follow `Link` to the end.",
    query: {
      limit: optional(integer(1, MAX_LISTED, { description: "Maximum number of accounts returned" }), 100),
      cursor: optional(
        text({
          pattern: /^acct_[0-9A-Za-z]{16}$/,
          rule: "be a cursor from a Link header of this service",
          description: "Where the page starts: the `cursor` in the `Link` header",
        }),
      ),
      state: optional(oneOf(STATES, { description: "Filter by state" })),
      plan: optional(oneOf(PLANS, { description: "Filter by plan" })),
      reference: optional(REFERENCE),
    },
    answers: {
      200: { description: "A page of accounts", body: ACCOUNT_PAGE, headers: ["Link", "Cache-Control"] },
    },
  }, async ({ query }, { now }) => {
    const { limit, cursor, state, plan, reference } = query;
    const page = reference === undefined
      ? await accounts.page(cursor, state ?? plan ? MAX_LISTED : limit)
      : await accounts.pageOf(reference);
    const details = page.states.map((state) => detailsOf({ ...state, usage: usedBy(state) }, now));
    const found = details.filter((one) =>
      one.state === (state ?? one.state) && one.plan === (plan ?? one.plan)
    );
    const some = found.slice(0, limit);
    const next = found.length > limit ? some.at(-1)?.id : page.next;
    const search = new URLSearchParams({ limit: `${limit}`, ...state && { state }, ...plan && { plan } });
    const headers = next && { link: `<${ACCOUNTS_PATH}?${search}&cursor=${next}>; rel="next"` };
    return shown<typeof ACCOUNT_PAGE>(some, 200, headers || {});
  });

  const createAccount = operation({
    ...common,
    id: "createAccount",
    method: "POST",
    path: ACCOUNTS_PATH,
    summary: "Create an account",
    description:
      "Creates an account and returns its API key, which is shown only once. If you send a `reference`, you can safely " +
      "repeat the request: if the account exists, the response is 409 with its id, and you can give it a new key.",
    headers: { "Idempotency-Key": NO_IDEMPOTENCY_KEY },
    body: CREATION,
    answers: shownKey("The account and its API key"),
    errors: [ACCOUNT_EXISTS],
  }, async ({ body }, call: Call) => {
    const made = await create({ ...body, ...planOf(body), signedUp: false }, call);
    return issued(made, UNUSED, call);
  });

  const createAccounts = operation({
    ...common,
    id: "createAccounts",
    method: "POST",
    path: `${ACCOUNTS_PATH}/batch`,
    summary: "Create accounts",
    description:
      "Creates accounts. The answer has the outcome for each, and the API key of each new one. With references, " +
      "you can safely repeat the request.",
    headers: { "Idempotency-Key": NO_IDEMPOTENCY_KEY },
    body: BATCH,
    answers: {
      200: { description: "The outcome for each account", body: CREATIONS, headers: ["Cache-Control"] },
    },
  }, async ({ body: { accounts: identities, ...rest } }, call: Call) => {
    const plan = { ...planOf(rest), signedUp: false };
    const failures: StoreUnavailable[] = [];
    const creations = await Promise.all(identities.map(async (identity) => {
      try {
        const { account, apiKey } = await create({ ...plan, ...identity }, call);
        const details = detailsOf({ holder: account, usage: UNUSED }, call.now);
        return { ...identity, outcome: "created", account: details, apiKey } as const;
      } catch (error) {
        if (error instanceof AccountExists) {
          return { ...identity, outcome: "exists", accountId: error.accountId } as const;
        }
        if (!(error instanceof StoreUnavailable)) throw error;
        failures.push(error);
        return { ...identity, outcome: "failed" } as const;
      }
    }));
    const [failure] = failures;
    if (failure && failures.length === identities.length) throw failure;
    return shown<typeof CREATIONS>(creations);
  });

  const getAccount = operation(
    {
      ...ofAccount,
      id: "getAccount",
      method: "GET",
      path: `${ACCOUNTS_PATH}/{id}`,
      summary: "Get an account and its usage",
      answers: shownAccount,
    },
    async ({ params: { id } }, call: Call) =>
      shown<typeof ACCOUNT>(detailsOf(await find(id, call), call.now)),
  );

  const getUsage = operation(
    {
      ...ofAccount,
      id: "getAccountUsage",
      method: "GET",
      path: `${ACCOUNTS_PATH}/{id}/usage`,
      summary: "Get the usage of an account per day",
      description: "Returns what its clients see: one entry per day (UTC), starting with today.",
      ...OF_DAYS,
    },
    async ({ params: { id }, query: { days } }, call: Call) =>
      shown<typeof USAGE_DAYS>(await accounts.usagePerDay(await find(id, call), days, call.now)),
  );

  const updateAccount = operation({
    ...ofAccount,
    id: "updateAccount",
    method: "PATCH",
    path: `${ACCOUNTS_PATH}/{id}`,
    summary: "Change the plan of an account, suspend it or resume it",
    description: "Takes effect with the next request, in every process.",
    body: ACCOUNT_PATCH,
    bodyType: "application/merge-patch+json",
    answers: shownAccount,
  }, async ({ params: { id }, body: { suspended, ...rest } }, call: Call) => {
    const changed = await change(id, (before) => ({
      ...(rest.plan ?? rest.limits ? planOf(rest, before) : {}),
      ...(suspended === undefined ? {} : { suspendedAt: suspended ? before.suspendedAt ?? call.now : null }),
    }), call);
    return shown<typeof ACCOUNT>(detailsOf(changed, call.now));
  });

  const rotateKey = operation({
    ...ofAccount,
    id: "rotateAccountKey",
    method: "POST",
    path: `${ACCOUNTS_PATH}/{id}/rotate`,
    summary: "Give an account a new API key",
    description:
      "Returns the new API key, which is shown only once. Every earlier key stops working immediately, " +
      "unless `graceSeconds` keeps the current one valid.",
    headers: { "Idempotency-Key": NO_IDEMPOTENCY_KEY },
    body: ROTATION,
    bodyIsOptional: true,
    answers: shownKey("The account and its new API key"),
  }, async ({ params: { id }, body: { graceSeconds } }, call: Call) => {
    const { usage } = await findOpen(id, call);
    const rotated = await call.transact(accounts.rotating(id, graceSeconds * 1_000, call.now));
    return issued(open(rotated, id), usage, call);
  });

  const unban = action(
    "unban",
    "unbanAccount",
    "End the ban of an account",
    "Also clears its refusals and earlier bans.",
    (id, call) => call.transact(accounts.changingUsage(id, pardon)),
  );

  const resetUsage = action(
    "reset",
    "resetAccount",
    "Set the usage of an account to zero",
    "Sets its usage in this minute and today to zero. A ban stays.",
    (id, call) => call.transact(accounts.changingUsage(id, (usage) => reset(usage, call.now))),
  );

  const close = action(
    "close",
    "closeAccount",
    "Close an account",
    "Closes the account permanently. Its keys stop working.",
    (id, call) => change(id, () => ({ closedAt: call.now }), call),
  );

  const remove = operation({
    ...ofAccount,
    id: "deleteAccount",
    method: "DELETE",
    path: `${ACCOUNTS_PATH}/{id}`,
    summary: "Delete a closed account",
    description: "Deletes a closed account and its data. Its items stay, and " +
      `the responses stored for its Idempotency-Keys stay for ${REPLAY_HOURS} hours.`,
    answers: { 204: { description: "The account was deleted" } },
    errors: [ACCOUNT_NOT_FOUND, ACCOUNT_OPEN, ...removals.flatMap(({ errors }) => errors)],
  }, async ({ params: { id } }, call: Call) => {
    const { holder } = await find(id, call);
    const removal = accounts.removing(holder, ({ holder: account }) => {
      if (account.closedAt !== null) return true;
      throw new ApiError(ACCOUNT_OPEN, `Account ${id} is open; close it first.`);
    });
    const removed = await call.transact(
      removals.reduce((extended, { extend }) => extend(id, extended), removal),
    );
    if (removed === null) throw notFound(id);
    return createResponse(null, { status: 204 });
  });

  /**
   * Creates an account. `gone` is the ID of one that had its reference and has been removed.
   *
   * @throws {AccountExists}
   */
  async function create(account: NewAccount, call: Call, gone?: string): Promise<Issued> {
    try {
      const made = await call.transact(accounts.creating(account, call.now, gone));
      call.note(made.account.id);
      return made;
    } catch (error) {
      if (!(error instanceof AccountExists)) throw error;
      const { accountId } = error;
      const isGone = gone === undefined && await accounts.find(accountId) === null;
      if (isGone) return await create(account, call, accountId);
      call.note(accountId);
      throw error;
    }
  }

  async function find(id: string, { note }: Call): Promise<AccountState> {
    const state = await accounts.find(id);
    if (state === null) throw notFound(id);
    note(id);
    return { ...state, usage: usedBy(state) };
  }

  async function findOpen(id: string, call: Call): Promise<AccountState> {
    const state = await accounts.find(id);
    if (state === null || state.holder.closedAt !== null) throw notOpen(id);
    call.note(id);
    return { ...state, usage: usedBy(state) };
  }

  async function change(
    id: string,
    to: (before: Account) => Partial<Account>,
    call: Call,
  ): Promise<Pick<AccountState, "holder" | "usage">> {
    const { usage } = await findOpen(id, call);
    return { holder: open(await call.transact(accounts.changing(id, to)), id), usage };
  }

  /** An operation `POST /accounts/{id}/NAME` that changes an open account, and returns it. */
  function action(
    name: string,
    id: string,
    summary: string,
    description: string,
    act: (id: string, call: Call) => Promise<Pick<AccountState, "holder" | "usage"> | null>,
  ): Operation {
    return operation({
      ...ofAccount,
      id,
      method: "POST",
      path: `${ACCOUNTS_PATH}/{id}/${name}`,
      summary,
      description,
      answers: shownAccount,
    }, async ({ params: { id } }, call: Call) => {
      const changed = open(await act(id, call), id);
      call.note(id);
      return shown<typeof ACCOUNT>(detailsOf(changed, call.now));
    });
  }

  return [
    listAccounts,
    createAccount,
    createAccounts,
    getAccount,
    getUsage,
    updateAccount,
    rotateKey,
    unban,
    resetUsage,
    close,
    remove,
  ];
}

/** The 201 with an account and its key. */
function issued({ account, apiKey }: Issued, usage: Usage, call: Call): Response {
  const details = detailsOf({ holder: account, usage }, call.now);
  return shown<typeof ISSUED>({ account: details, apiKey }, 201, {
    location: `${call.base}${ACCOUNTS_PATH}/${account.id}`,
  });
}

/**
 * A plan and its limits: those of Enterprise as given, or as the account had them.
 *
 * @throws {ApiError} `invalid_request`
 */
function planOf(
  { plan, limits }: { readonly plan?: Plan; readonly limits?: Partial<Limits> },
  before?: Account,
): Pick<NewAccount, "plan" | "limits"> {
  const chosen = plan ?? before?.plan ?? "free";
  if (chosen !== "enterprise") {
    if (limits === undefined) return { plan: chosen, limits: PLAN_LIMITS[chosen] };
    throw new ApiError(
      ERRORS.invalid_request,
      `The field limits is for the enterprise plan; the ${chosen} plan has fixed limits.`,
    );
  }
  const { minute, day } = { ...(before?.plan === "enterprise" ? before.limits : {}), ...limits };
  if (minute !== undefined && day !== undefined) return { plan: chosen, limits: { minute, day } };
  throw new ApiError(
    ERRORS.invalid_request,
    "The fields limits.minute and limits.day are required for the enterprise plan.",
  );
}

function open<Found>(found: Found | null, id: string): Found {
  if (found === null) throw notOpen(id);
  return found;
}

function notOpen(id: string): ApiError {
  return new ApiError(ACCOUNT_NOT_FOUND, `There is no open account with the id ${shownName(id)}.`);
}

function notFound(id: string): ApiError {
  return new ApiError(ACCOUNT_NOT_FOUND, `There is no account with the id ${shownName(id)}.`);
}

/** What operators see of an account at `now` (ms since the epoch). */
function detailsOf(
  { holder: account, usage: stored }: Pick<AccountState, "holder" | "usage">,
  now: number,
): Parsed<typeof ACCOUNT> {
  const { id, name, reference = null, environment, plan, limits, signedUp, createdAt } = account;
  const { suspendedAt, closedAt } = account;
  const usage = roll(stored, now);
  const isBanned = usage.bannedUntil > now;
  return {
    id,
    name,
    reference,
    environment,
    plan,
    state: stateOf(account, isBanned),
    limits,
    usage: {
      minute: { used: usage.used, start: iso(usage.minute), reset: iso(minuteEnd(usage)) },
      day: { used: usage.usedToday, reset: iso(dayEnd(usage)) },
      refusedThisMinute: usage.refused,
    },
    bannedUntil: isBanned ? iso(usage.bannedUntil) : null,
    bans: usage.bans,
    signedUp,
    createdAt: iso(createdAt),
    suspendedAt: suspendedAt === null ? null : iso(suspendedAt),
    closedAt: closedAt === null ? null : iso(closedAt),
    lastUsed: hasCalled(stored) ? iso(stored.minute).slice(0, 10) : null,
    previousKeyExpiresAt: previousKeyExpiry(account, now),
  };
}

function stateOf({ suspendedAt, closedAt }: Account, isBanned: boolean): typeof STATES[number] {
  if (closedAt !== null) return "closed";
  if (suspendedAt !== null) return "suspended";
  return isBanned ? "banned" : "active";
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
