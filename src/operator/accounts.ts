import { ACCOUNT_NAME, PLAN_LIMITS } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_store.ts";
import { pardon, reset } from "../accounts/usage.ts";
import { REPLAY_HOURS } from "../api/headers.ts";
import { isValid } from "../api/schema.ts";
import { ACCOUNT_COLUMNS, describe, detailsOf } from "./account_view.ts";
import { type Arguments, expect, type Group, parseDuration, parsePlan } from "./arguments.ts";
import { createMany, EXPECTED_NAME, issue, printKey } from "./issuing.ts";
import { printableJson, startTable } from "./table.ts";
import { CommandError, UsageError } from "./terminal.ts";

const HELP = `Usage: deno task accounts COMMAND

  create NAME [--plan ${Object.keys(PLAN_LIMITS).join("|")}]
  create NAME --plan enterprise --per-minute N --per-day N
                     make an account and print its API key on standard output, this once;
                     free unless told otherwise
  create - [--plan ...]
                     make one for each name on standard input; prints NAME, a tab, and the key. Cut
                     short over HTTP it may have made some that were not printed: see accounts list
  list [--json]      every account: id, name, environment, plan, limits, state, requests today, last used
  show ID            one account and its usage, as JSON
  rotate ID [--grace 24h]
                     give the account a new key, printed like the first; the one before ends
                     at once, or after a grace (s, m, h or d); one that had a grace ends at once
  plan ID PLAN [--per-minute N --per-day N]
                     move the account to another plan
  suspend ID         refuse every request of the account with 403 account_suspended, until resume ID; its keys
                     and animals stay, and whatever else is done to it leaves it suspended
  resume ID          end the account's suspension
  unban ID           end the account's ban, and forget its strikes and the bans before
  reset ID           forget what the account has used of its minute and its day, and show it no
                     more; a ban stays
  close ID           close the account for good; its key ends
  delete ID          remove a closed account with all that is stored of it, once its messages are
                     taken; its animals stay, and for ${REPLAY_HOURS} hours the replies to its Idempotency-Keys

ID is the acct_... that create and list print, not the key.`;

/** What operators do with accounts. */
export const ACCOUNTS: Group = {
  help: HELP,
  loggable: /^acct_[0-9A-Za-z]{16}$/,
  commands: {
    create(args, terminal) {
      const [name = ""] = expect(args, ["a NAME"], ["plan", "per-minute", "per-day"]);
      const plan = { ...parsePlan(args.options.plan ?? "free", args.options), signedUp: false };
      if (name === "-") return (stores) => createMany(stores, plan, terminal);
      if (!isValid(ACCOUNT_NAME, name)) throw new UsageError(`The NAME must have ${EXPECTED_NAME}`);
      return async (stores) => {
        const issued = await issue(stores, stores.accounts.creating({ ...plan, name }, terminal.clock()));
        await printKey("Made", issued, terminal);
      };
    },
    list(args, terminal) {
      expect(args, [], ["json"]);
      return async ({ accounts }) => {
        const write = startTable(ACCOUNT_COLUMNS, args.options.json === true, terminal);
        for await (const state of accounts.list()) await write({ ...state, now: terminal.clock() });
      };
    },
    show(args, { clock, out }) {
      const id = parseId(args);
      return async ({ accounts }) => {
        const state = await accounts.find(id);
        if (state === null) throw new CommandError(`There is no account with the id ${id}`);
        await out(printableJson(JSON.stringify(detailsOf({ ...state, now: clock() }), null, 2)));
      };
    },
    rotate(args, terminal) {
      const id = parseId(args, ["grace"]);
      const { grace } = args.options;
      const ms = grace === undefined ? 0 : parseDuration("--grace", grace);
      return async (stores) => {
        const issued = await issue(stores, stores.accounts.rotating(id, ms, terminal.clock()));
        await printKey("Rotated", found(issued, id), terminal);
      };
    },
    plan(args, { err }) {
      const [id = "", name = ""] = expect(args, ["an ID", "a PLAN"], ["per-minute", "per-day"]);
      requireId(id, args);
      const plan = parsePlan(name, args.options);
      return async ({ accounts, transact }) => {
        err(`Moved: ${describe(found(await transact(accounts.changing(id, plan)), id))}`);
      };
    },
    suspend(args, { clock, err }) {
      const id = parseId(args);
      return async ({ accounts, transact }) => {
        const account = found(await transact(accounts.suspending(id, clock())), id);
        err(
          `${account.suspendedAt === null ? "Suspended" : "It was suspended already"}: ${describe(account)}`,
        );
      };
    },
    resume(args, { err }) {
      const id = parseId(args);
      return async ({ accounts, transact }) => {
        const account = found(await transact(accounts.suspending(id, null)), id);
        err(`${account.suspendedAt === null ? "It was not suspended" : "Resumed"}: ${describe(account)}`);
      };
    },
    unban(args, { clock, err }) {
      const id = parseId(args);
      return async ({ accounts, transact }) => {
        const { account, usage } = found(await transact(accounts.changingUsage(id, pardon)), id);
        const wasBanned = usage.bannedUntil > clock();
        err(`${wasBanned ? "Unbanned" : "There was no ban; strikes are forgotten"}: ${describe(account)}`);
      };
    },
    reset(args, { clock, err }) {
      const id = parseId(args);
      return async ({ accounts, transact }) => {
        const resetting = accounts.changingUsage(id, (usage) => reset(usage, clock()));
        const { account } = found(await transact(resetting), id);
        err(`Reset: ${describe(account)}`);
      };
    },
    close(args, { clock, err }) {
      const id = parseId(args);
      return async ({ accounts, transact }) => {
        const account = found(await transact(accounts.changing(id, { closedAt: clock() })), id);
        err(`Closed: ${describe(account)}`);
      };
    },
    delete(args, { err }) {
      const id = parseId(args);
      return async ({ accounts, messages, transact }) => {
        const waiting = await messages.countWaiting(id);
        if (waiting > 0) throw new CommandError(`Messages of it still wait (${waiting}); take them first`);
        const isClosed = ({ account }: AccountState) => {
          if (account.closedAt === null) throw new CommandError(`Account ${id} is open; close it first`);
          return true;
        };
        if (!await transact(accounts.removing(id, isClosed))) {
          throw new CommandError(`There is no account with the id ${id}`);
        }
        await transact(messages.forgetting(id));
        err(`Deleted: account ${id}.`);
      };
    },
  },
};

function parseId(args: Arguments, known: readonly string[] = []): string {
  const [id = ""] = expect(args, ["an ID"], known);
  requireId(id, args);
  return id;
}

function requireId(id: string, { command }: Arguments): void {
  if (id.startsWith("as_")) {
    throw new UsageError(`${command.join(" ")} needs the account's ID, acct_..., not its key`);
  }
}

function found<Found>(found: Found | null, id: string): Found {
  if (found === null) throw new CommandError(`There is no open account with the id ${id}`);
  return found;
}
