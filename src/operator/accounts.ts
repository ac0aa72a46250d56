import {
  type Account,
  ACCOUNT_NAME,
  isPlan,
  type Issued,
  type Limits,
  MAX_NAME_LENGTH,
  type Plan,
  PLAN_LIMITS,
  PLANS,
  previousKeyExpiry,
} from "../accounts/account.ts";
import type { AccountState, NewAccount } from "../accounts/account_store.ts";
import { dayEnd, hasCalled, minuteEnd, pardon, reset, roll } from "../accounts/usage.ts";
import { REPLAY_HOURS } from "../api/headers.ts";
import { isValid } from "../api/schema.ts";
import { StoreUnavailable } from "../kv/deadline.ts";
import {
  type Arguments,
  type Command,
  CommandError,
  type CommandIo,
  issuedInDoubt,
  parseCount,
  type Stores,
  type Task,
  UsageError,
} from "./command_line.ts";
import { type Columns, printable, printableJson, startTable } from "./table.ts";

const EXPECTED_NAME = `1 to ${MAX_NAME_LENGTH} printable characters, not only whitespace`;
const REPLACE = "replace it with accounts rotate ID.";

/** Commands on accounts. */
export const ACCOUNTS: Task = {
  name: "accounts",
  loggable: /^acct_[0-9A-Za-z]{16}$/,
  note: "ID is the acct_... that create and list print, not the key.",
  commands: {
    create: {
      forms: {
        [`NAME [--plan ${Object.keys(PLAN_LIMITS).join("|")}]`]: "",
        "NAME --plan enterprise --per-minute N --per-day N":
          `create an account and print its API key, which is shown only once; the default plan is free`,
        "- [--plan ...]": `create an account for each name on standard input; print NAME, a tab and the key
          of each. If a connection over HTTP breaks, some accounts may exist whose keys were not
          printed: see accounts list`,
      },
      input: namesIn,
      prepare({ words: [name = ""], options }, io) {
        const plan = { ...parsePlan(options.get("plan")?.at(-1) ?? "free", options), signedUp: false };
        if (name !== "-" && !isValid(ACCOUNT_NAME, name)) {
          throw new UsageError(`The NAME must have ${EXPECTED_NAME}`);
        }
        return async (stores) => {
          const { accounts, transact } = stores;
          const warning = await accounts.warning();
          if (warning !== undefined) io.err(warning);
          if (name === "-") return await createMany(stores, plan, io);
          await printKey("Created", await transact(accounts.creating({ ...plan, name }, io.clock())), io);
        };
      },
    },
    list: {
      forms: {
        "[--json]":
          "list all accounts: id, name, environment, plan, limits, state, requests today, last used",
      },
      prepare({ options }, io) {
        return async ({ accounts }) => {
          const write = startTable(COLUMNS, options.has("json"), io);
          for await (const state of accounts.list()) await write(detailsOf(state, io.clock()));
        };
      },
    },
    show: {
      forms: { ID: "print an account and its usage, as JSON" },
      prepare: onAccount(async (id, { accounts }, { clock, out }) => {
        const state = await accounts.find(id);
        if (state === null) throw new CommandError(`There is no account with the id ${id}`);
        await out(printableJson(JSON.stringify(detailsOf(state, clock()), null, 2)));
      }),
    },
    rotate: {
      forms: {
        "ID [--grace 24h]": `create and print a new key for the account; all earlier keys stop working
          immediately, except that --grace (s, m, h or d) keeps the current one valid for that long`,
      },
      prepare(args, io) {
        const id = idIn(args);
        const grace = args.options.get("grace")?.at(-1);
        const ms = grace === undefined ? 0 : parseDuration("--grace", grace);
        return async ({ accounts, transact }) => {
          const issued = await transact(accounts.rotating(id, ms, io.clock()));
          await printKey("Rotated", found(issued, id), io);
        };
      },
    },
    plan: {
      forms: { "ID PLAN [--per-minute N --per-day N]": "move the account to another plan" },
      prepare(args, { err }) {
        const id = idIn(args);
        const plan = parsePlan(args.words[1] ?? "", args.options);
        return async ({ accounts, transact }) => {
          err(`Moved: ${describe(found(await transact(accounts.changing(id, plan)), id))}`);
        };
      },
    },
    suspend: {
      forms: {
        ID: `refuse every request from the account with 403 account_suspended, until you run resume ID; its
          keys and animals stay, and no other command ends the suspension`,
      },
      prepare: onAccount(async (id, { accounts, transact }, { clock, err }) => {
        const before = found(await transact(accounts.suspending(id, clock())), id);
        err(`${before.suspendedAt === null ? "Suspended" : "Already suspended"}: ${describe(before)}`);
      }),
    },
    resume: {
      forms: { ID: "end the account's suspension" },
      prepare: onAccount(async (id, { accounts, transact }, { err }) => {
        const before = found(await transact(accounts.suspending(id, null)), id);
        err(`${before.suspendedAt === null ? "Not suspended" : "Resumed"}: ${describe(before)}`);
      }),
    },
    unban: {
      forms: { ID: "end the account's ban, and clear its refusals and earlier bans" },
      prepare: onAccount(async (id, { accounts, transact }, { clock, err }) => {
        const { account, usage } = found(await transact(accounts.changingUsage(id, pardon)), id);
        const wasBanned = usage.bannedUntil > clock();
        err(`${wasBanned ? "Unbanned" : "Not banned; earlier refusals were cleared"}: ${describe(account)}`);
      }),
    },
    reset: {
      forms: {
        ID: `set the account's usage for this minute and today to zero; a ban stays`,
      },
      prepare: onAccount(async (id, { accounts, transact }, { clock, err }) => {
        const resetting = accounts.changingUsage(id, (usage) => reset(usage, clock()));
        err(`Reset: ${describe(found(await transact(resetting), id).account)}`);
      }),
    },
    close: {
      forms: { ID: "close the account permanently; its keys stop working" },
      prepare: onAccount(async (id, { accounts, transact }, { clock, err }) => {
        const closing = accounts.changing(id, { closedAt: clock() });
        err(`Closed: ${describe(found(await transact(closing), id))}`);
      }),
    },
    delete: {
      forms: {
        ID: `delete a closed account and its data, after its messages have been taken; its animals stay,
          and the responses stored for its Idempotency-Keys stay for ${REPLAY_HOURS} hours`,
      },
      prepare: onAccount(async (id, { accounts, messages, transact }, { err }) => {
        const removal = accounts.removing(id, ({ account }) => {
          if (account.closedAt === null) throw new CommandError(`Account ${id} is open; close it first`);
          return true;
        });
        const removing = messages.forgetting(id, removal, (waiting) => {
          if (waiting === 0) return;
          throw new CommandError(`The account still has messages waiting (${waiting}); take them first`);
        });
        if (!await transact(removing)) throw new CommandError(`There is no account with the id ${id}`);
        err(`Deleted: account ${id}.`);
      }),
    },
  },
};

