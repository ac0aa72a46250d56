import { pause } from "../base/mod.ts";
import { StoreUnavailable } from "../engine/mod.ts";
import { REPLAY_HOURS } from "../web/headers.ts";
import { isValid, type Parsed, stringifyJson } from "../web/schema.ts";
import type { Limits } from "../limits/mod.ts";
import type { Plans } from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { ACCOUNT_NAME, generatedReference, MAX_NAME_LENGTH } from "../accounts/account.ts";
import {
  type AccountView,
  MAX_BATCH,
  MAX_LISTED,
  type OperatorSchemas,
  operatorSchemas,
  STATES,
  USAGE_DAYS,
} from "../accounts/account_view.ts";
import { ENVIRONMENTS_READ, foreignWarning } from "../accounts/account_store.ts";
import { ACCOUNTS_PATH } from "../accounts/operated_account.ts";
import { APPLIED, REFERENCE } from "../accounts/operator_account_operations.ts";
import { planNames } from "../accounts/plans.ts";
import {
  accountPathOf,
  type AccountRequest,
  idIn,
  ofAccount,
  parseSeconds,
  printApiKey,
} from "./account_command.ts";
import { type Client, Unanswered } from "./client.ts";
import {
  type Arguments,
  type Command,
  CommandError,
  type CommandGroup,
  type CommandIo,
  parseCount,
  UsageError,
} from "./command_line.ts";
import { keyCommands } from "./key_commands.ts";
import { type Columns, printable, printableJson, startTable } from "./table.ts";

type IssuedKey = Parsed<OperatorSchemas["issued"]>;

/** A plan as requests have it. */
interface ChosenPlan {
  readonly plan: string;
  readonly limits?: Limits;
}

const EXPECTED_NAME = `1 to ${MAX_NAME_LENGTH} printable characters, not only whitespace`;
const REPLACE = "replace it with accounts rotate ID.";
const OF_PLAN = { "per-minute": { value: "N" }, "per-day": { value: "N" } };

/** Commands on accounts, with the plans of a catalogue. */
export function accountCommands(catalogue: Catalogue): CommandGroup<Client> {
  const { plans } = catalogue;
  const schemas = operatorSchemas(catalogue);
  return {
    name: "accounts",
    note: "ID is the acct_... that create and list print, not the key.",
    commands: {
      create: createCommand(plans, schemas),
      list: listCommand(plans, schemas),
      ...readingCommands(schemas),
      rotate: rotateCommand(schemas),
      ...keyCommands(catalogue, schemas),
      plan: planCommand(plans, schemas),
      ...changingCommands(schemas),
      "apply-plans": APPLY_PLANS,
      delete: DELETE,
    },
  };
}

function createCommand(plans: Plans, schemas: OperatorSchemas): Command<Client> {
  return {
    words: ["NAME"],
    options: { plan: { value: planNames(plans).join("|") }, ...OF_PLAN, reference: { value: "TEXT" } },
    help:
      `create an account and print its API key, which is shown only once; the default plan is ${plans.signUp}, and
      ${plans.own} needs --per-minute and --per-day. No two accounts can have the same --reference, such as your own
      id of a customer. If NAME is -, create an account for each name on standard input, and print NAME, a tab and
      the key of each; if you press Ctrl-C, some accounts may exist whose keys were not printed: see accounts list`,
    prepare({ words: [name = ""], options }, io) {
      const plan = parsePlan(plans, options.get("plan")?.at(-1) ?? plans.signUp, options);
      if (name !== "-") requireName(name);
      const reference = referenceIn(options);
      if (reference !== undefined && name === "-") {
        throw new UsageError("--reference is for one NAME, not for -");
      }
      return async (client) => {
        const first = firstAccounts(schemas, client);
        const made: AccountView[] = [];
        const collect = ({ account }: IssuedKey) => void made.push(account);
        if (name === "-") await createMany(plan, schemas, client, io, collect);
        else {
          await create([{ name, reference }], plan, schemas, client, io, async (issued) => {
            await printKey("Created", issued, io);
            collect(issued);
          });
        }
        warnIfForeign(await first, made, io);
      };
    },
  };
}

/** The first accounts, which are read while others are created. If that fails, none, because it must not hide a key. */
function firstAccounts(schemas: OperatorSchemas, client: Client): Promise<readonly AccountView[]> {
  return client.call("GET", `${ACCOUNTS_PATH}?limit=${ENVIRONMENTS_READ}`, schemas.accounts).catch(() => []);
}

