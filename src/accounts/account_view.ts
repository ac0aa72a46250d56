import { refusedHeader } from "../web/headers.ts";
import {
  boolean,
  date,
  extensibleEnum,
  int64,
  integer,
  list,
  named,
  nullable,
  object,
  oneOf,
  optional,
  output,
  type ParsedMembers,
  type Schema,
  text,
  timestamp,
} from "../web/schema.ts";
import { dayEnd, DAYS_KEPT, hasCalled, minuteEnd, roll } from "../limits/mod.ts";
import { EXAMPLE_ACCOUNT_ID, type Plans } from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { type Account, previousKeyExpiry, referenceOf } from "./account.ts";
import { MAX_ADDED_KEYS } from "./added_keys.ts";
import type { AccountState } from "./account_store.ts";
import { KeyForm, keyStart } from "./api_key.ts";
import { KEPT_KEYS, keySchemas, USED_KEY } from "./key_view.ts";
import { planNames, planOf } from "./plans.ts";

/** The headers of operations whose response has an API key, which must not be stored. */
export const NO_IDEMPOTENCY_KEY = { "Idempotency-Key": refusedHeader("an API key is shown only once") };

/** Maximum number of accounts in a page, and of accounts read for one. */
export const MAX_LISTED = 500;
/** Maximum number of accounts created by one request. */
export const MAX_BATCH = 50;
/** States of an account. */
export const STATES = ["active", "banned", "suspended", "closed"] as const;

const USED = count(
  "Requests admitted in this window, and permits that other processes hold for upcoming ones: at most a " +
    "quarter of those that are free, for at most 2 s.",
);
const CREATED = timestamp({ description: "When it was created" });
const RESET = timestamp({ description: "When the window ends, and the next one begins" });
const BAN_END = "When the ban ends; null if there is none";
const KEY_EXPIRY = "When the previous key expires; null if no previous key is valid";
const USAGE_WINDOW = named(
  "UsageWindow",
  output({ used: USED, reset: RESET }, { description: "How many requests are used" }),
);

/** What is seen of an account. */
function membersOf(plan: Schema<string>) {
  return {
    id: text({ description: "The account's id" }),
    name: text({ description: "The account's name" }),
    reference: nullable(text({ description: "Chosen by an operator; null if there is none" })),
    environment: oneOf(["production", "staging"], { description: "Where its keys are valid" }),
    plan,
    state: extensibleEnum(STATES, "The state of the account"),
    limits: output({ minute: count("Requests a minute"), day: count("Requests a day (UTC)") }, {
      description: "How many requests are admitted",
    }),
    usage: output({
      minute: output({ used: USED, start: timestamp({ description: "When it began" }), reset: RESET }, {
        description: "This minute",
      }),
      day: output({ used: USED, reset: RESET }, { description: "This day (UTC)" }),
      refusedThisMinute: count("Requests refused in this minute"),
    }, { description: "How many of them are used" }),
    bannedUntil: nullable(timestamp({ description: BAN_END })),
    bans: count("Number of successive bans"),
    signedUp: boolean({ description: "Whether a client created the account, rather than an operator" }),
    createdAt: CREATED,
    suspendedAt: nullable(timestamp({ description: "When it was suspended; null if it is not" })),
    closedAt: nullable(timestamp({ description: "When it was closed; null if it is open" })),
    lastUsed: nullable(text({ description: "Day of the last admitted request; null before the first" })),
    previousKeyExpiresAt: nullable(timestamp({ description: KEY_EXPIRY })),
  };
}

/** Everything that is seen of an account. */
export type AccountView = ParsedMembers<ReturnType<typeof membersOf>>;

/** Schemas of operators' operations on accounts, with the plans and keys of a catalogue. */
export type OperatorSchemas = ReturnType<typeof operatorSchemas>;

/** The schemas of operators' operations on accounts, with the plans and keys of a catalogue. */
export function operatorSchemas(catalogue: Catalogue) {
  const { planName, apiKey, members, example, exampleKey } = membersIn(catalogue);
  const account = named("Account", output(members, { description: "The account", examples: [example] }));
  return {
    /** The name of a plan, in a request. */
    planName,
    /** An account as operators see it. */
    account,
    /** A page of accounts. */
    accounts: named("Accounts", list(account, MAX_LISTED)),
    /** An account and its new key. */
    issued: named("IssuedKey", output({ account, apiKey })),
    /** An account and its new first key. */
    rotated: named(
      "RotatedKey",
      output({
        ...{ account, apiKey },
        // Optional, because a command may call a release that does not know added keys.
        addedKeys: optional(KEPT_KEYS),
        endedKeys: optional(
          integer(0, MAX_ADDED_KEYS, { description: "Number of added keys that stopped working" }),
        ),
      }),
    ),
    /** Added keys of an account. */
    addedKeys: keySchemas(catalogue, apiKey, exampleKey),
    /** The result of a batch: the outcome for each account, in order. */
    creations: named(
      "Creations",
      list(
        output({
          name: text({ description: "As in the request" }),
          reference: optional(text({ description: "As in the request" })),
          outcome: extensibleEnum(
            ["created", "exists", "failed"],
            "`exists`: the account `accountId` has this reference. `failed`: the store did not respond, so it is " +
              "unknown whether the account was created",
          ),
          account: optional(account),
          apiKey: optional(apiKey),
          accountId: optional(text({ description: "The account that has this reference" })),
        }),
        MAX_BATCH,
      ),
    ),
  };
}

