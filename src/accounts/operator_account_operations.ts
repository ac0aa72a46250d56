import { type Decided, StoreUnavailable, type Transaction, type Write } from "../engine/mod.ts";
import { REPLAY_HOURS } from "../web/headers.ts";
import { ApiError, createResponse, operation, valueResponse } from "../web/mod.ts";
import {
  boolean,
  integer,
  list,
  named,
  nullable,
  object,
  oneOf,
  optional,
  output,
  type Parsed,
  partial,
  type Schema,
  text,
} from "../web/schema.ts";
import { isSameLimits, pardon, reset, UNUSED, type Usage } from "../limits/mod.ts";
import { type Call, type Changed, EXAMPLE_ACCOUNT_ID, type Operation, type Plans } from "../service/mod.ts";
import type { Catalogue, Items } from "../resource/mod.ts";
import {
  type Account,
  ACCOUNT_EXISTS,
  ACCOUNT_NAME,
  ACCOUNT_NOT_FOUND,
  ACCOUNT_OPEN,
  AccountExists,
  accountNotFound,
  type Issued,
  REFERENCE_SET,
  referenceOf,
  requireClosed,
} from "./account.ts";
import type { AccountStore, Claim, NewAccount, Removal } from "./account_store.ts";
import {
  MAX_BATCH,
  MAX_LISTED,
  NO_IDEMPOTENCY_KEY,
  OF_DAYS,
  type OperatorSchemas,
  operatorSchemas,
  rotation,
  type Seen,
  STATES,
  type USAGE_DAYS,
  viewOf,
} from "./account_view.ts";
import { keptKeysOf } from "./key_view.ts";
import { ACCOUNTS_PATH, COMMON, find, OF_ACCOUNT, open } from "./operated_account.ts";
import { operatorKeyOperations } from "./operator_key_operations.ts";
import { MAX_LIMIT, planNames, planOf } from "./plans.ts";

/** Maximum number of accounts to which one request applies plans. */
const MAX_APPLIED = 100;
const LIMIT: Schema<number> = integer(1, MAX_LIMIT);

/** The reference in a request. */
export const REFERENCE: Schema<string> = text({
  max: 100,
  pattern: /^[!-~]*$/,
  rule: "have only visible ASCII characters",
  description: "Your own identifier of the account. No other account can have it, and it never changes.",
});
const IDENTITY = { name: ACCOUNT_NAME, reference: optional(REFERENCE) };
const CURSOR = optional(
  text({
    pattern: /^acct_[0-9A-Za-z]{16}$/,
    rule: "be a cursor from a Link header of this service",
    description: "Where the page starts: the `cursor` in the `Link` header",
  }),
);
/** What one request has done to apply plans. */
export const APPLIED = named(
  "AppliedPlans",
  output({
    checked: integer(0, MAX_APPLIED, { description: "How many accounts it looked at" }),
    changed: integer(0, MAX_APPLIED, { description: "How many of them got other limits" }),
    next: nullable(text({ description: "The `cursor` of the next request; null if all are done" })),
  }, {
    examples: [{ checked: MAX_APPLIED, changed: 3, next: EXAMPLE_ACCOUNT_ID }],
  }),
);
const ROTATION = rotation(
  "Rotation",
  { max: 999_999 * 86_400, usual: 0, example: 86_400 },
  "How many seconds the current key stays valid",
);
/** What operations on accounts need. */
interface Desk {
  readonly accounts: AccountStore;
  readonly plans: Plans;
  readonly schemas: OperatorSchemas;
}

/** Options of {@linkcode operatorAccountOperations}. */
export interface OperatorAccountOptions {
  readonly catalogue: Catalogue;
  /** All collections. */
  readonly items: readonly Items[];
  /** What optional parts add to the removal of an account. */
  readonly removals: readonly Removal[];
}

/** Operators' operations on accounts. */
export function operatorAccountOperations(
  accounts: AccountStore,
  options: OperatorAccountOptions,
): Operation[] {
  const { catalogue } = options;
  const desk = { accounts, plans: catalogue.plans, schemas: operatorSchemas(catalogue) };
  return [
    listAccounts(desk),
    createAccount(desk),
    createAccounts(desk),
    getAccount(desk),
    getUsage(accounts),
    updateAccount(desk),
    rotateKey(desk),
    ...operatorKeyOperations(accounts, desk.schemas),
    ...actionsOf(desk),
    applyPlans(desk),
    deleteAccount(accounts, options),
  ];
}