/** Warns if new accounts have another environment than all of those that were there before. */
function warnIfForeign(
  first: readonly AccountView[],
  made: readonly AccountView[],
  { err }: CommandIo,
): void {
  const own = new Set(made.map(({ id }) => id));
  const others = new Set(first.filter(({ id }) => !own.has(id)).map(({ environment }) => environment));
  const [{ environment } = {}] = made;
  const warning = environment && foreignWarning(others, environment);
  if (warning) err(warning);
}

function listCommand(plans: Plans, schemas: OperatorSchemas): Command<Client> {
  return {
    options: {
      json: {},
      reference: { value: "TEXT" },
      state: { value: STATES.join("|") },
      plan: { value: planNames(plans).join("|") },
    },
    help:
      `list all accounts: id, name, environment, plan, limits, state, requests today, last used; --reference, --state
      and --plan leave out all others, and --json prints every field`,
    prepare({ options }, io) {
      const [reference, state, plan] = [
        referenceIn(options),
        choiceIn(options, "state", STATES),
        choiceIn(options, "plan", planNames(plans)),
      ];
      const search = new URLSearchParams({
        limit: `${MAX_LISTED}`,
        ...(reference !== undefined && { reference }),
        ...(state !== undefined && { state }),
        ...(plan !== undefined && { plan }),
      });
      return async (client) => {
        const all = await client.list(`${ACCOUNTS_PATH}?${search}`, schemas.accounts);
        const write = options.has("json") ? jsonWriter(io) : startTable(COLUMNS, false, io);
        for await (const account of all) await write(account);
      };
    },
  };
}

/** Returns a function that writes an account as a line of JSON: the columns of the table, and all of its fields. */
function jsonWriter({ out }: CommandIo): (account: AccountView) => Promise<void> {
  return (account) => {
    const cells = Object.entries(COLUMNS).map(([name, cellOf]) => [name, cellOf(account)] as const);
    return out(printableJson(stringifyJson({ ...Object.fromEntries(cells), ...account })));
  };
}

/** Commands that show an account or its usage. */
function readingCommands(schemas: OperatorSchemas): Readonly<Record<string, Command<Client>>> {
  return {
    show: ofAccount({
      help: "print an account and its usage, as JSON",
      result: schemas.account,
      request: () => ["GET"],
      print: (account, { out }) => out(printableJson(JSON.stringify(account, null, 2))),
    }),
    usage: ofAccount({
      options: { days: { value: "N" } },
      help:
        "print the account's admitted and refused requests per day, starting with today; by default of 30 days",
      result: USAGE_DAYS,
      request({ options }) {
        const days = options.get("days")?.at(-1);
        return ["GET", `/usage${days === undefined ? "" : `?days=${parseCount("--days", days)}`}`];
      },
      async print(days, io) {
        const write = startTable(USAGE_COLUMNS, false, io);
        for (const day of days) await write(day);
      },
    }),
  };
}

function rotateCommand({ rotated }: OperatorSchemas): Command<Client> {
  return ofAccount({
    options: { grace: { value: "24h" } },
    help:
      `create and print a new first key for the account; all earlier keys and all added keys stop working immediately,
        except that --grace (s, m, h or d) keeps the current one valid for that long, and the added ones for good`,
    result: rotated,
    request({ options }) {
      const grace = options.get("grace")?.at(-1);
      return ["POST", "/rotate", { graceSeconds: grace === undefined ? 0 : parseSeconds("--grace", grace) }];
    },
    async print({ addedKeys = [], endedKeys = 0, ...issued }, io) {
      await printKey("Rotated", issued, io);
      if (endedKeys > 0) io.err(`Added keys that stopped working: ${endedKeys}.`);
      for (const { id, label } of addedKeys) io.err(printable(`Still valid: ${id}, ${label}.`));
    },
  });
}

function planCommand(plans: Plans, schemas: OperatorSchemas): Command<Client> {
  return {
    ...change(
      schemas,
      "Moved",
      "move the account to another plan",
      ({ words: [, plan = ""], options }) => ["PATCH", "", parsePlan(plans, plan, options)],
    ),
    words: ["ID", "PLAN"],
    options: OF_PLAN,
  };
}

