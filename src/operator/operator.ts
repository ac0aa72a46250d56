import { StoreUnavailable } from "../kv/deadline.ts";
import { CorruptRow } from "../kv/row.ts";
import { ACCOUNTS } from "./accounts.ts";
import { EXIT_CODES, type Group, parseArguments } from "./arguments.ts";
import { IssueInDoubt } from "./issuing.ts";
import { MESSAGES } from "./messages.ts";
import { PETS } from "./pets.ts";
import { type Command, CommandError, type Terminal, UsageError } from "./terminal.ts";

/**
 * Carries out an operator's command line, such as `["accounts", "list"]`: `run` has the command work, wherever
 * the stores are. Resolves to the exit code: 0 done, 1 could not be done, 2 not understood.
 *
 * @throws what `run` throws, other than StoreUnavailable and what a command throws.
 */
export async function carryOut(
  args: readonly string[],
  terminal: Terminal,
  run: (command: Command) => Promise<number>,
): Promise<number> {
  try {
    const command = commandOf(args, terminal);
    if (typeof command !== "string") return await run(command);
    await terminal.out(`${command}\n\n${SURROUNDINGS}`);
    return 0;
  } catch (error) {
    return await explain(error, args, terminal);
  }
}

const GROUPS: ReadonlyMap<string, Group> = new Map([
  ["accounts", ACCOUNTS],
  ["pets", PETS],
  ["messages", MESSAGES],
]);

const SURROUNDINGS = `KV_PATH names the store, and ENVIRONMENT what its keys are for, as for deno task start;
with SERVICE_URL and OPERATOR_TOKEN a running service does the work.
${EXIT_CODES}`;

/**
 * What a log may tell of a command line, such as `accounts close acct_4kQ0…`: the command, and ids and numbers after
 * it. Empty where it names no command, or is not understood.
 */
export function describeCommand(args: readonly string[]): string {
  try {
    const { command: [group = "", name = ""], words } = parseArguments(args, 2);
    const { commands = {}, loggable = /^$/ } = GROUPS.get(group) ?? {};
    if (!Object.hasOwn(commands, name)) return "";
    return [group, name, ...words.filter((word) => loggable.test(word))].join(" ");
  } catch (error) {
    if (error instanceof UsageError) return "";
    throw error;
  }
}

/** The work that a command line stands for; only the help where it asks for it. */
function commandOf(args: readonly string[], terminal: Terminal): Command | string {
  const parsed = parseArguments(args, 2);
  const [group = "", name] = parsed.command;
  const known = GROUPS.get(group);
  if (known === undefined) throw new UsageError("The commands are accounts, pets and messages");
  if (parsed.options.help) return known.help;
  if (name === undefined) throw new UsageError("A command is missing");
  const command = Object.hasOwn(known.commands, name) ? known.commands[name] : undefined;
  if (command === undefined) throw new UsageError(`There is no command ${group} ${name}`);
  return command(parsed, terminal);
}

async function explain(
  error: unknown,
  [group = ""]: readonly string[],
  { out, err, isRemote }: Terminal,
): Promise<number> {
  if (error instanceof UsageError) {
    err(`${error.message}. See: deno task ${GROUPS.has(group) ? group : "accounts"} --help`);
    return 2;
  }
  if (error instanceof IssueInDoubt) {
    const { account, apiKey } = error.issued;
    err(
      `The KV did not answer: it is not known whether this key of ${account.id} is valid. Try it, or again:`,
    );
    await out(apiKey);
  } else if (error instanceof CommandError || error instanceof CorruptRow) err(`${error.message}.`);
  else if (error instanceof StoreUnavailable) {
    // What KV itself said is for those who have it before them.
    const { message } = !isRemote && error.cause instanceof Error ? error.cause : error;
    err(`The KV does not answer: ${message}.`);
  } else throw error;
  return 1;
}