function listAccounts({ accounts, plans, schemas }: Desk): Operation {
  return operation({
    ...COMMON,
    id: "listAccounts",
    method: "GET",
    path: ACCOUNTS_PATH,
    summary: "List accounts",
    description:
      `Returns accounts in the order of their ids. The service reads at most ${MAX_LISTED} accounts for a ` +
      "page. So a page of filtered accounts may be short or empty, and still have a next one: follow `Link` to the end.",
    query: {
      limit: optional(integer(1, MAX_LISTED, { description: "Maximum number of accounts returned" }), 100),
      cursor: CURSOR,
      state: optional(oneOf(STATES, { description: "Filter by state" })),
      plan: optional(oneOf(planNames(plans), { description: "Filter by plan" })),
      reference: optional(REFERENCE),
    },
    answers: {
      200: { description: "A page of accounts", body: schemas.accounts, headers: ["Link", "Cache-Control"] },
    },
  }, async ({ query }, { now }) => {
    const { limit, cursor, state, plan, reference } = query;
    const page = reference === undefined
      ? await accounts.page(cursor, state ?? plan ? MAX_LISTED : limit)
      : await accounts.pageOf(reference);
    const views = page.states.map((state) => viewOf(state, now));
    const found = views.filter((one) =>
      one.state === (state ?? one.state) && one.plan === (plan ?? one.plan)
    );
    const some = found.slice(0, limit);
    const next = found.length > limit ? some.at(-1)?.id : page.next;
    const search = new URLSearchParams({ limit: `${limit}`, ...state && { state }, ...plan && { plan } });
    const headers = next && { link: `<${ACCOUNTS_PATH}?${search}&cursor=${next}>; rel="next"` };
    return valueResponse<Parsed<OperatorSchemas["accounts"]>>(some, { headers: headers || {} });
  });
}

function createAccount({ accounts, plans, schemas }: Desk): Operation {
  const [, other = plans.signUp] = Object.keys(plans.limits);
  return operation({
    ...COMMON,
    id: "createAccount",
    method: "POST",
    path: ACCOUNTS_PATH,
    summary: "Create an account",
    description:
      "Creates an account and returns its API key, which is shown only once. If you send a `reference`, you can safely " +
      "repeat the request: if the account exists, the response is 409 with its id, and you can give it a new key.",
    headers: NO_IDEMPOTENCY_KEY,
    body: named(
      "AccountCreation",
      object({ ...IDENTITY, ...planMembers(plans, schemas) }, {
        examples: [{ name: "me", reference: "customer-7", plan: other }],
      }),
    ),
    answers: issuedKey(schemas.issued, "The account and its API key"),
    errors: [ACCOUNT_EXISTS],
  }, async ({ body }, call: Call) => {
    const made = await create(accounts, { ...body, ...planOf(plans, body), signedUp: false }, call);
    call.noteChange(changeOf(made.account));
    return issued(made, UNUSED, call);
  });
}

function createAccounts({ accounts, plans, schemas }: Desk): Operation {
  return operation({
    ...COMMON,
    id: "createAccounts",
    method: "POST",
    path: `${ACCOUNTS_PATH}/batch`,
    summary: "Create accounts",
    description:
      "Creates accounts. The answer has the outcome for each, and the API key of each new one. With references, " +
      "you can safely repeat the request.",
    headers: NO_IDEMPOTENCY_KEY,
    body: named(
      "AccountBatch",
      object({ accounts: list(object(IDENTITY), MAX_BATCH), ...planMembers(plans, schemas) }, {
        examples: [{ accounts: [{ name: "me", reference: "customer-7" }, { name: "you" }] }],
      }),
    ),
    answers: {
      200: {
        description: "The outcome for each account",
        body: schemas.creations,
        headers: ["Cache-Control"],
      },
    },
  }, async ({ body: { accounts: identities, ...rest } }, call: Call) => {
    const plan = { ...planOf(plans, rest), signedUp: false };
    const failures: StoreUnavailable[] = [];
    const creations = await Promise.all(identities.map(async (identity) => {
      try {
        const { account, apiKey } = await create(accounts, { ...plan, ...identity }, call);
        const view = viewOf({ holder: account, usage: UNUSED }, call.now);
        return { ...identity, outcome: "created", account: view, apiKey } as const;
      } catch (error) {
        if (error instanceof AccountExists) {
          return { ...identity, outcome: "exists", accountId: error.accountId } as const;
        }
        if (!(error instanceof StoreUnavailable)) throw error;
        failures.push(error);
        return { ...identity, outcome: "failed" } as const;
      }
    }));
    const created = creations.filter(({ outcome }) => outcome === "created");
    const made = created.map(({ name, reference }) => ({ name, reference: referenceOf({ reference }) }));
    call.noteChange(made.length === 0 ? {} : { plan: plan.plan, limits: plan.limits, accounts: made });
    const [failure] = failures;
    if (failure && failures.length === identities.length) throw failure;
    return valueResponse<Parsed<OperatorSchemas["creations"]>>(creations);
  });
}