/** Commands that change an account. */
function changingCommands(schemas: OperatorSchemas): Readonly<Record<string, Command<Client>>> {
  return {
    rename: {
      ...change(schemas, "Renamed", "change the account's name", ({ words: [, name = ""] }) => {
        requireName(name);
        return ["PATCH", "", { name }];
      }),
      words: ["ID", "NAME"],
    },
    reference: {
      ...change(
        schemas,
        "Reference set",
        "give the account a reference, such as your own id of a customer, if it has none; it never changes",
        ({ words: [, reference = ""] }) => {
          requireReference("The REFERENCE", reference);
          return ["PATCH", "", { reference }];
        },
      ),
      words: ["ID", "REFERENCE"],
    },
    suspend: change(
      schemas,
      "Suspended",
      `refuse every request from the account with 403 account_suspended, until you run resume ID; its keys and items
        stay, and no other command ends the suspension`,
      () => ["PATCH", "", { suspended: true }],
    ),
    resume: change(
      schemas,
      "Resumed",
      "end the account's suspension",
      () => ["PATCH", "", { suspended: false }],
    ),
    unban: change(
      schemas,
      "Unbanned",
      "end the account's ban, and clear its refusals and earlier bans",
      () => ["POST", "/unban"],
    ),
    reset: change(
      schemas,
      "Reset",
      "set the account's usage for this minute and today to zero; a ban stays",
      () => ["POST", "/reset"],
    ),
    close: change(
      schemas,
      "Closed",
      "close the account permanently; its keys stop working",
      () => ["POST", "/close"],
    ),
  };
}

const APPLY_PLANS: Command<Client> = {
  help:
    `give each open account the limits that its plan has now: run it after a release that changes a plan; it can
        safely be repeated`,
  prepare(_args, { err }) {
    return async (client) => {
      let [checked, changed] = [0, 0];
      let next: string | null = "";
      while (next !== null) {
        const target: string = `${ACCOUNTS_PATH}/apply-plans${next && `?cursor=${next}`}`;
        const page: Parsed<typeof APPLIED> = await client.call("POST", target, APPLIED);
        checked += page.checked;
        changed += page.changed;
        next = page.next;
        if (next === null || checked % PROGRESS === 0) {
          err(`Checked ${checked} accounts, changed ${changed}.`);
        }
      }
    };
  },
};

const DELETE: Command<Client> = {
  words: ["ID"],
  help:
    `delete an account that was closed at least a minute ago, with its data and the items that only it can read;
    items that everyone can read stay, and the responses stored for its Idempotency-Keys stay for ${REPLAY_HOURS} hours`,
  prepare(args, { err }) {
    const id = idIn(args);
    return async (client) => {
      await client.send("DELETE", accountPathOf(id));
      err(`Deleted: account ${id}.`);
    };
  },
};

/** A command that changes an account, and prints `what` was done, such as `Resumed`. */
function change(
  { account: result }: OperatorSchemas,
  what: string,
  help: string,
  request: (args: Arguments) => AccountRequest,
): Command<Client> {
  const print = (account: AccountView, { err }: CommandIo) => err(`${what}: ${describe(account)}`);
  return ofAccount({ help, result, request, print });
}

/** @throws {UsageError} */
function requireName(name: string): void {
  if (!isValid(ACCOUNT_NAME, name)) throw new UsageError(`The NAME must have ${EXPECTED_NAME}`);
}

/** @throws {UsageError} */
function requireReference(subject: string, reference: string): void {
  if (isValid(REFERENCE, reference)) return;
  throw new UsageError(`${subject} must have 1 to 100 visible ASCII characters`);
}

/** The value of --reference. @throws {UsageError} */
function referenceIn(options: Arguments["options"]): string | undefined {
  const reference = options.get("reference")?.at(-1);
  if (reference !== undefined) requireReference("--reference", reference);
  return reference;
}

/** The value of an option that has one of these. @throws {UsageError} */
function choiceIn(
  options: Arguments["options"],
  name: string,
  choices: readonly string[],
): string | undefined {
  const choice = options.get(name)?.at(-1);
  if (choice === undefined || choices.includes(choice)) return choice;
  throw new UsageError(`--${name} must be one of ${choices.join(", ")}`);
}

/** Parses a plan and its limits. Those that are agreed come from `--per-minute` and `--per-day`. */
function parsePlan(plans: Plans, plan: string, options: Arguments["options"]): ChosenPlan {
  const names = planNames(plans);
  if (!names.includes(plan)) throw new UsageError(`The plan must be one of ${names.join(", ")}`);
  const perMinute = options.get("per-minute")?.at(-1);
  const perDay = options.get("per-day")?.at(-1);
  if (plan !== plans.own) {
    if (perMinute === undefined && perDay === undefined) return { plan };
    throw new UsageError(
      `--per-minute and --per-day are for ${plans.own}; the ${plan} plan has fixed limits`,
    );
  }
  if (perMinute === undefined || perDay === undefined) {
    throw new UsageError(`The ${plan} plan requires --per-minute N and --per-day N`);
  }
  return {
    plan,
    limits: { minute: parseCount("--per-minute", perMinute), day: parseCount("--per-day", perDay) },
  };
}