/** Prepares work on the account whose ID is the first word. */
function onAccount(
  work: (id: string, stores: Stores, io: CommandIo) => Promise<void>,
): Command["prepare"] {
  return (args, io) => {
    const id = idIn(args);
    return (stores) => work(id, stores, io);
  };
}

function idIn({ name, words: [id = ""] }: Arguments): string {
  if (id.startsWith("as_")) throw new UsageError(`${name} needs the account's ID, acct_..., not its key`);
  return id;
}

function found<Found>(found: Found | null, id: string): Found {
  if (found === null) throw new CommandError(`There is no open account with the id ${id}`);
  return found;
}

/** Parses a plan and its limits. Those of Enterprise come from `--per-minute` and `--per-day`. */
function parsePlan(plan: string, options: Arguments["options"]): { plan: Plan; limits: Limits } {
  if (!isPlan(plan)) throw new UsageError(`The plan must be one of ${PLANS.join(", ")}`);
  const perMinute = options.get("per-minute")?.at(-1);
  const perDay = options.get("per-day")?.at(-1);
  if (plan !== "enterprise") {
    if (perMinute === undefined && perDay === undefined) return { plan, limits: PLAN_LIMITS[plan] };
    throw new UsageError(`--per-minute and --per-day are for enterprise; the ${plan} plan has fixed limits`);
  }
  if (perMinute === undefined || perDay === undefined) {
    throw new UsageError("The enterprise plan requires --per-minute N and --per-day N");
  }
  const [minute, day] = [parseCount("--per-minute", perMinute), parseCount("--per-day", perDay)];
  return { plan, limits: { minute, day } };
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration such as `90s`, `30m`, `24h` or `7d`, in ms. */
function parseDuration(name: string, text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? NaN);
  if (Number.isNaN(ms)) throw new UsageError(`${name} must be a duration such as 30m, 24h or 7d`);
  return ms;
}