/** Schemas of clients' operations on accounts, with the plans and keys of a catalogue. */
export type ClientSchemas = ReturnType<typeof clientSchemas>;

/** The schemas of clients' operations on accounts, with the plans and keys of a catalogue. */
export function clientSchemas(catalogue: Catalogue) {
  const { apiKey, members, example, exampleKey } = membersIn(catalogue);
  const { id, name, plan, limits, createdAt } = members;
  return {
    /** An account as its own clients see it. */
    ownAccount: named(
      "Account",
      output({
        ...{ id, name, plan, limits },
        usage: output({ minute: USAGE_WINDOW, day: USAGE_WINDOW }, {
          description: "How many requests are used, in this minute and on this day (UTC)",
        }),
        bannedUntil: nullable(
          timestamp({ description: `${BAN_END}. During a ban, this request is refused too.` }),
        ),
        createdAt,
        previousKeyExpiresAt: nullable(timestamp({ description: `${KEY_EXPIRY}.` })),
        key: USED_KEY,
      }, { examples: [{ ...ownViewOf(example), key: null }] }),
    ),
    /** A new account as the client that created it sees it. */
    signedUpAccount: named(
      "SignedUpAccount",
      output({ id, name, plan, apiKey }, {
        examples: [{ id: EXAMPLE_ACCOUNT_ID, name: example.name, plan: example.plan, apiKey: exampleKey }],
      }),
    ),
    /** The response to a rotation by a client. */
    rotatedKey: named(
      "RotatedKey",
      output({
        apiKey,
        previousKeyExpiresAt: nullable(timestamp({ description: KEY_EXPIRY })),
        addedKeys: KEPT_KEYS,
      }, {
        examples: [{ apiKey: exampleKey, previousKeyExpiresAt: "2026-11-21T21:47:39.746Z", addedKeys: [] }],
      }),
    ),
    /** Added keys of the account. */
    addedKeys: keySchemas(catalogue, apiKey, exampleKey),
  };
}

/** What the schemas have in common. */
function membersIn(catalogue: Catalogue) {
  const keys = new KeyForm(catalogue);
  const apiKey: Schema<string> = {
    ...text({ description: "The API key. It is shown only in this response." }),
    accepts: (value): value is string => typeof value === "string" && keys.environmentOf(value) !== undefined,
  };
  const names = planNames(catalogue.plans);
  const planName = named("Plan", oneOf(names));
  const members = membersOf(extensibleEnum(names, "The plan of the account"));
  const exampleKey = `${keyStart(catalogue.keyPrefix, "staging")}8vXn2QmT5kRj7LwZ3pYb9CdF1gHs4NaE6uVxWs`;
  return { planName, apiKey, members, example: exampleOf(catalogue.plans), exampleKey };
}

function exampleOf(plans: Plans): AccountView {
  const { plan, limits } = planOf(plans, {});
  return {
    id: EXAMPLE_ACCOUNT_ID,
    name: "me",
    reference: "customer-7",
    environment: "staging",
    plan,
    state: "active",
    limits,
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
  };
}

const USAGE_DAY = named(
  "UsageDay",
  output({
    date: date({ description: "The day (UTC)" }),
    admitted: count("Requests admitted. Never an undercount."),
    refused: count("Requests refused. May be an undercount."),
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

/** What a rotation can choose: how many seconds, at most `max`, the key that it replaces stays valid. */
export function rotation(
  name: string,
  { max, usual, example }: Readonly<Record<"max" | "usual" | "example", number>>,
  description: string,
): Schema<{ readonly graceSeconds: number }> {
  const graceSeconds = optional(integer(0, max, { description }), usual);
  return named(name, object({ graceSeconds }, { examples: [{ graceSeconds: example }] }));
}

/** An account and its usage. */
export type Seen = Pick<AccountState, "holder" | "usage">;

/** What is seen of an account at `now`. */
export function viewOf({ holder: account, usage: stored }: Seen, now: number): AccountView {
  const { id, name, environment, plan, limits, signedUp, createdAt } = account;
  const { suspendedAt, closedAt } = account;
  const usage = roll(stored, now);
  const isBanned = usage.bannedUntil > now;
  return {
    id,
    name,
    reference: referenceOf(account) ?? null,
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

/** What its own clients see of an account. */
export function ownViewOf(
  { id, name, plan, limits, usage, bannedUntil, createdAt, previousKeyExpiresAt }: AccountView,
) {
  const { used, reset } = usage.minute;
  const ownUsage = { minute: { used, reset }, day: usage.day };
  return { id, name, plan, limits, usage: ownUsage, bannedUntil, createdAt, previousKeyExpiresAt };
}

function count(description: string): ReturnType<typeof int64> {
  return int64({ minimum: 0, description });
}

function stateOf({ suspendedAt, closedAt }: Account, isBanned: boolean): typeof STATES[number] {
  if (closedAt !== null) return "closed";
  if (suspendedAt !== null) return "suspended";
  return isBanned ? "banned" : "active";
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