/** The names in lines of input, without empty lines. @throws {CommandError} if a name is invalid. */
function namesIn(lines: readonly string[]): readonly string[] {
  const names = lines.filter((line) => line !== "");
  const wrong = names.findIndex((name) => !isValid(ACCOUNT_NAME, name));
  if (wrong !== -1) throw new CommandError(`Name ${wrong + 1} must have ${EXPECTED_NAME}`);
  return names;
}

/** Pauses before a request that got no response is repeated, in ms. */
const PAUSES = [1_000, 5_000, 15_000];

/**
 * Creates accounts, and passes each with its key to `print`. Repeats what gets no response. If an account then exists,
 * its key was lost, and it gets a new one. An account with a given reference may be another, so it keeps its key.
 */
async function create(
  accounts: readonly { readonly name: string; readonly reference?: string | undefined }[],
  plan: ChosenPlan,
  schemas: OperatorSchemas,
  client: Client,
  { err }: CommandIo,
  print: (issued: IssuedKey) => Promise<void>,
): Promise<void> {
  const given = new Set(accounts.map(({ reference }) => reference));
  let left = accounts.map(({ name, reference = generatedReference() }) => ({ name, reference }));
  const attempt = async () => {
    const body = { ...plan, accounts: left };
    const creations = await client.call("POST", `${ACCOUNTS_PATH}/batch`, schemas.creations, body);
    for (const { reference, accountId: id, ...created } of creations) {
      if (id !== undefined && given.has(reference)) {
        throw new CommandError(
          `Account ${id} has this reference. To give it a new key: accounts rotate ${id}`,
        );
      }
      const { account, apiKey } = id
        ? await client.call("POST", `${accountPathOf(id)}/rotate`, schemas.issued)
        : created;
      if (account === undefined || apiKey === undefined) continue;
      await print({ account, apiKey });
      left = left.filter((one) => one.reference !== reference);
    }
    if (left.length > 0) throw new Unanswered("Some accounts were not created");
  };
  for (const ms of PAUSES) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Unanswered || error instanceof StoreUnavailable)) throw error;
      err(`${error.message}. Trying again in ${ms / 1_000} s.`);
      await pause(ms);
    }
  }
  await attempt();
}

/** Number of creations after which progress is printed. */
const PROGRESS = 500;

/** Creates an account for each name on standard input. Prints `NAME<TAB>KEY` for each, and passes it to `collect`. */
async function createMany(
  plan: ChosenPlan,
  schemas: OperatorSchemas,
  client: Client,
  io: CommandIo,
  collect: (issued: IssuedKey) => void,
): Promise<void> {
  const names = namesIn(await io.input());
  let made = 0;
  const printProgress = () => io.err(`Created ${made} of ${names.length} accounts.`);
  if (names.length === 0) printProgress();
  for (let start = 0; start < names.length; start += MAX_BATCH) {
    const some = names.slice(start, start + MAX_BATCH).map((name) => ({ name }));
    try {
      await create(some, plan, schemas, client, io, async (issued) => {
        await io.out(`${printable(issued.account.name)}\t${issued.apiKey}`);
        collect(issued);
        made++;
      });
    } catch (error) {
      printProgress();
      const last = names[start + some.length - 1];
      io.err(`More accounts, up to ${last}, may exist without a printed key: see accounts list.`);
      throw error;
    }
    if (made % PROGRESS === 0 || made === names.length) printProgress();
  }
}

/** Prints an account's new key. `what` is the participle to print, such as `Created`. */
async function printKey(what: string, { account, apiKey }: IssuedKey, io: CommandIo): Promise<void> {
  io.err(`${what}: ${describe(account)}`);
  await printApiKey(apiKey, REPLACE, io);
}

/** Columns of `accounts list`. */
const COLUMNS: Columns<AccountView> = {
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

/** Columns of `accounts usage`. */
const USAGE_COLUMNS: Columns<Parsed<typeof USAGE_DAYS>[number]> = {
  date: ({ date }) => date,
  admitted: ({ admitted }) => admitted,
  refused: ({ refused }) => refused,
};

/** Describes an account in one line. */
function describe({ id, name, environment, plan, limits: { minute, day } }: AccountView): string {
  const limits = `${minute} requests a minute, ${day} a day`;
  return printable(`${id}, ${name}, ${environment}, plan ${plan}, ${limits}.`);
}