function getAccount({ accounts, schemas }: Desk): Operation {
  return operation({
    ...OF_ACCOUNT,
    id: "getAccount",
    method: "GET",
    path: `${ACCOUNTS_PATH}/{id}`,
    summary: "Get an account and its usage",
    answers: shownAccount(schemas),
  }, async ({ params: { id } }, call: Call) => accountResponse(await find(accounts, id, call), call));
}

function getUsage(accounts: AccountStore): Operation {
  return operation(
    {
      ...OF_ACCOUNT,
      id: "getAccountUsage",
      method: "GET",
      path: `${ACCOUNTS_PATH}/{id}/usage`,
      summary: "Get the usage of an account per day",
      description: "Returns what its clients see: one entry per day (UTC), starting with today.",
      ...OF_DAYS,
    },
    async ({ params: { id }, query: { days } }, call: Call) =>
      valueResponse<Parsed<typeof USAGE_DAYS>>(
        await accounts.usagePerDay(await find(accounts, id, call), days, call.now),
      ),
  );
}

function updateAccount({ accounts, plans, schemas }: Desk): Operation {
  return operation({
    ...OF_ACCOUNT,
    id: "updateAccount",
    method: "PATCH",
    path: `${ACCOUNTS_PATH}/{id}`,
    summary: "Change the name or the plan of an account, suspend it or resume it",
    description:
      "Takes effect with the next request, in every process. If the account has no `reference`, you can give it one.",
    body: named(
      "AccountPatch",
      object({
        name: optional(ACCOUNT_NAME),
        reference: optional(REFERENCE),
        plan: optional(schemas.planName),
        limits: optional(
          object(partial({ minute: LIMIT, day: LIMIT }), { description: limitsText(plans) }),
        ),
        suspended: optional(boolean({
          description:
            "Whether every request of the account gets 403 `account_suspended`. Its keys and items stay.",
        })),
      }, { examples: [{ plan: plans.own, limits: { minute: 5_000, day: 1_000_000 } }] }),
    ),
    bodyType: "application/merge-patch+json",
    answers: shownAccount(schemas),
    errors: [ACCOUNT_NOT_FOUND, ACCOUNT_EXISTS, REFERENCE_SET],
  }, async ({ params: { id }, body: { name, reference, suspended, ...rest } }, call: Call) => {
    const to = (before: Account) => ({
      ...(name === undefined ? {} : { name }),
      ...(reference === undefined ? {} : { reference: referenceFor(before, reference) }),
      ...(rest.plan ?? rest.limits ? planOf(plans, rest, before) : {}),
      ...(suspended === undefined ? {} : { suspendedAt: suspended ? before.suspendedAt ?? call.now : null }),
    });
    const changed = await claiming(
      accounts,
      call,
      (gone) => change(accounts, id, to, call, { reference, gone }),
    );
    return accountResponse(changed, call);
  });
}

function rotateKey({ accounts, schemas }: Desk): Operation {
  return operation({
    ...OF_ACCOUNT,
    id: "rotateAccountKey",
    method: "POST",
    path: `${ACCOUNTS_PATH}/{id}/rotate`,
    summary: "Give an account a new API key",
    description:
      "Returns the new first key, which is shown only once. Every earlier key and every added one stops working " +
      "immediately, unless `graceSeconds` keeps the current one and the added ones valid. A key that is replaced can " +
      "still rotate during that time, so only 0, the default, ends the access of a thief.",
    confirm: "This makes a new key, and the account's keys stop working. Continue?",
    headers: NO_IDEMPOTENCY_KEY,
    body: ROTATION,
    bodyIsOptional: true,
    answers: issuedKey(schemas.rotated, "The account and its new API key"),
  }, async ({ params: { id }, body: { graceSeconds } }, call: Call) => {
    const { usage } = await find(accounts, id, call, "open ");
    const rotated = open(await call.transact(accounts.rotating(id, graceSeconds * 1_000, call.now)), id);
    const { account, endedKeys } = rotated;
    call.noteChange({ graceSeconds, ...(endedKeys > 0 && { endedKeys }) });
    const added = { addedKeys: keptKeysOf(account, call.now), endedKeys };
    return valueResponse<Parsed<OperatorSchemas["rotated"]>>({
      ...issuedView(rotated, usage, call),
      ...added,
    }, {
      status: 201,
      headers: locationOf(account, call),
    });
  });
}