/** The names in lines of input, without empty lines. @throws {CommandError} if a name is invalid. */
function namesIn(lines: readonly string[]): readonly string[] {
  const names = lines.filter((line) => line !== "");
  const wrong = names.findIndex((name) => !isValid(ACCOUNT_NAME, name));
  if (wrong !== -1) throw new CommandError(`Name ${wrong + 1} must have ${EXPECTED_NAME}`);
  return names;
}

const CREATIONS_AT_ONCE = 500;

/** Creates an account for each name on standard input. Prints `NAME<TAB>KEY` for each. */
async function createMany(
  { accounts, transact }: Stores,
  plan: Omit<NewAccount, "name">,
  { input, out, err, clock, isStopping }: CommandIo,
): Promise<void> {
  const names = namesIn(await input());
  const print = async ({ account, apiKey }: Issued) => {
    try {
      await out(`${account.name}\t${apiKey}`);
    } catch (error) {
      err(`Neither the key of ${account.id} nor the keys created with it could be printed: ${REPLACE}`);
      throw error;
    }
  };
  let made = 0;
  if (names.length === 0) err("Created 0 of 0 accounts.");
  for (let start = 0; start < names.length; start += CREATIONS_AT_ONCE) {
    if (isStopping()) throw new CommandError("The service is stopping. Try the remaining names again");
    const some = names.slice(start, start + CREATIONS_AT_ONCE);
    const results = await Promise.allSettled(
      some.map((name) => transact(accounts.creating({ ...plan, name }, clock()))),
    );
    for (const result of results) {
      if (result.status === "fulfilled") {
        await print(result.value);
        made++;
      } else {
        if (!(result.reason instanceof StoreUnavailable)) throw result.reason;
        const issued = issuedInDoubt(result.reason);
        if (issued === undefined) continue;
        err(`The KV did not respond, so this key of ${issued.account.id} may not be valid:`);
        await print(issued);
      }
    }
    err(`Created ${made} of ${names.length} accounts.`);
    if (made < start + some.length) {
      throw new CommandError("The other accounts could not be created. Try the remaining names again");
    }
  }
}

/** Prints an account's new key. `what` is the participle to print, such as `Created`. */
async function printKey(what: string, issued: Issued, { out, err }: CommandIo): Promise<void> {
  err(`${what}: ${describe(issued.account)}`);
  err("The key is shown only once, on standard output.");
  try {
    await out(issued.apiKey);
  } catch (error) {
    err(`The key could not be printed: ${REPLACE}`);
    throw error;
  }
}

/** Columns of `accounts list`. */
const COLUMNS: Columns<ReturnType<typeof detailsOf>> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  environment: ({ environment }) => environment,
  plan: ({ plan }) => plan,
  perMinute: ({ limits }) => limits.minute,
  perDay: ({ limits }) => limits.day,
  state: ({ state }) => state,
  usedToday: ({ usage }) => usage.day.used,
  lastUsed: ({ lastUsed }) => lastUsed,
};

/** Everything that `accounts show` prints about an account at `now` (ms since the epoch). */
function detailsOf({ account, usage: stored }: AccountState, now: number) {
  const { id, name, environment, plan, limits, signedUp, createdAt, suspendedAt, closedAt } = account;
  const usage = roll(stored, now);
  const isBanned = usage.bannedUntil > now;
  return {
    id,
    name,
    environment,
    plan,
    state: stateOf(account, isBanned),
    limits,
    usage: {
      minute: { used: usage.used, start: iso(usage.minute), reset: iso(minuteEnd(usage)) },
      day: { used: usage.usedToday, reset: iso(dayEnd(usage)) },
      refusedThisMinute: usage.strikes,
    },
    bannedUntil: isBanned ? iso(usage.bannedUntil) : null,
    bans: usage.bans,
    signedUp,
    createdAt: iso(createdAt),
    suspendedAt: suspendedAt === null ? null : iso(suspendedAt),
    closedAt: closedAt === null ? null : iso(closedAt),
    /** Day of the last admitted request; null before the first. */
    lastUsed: hasCalled(stored) ? iso(stored.minute).slice(0, 10) : null,
    previousKeyExpiresAt: previousKeyExpiry(account, now),
  };
}

function stateOf({ suspendedAt, closedAt }: Account, isBanned: boolean): string {
  if (closedAt !== null) return "closed";
  if (suspendedAt !== null) return "suspended";
  return isBanned ? "banned" : "active";
}

/** Describes an account in one line. */
function describe({ id, name, environment, plan, limits: { minute, day } }: Account): string {
  const limits = `${minute} requests a minute, ${day} a day`;
  return `${id}, ${printable(name)}, ${environment}, plan ${plan}, ${limits}.`;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