/** Operations `POST /accounts/{id}/NAME` that change an open account, have no body, and return the account. */
function actionsOf({ accounts, schemas }: Desk): Operation[] {
  const actions: Readonly<
    Record<string, readonly [summary: string, description: string, act: Act, confirm?: string]>
  > = {
    unban: [
      "End the ban of an account",
      "Also clears its refusals and earlier bans.",
      (id, call) => call.transact(accounts.changingUsage(id, pardon)),
    ],
    reset: [
      "Set the usage of an account to zero",
      "Sets its usage in this minute and today to zero. A ban stays.",
      (id, call) => call.transact(accounts.changingUsage(id, (usage) => reset(usage, call.now))),
      "This forgets the requests of this minute and today. Continue?",
    ],
    close: [
      "Close an account",
      "Closes the account permanently. Its keys stop working.",
      (id, call) => change(accounts, id, () => ({ closedAt: call.now }), call),
      "This closes the account permanently. Continue?",
    ],
  };
  return Object.entries(actions).map(([name, [summary, description, act, confirm]]) =>
    operation({
      ...OF_ACCOUNT,
      id: `${name}Account`,
      method: "POST",
      path: `${ACCOUNTS_PATH}/{id}/${name}`,
      summary,
      description,
      ...(confirm && { confirm }),
      answers: shownAccount(schemas),
    }, async ({ params: { id } }, call: Call) => {
      const changed = open(await act(id, call), id);
      call.note(id);
      return accountResponse(changed, call);
    })
  );
}

type Act = (id: string, call: Call) => Promise<Seen | null>;

function applyPlans({ accounts, plans }: Desk): Operation {
  return operation({
    ...COMMON,
    id: "applyPlans",
    method: "POST",
    path: `${ACCOUNTS_PATH}/apply-plans`,
    summary: "Give accounts the limits of their plans",
    description:
      `Reads ${MAX_APPLIED} accounts, in the order of their ids. Each that is open and has other limits than its plan gets ` +
      "those of its plan. Send the request again with `next` as `cursor`, until it is null. It can safely be repeated.",
    query: { cursor: CURSOR },
    answers: { 200: { description: "What was done", body: APPLIED, headers: ["Cache-Control"] } },
  }, async ({ query: { cursor } }, call: Call) => {
    const { states, next = null } = await accounts.page(cursor, MAX_APPLIED);
    const changed = await Promise.all(states.map(async ({ holder: { id, plan, limits } }) => {
      const due = plans.limits[plan];
      if (due === undefined || isSameLimits(due, limits)) return 0;
      const after = await call.transact(
        accounts.changing(id, (now) => ({ limits: plans.limits[now.plan] ?? now.limits })),
      );
      if (after !== null) call.note(id);
      return after === null ? 0 : 1;
    }));
    return valueResponse<Parsed<typeof APPLIED>>({
      checked: states.length,
      changed: changed.reduce((sum: number, count) => sum + count, 0),
      next,
    });
  });
}

function deleteAccount(
  accounts: AccountStore,
  { removals, items }: OperatorAccountOptions,
): Operation {
  const own = items.filter(({ resource }) => resource.readableBy === "owner");
  return operation({
    ...OF_ACCOUNT,
    id: "deleteAccount",
    method: "DELETE",
    path: `${ACCOUNTS_PATH}/{id}`,
    summary: "Delete a closed account",
    description:
      "Deletes an account that was closed at least a minute ago, with its data and the items that only it can read. " +
      "Items that everyone can read stay, and the responses stored for its Idempotency-Keys stay for " +
      `${REPLAY_HOURS} hours. If it has very many items, the response may be 503: repeat the request.`,
    confirm: "This deletes the account and its data permanently. Continue?",
    answers: { 204: { description: "The account was deleted" } },
    errors: [
      ...[ACCOUNT_NOT_FOUND, ACCOUNT_OPEN],
      ...removals.flatMap(({ errors }) => errors),
    ],
  }, async ({ params: { id } }, call: Call) => {
    const { holder } = await find(accounts, id, call);
    const removal = removals.reduce(
      (extended, { extend }) => extend(id, extended),
      accounts.removing(holder, ({ holder }) => (requireClosed(holder, call.now), true)),
    );
    await call.transact(asking(removal));
    for (const some of own.toReversed()) while (await some.deleteSome(id, call));
    if (await call.transact(removal) === null) throw accountNotFound(id);
    return createResponse(null, { status: 204 });
  });
}

const NOTHING: Omit<Write, "draw"> = { set() {}, delete() {}, bump() {}, append() {} };

/** Throws what a transaction would throw, and writes nothing. */
function asking<Result extends Decided>(transaction: Transaction<Result>): Transaction<Result> {
  return {
    ...transaction,
    decide: (rows, write, now) =>
      transaction.decide(rows, { ...NOTHING, draw: (ids) => write.draw(ids) }, now),
  };
}

/** Creates an account. @throws {AccountExists} */
async function create(accounts: AccountStore, account: NewAccount, call: Call): Promise<Issued> {
  const made = await claiming(
    accounts,
    call,
    (gone) => call.transact(accounts.creating(account, call.now, gone)),
  );
  call.note(made.account.id);
  return made;
}

/**
 * Makes a change that may give a reference to an account. If the account that has the reference was removed without it,
 * as 1.0.0 does, makes it again with the ID of that account.
 *
 * @throws {AccountExists}
 */
async function claiming<Result>(
  accounts: AccountStore,
  call: Call,
  make: (gone?: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof AccountExists)) throw error;
    const { accountId } = error;
    if (await accounts.find(accountId) === null) return await make(accountId);
    call.note(accountId);
    throw error;
  }
}

/** The reference that an account gets. @throws {ApiError} `reference_set` if it has another. */
function referenceFor(account: Account, reference: string): string {
  const known = referenceOf(account);
  if (known === undefined || known === reference) return reference;
  throw new ApiError(REFERENCE_SET, `Account ${account.id} has another reference, which never changes.`);
}

async function change(
  accounts: AccountStore,
  id: string,
  to: (before: Account) => Partial<Account>,
  call: Call,
  claim: Claim = {},
): Promise<Seen> {
  const { usage } = await find(accounts, id, call, "open ");
  const { before, after } = open(await call.transact(accounts.changing(id, to, claim)), id);
  call.noteChange(changeOf(after, before));
  return { holder: after, usage };
}

/** What the log says of a new account or, with `before`, of a change. */
function changeOf(after: Account, before?: Account): Changed {
  const old: Record<string, unknown> = before ? loggedOf(before) : { suspended: false, closed: false };
  const isNew = ([name, value]: readonly [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(old[name]);
  return Object.fromEntries(Object.entries(loggedOf(after)).filter(isNew));
}

/** What the log may say of an account. */
function loggedOf(account: Account): Record<string, unknown> {
  const { name, plan, limits, suspendedAt, closedAt } = account;
  const reference = referenceOf(account);
  return { name, reference, plan, limits, suspended: suspendedAt !== null, closed: closedAt !== null };
}

/** The 200 with an account. */
function accountResponse(state: Seen, { now }: Call): Response {
  return valueResponse<Parsed<OperatorSchemas["account"]>>(viewOf(state, now));
}

/** The 201 with an account and its key. */
function issued(made: Issued, usage: Usage, call: Call): Response {
  return valueResponse<Parsed<OperatorSchemas["issued"]>>(issuedView(made, usage, call), {
    status: 201,
    headers: locationOf(made.account, call),
  });
}

function issuedView({ account, apiKey }: Issued, usage: Usage, { now }: Call) {
  return { account: viewOf({ holder: account, usage }, now), apiKey };
}

function locationOf({ id }: Account, { base }: Call) {
  return { location: `${base}${ACCOUNTS_PATH}/${id}` };
}

/** The plan of new accounts, in a request. */
function planMembers(plans: Plans, { planName }: OperatorSchemas) {
  return {
    plan: optional(planName, plans.signUp),
    limits: optional(object({ minute: LIMIT, day: LIMIT }, { description: limitsText(plans) })),
  };
}

function limitsText({ own }: Plans): string {
  return `Requests allowed in each window; only for the ${own} plan, whose limits are agreed`;
}

function shownAccount({ account }: OperatorSchemas) {
  return { 200: { description: "The account", body: account, headers: ["Cache-Control"] } };
}

function issuedKey(body: Schema, description: string) {
  const paths = { Location: `${ACCOUNTS_PATH}/${EXAMPLE_ACCOUNT_ID}` };
  return { 201: { description, body, headers: ["Cache-Control", "Location"], paths } };
}
