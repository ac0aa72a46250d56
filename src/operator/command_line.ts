import { parseArgs } from "node:util";
import type { Issued } from "../accounts/account.ts";
import type { AccountStore } from "../accounts/account_store.ts";
import { StoreUnavailable } from "../kv/deadline.ts";
import { CorruptRow } from "../kv/row.ts";
import type { MessageStore } from "../messages/message_store.ts";
import type { PetStore } from "../pets/pet_store.ts";
import { type Transaction, Unresolved } from "../store/transaction.ts";

/** An operator's task in deno.json: a command, or a group from which the next word selects one. */
export type Task<Base = Stores> =
  | { readonly name: string; readonly command: Command<Base> }
  | CommandGroup<Base>;

/** A group of commands. */
interface CommandGroup<Base> {
  readonly name: string;
  readonly commands: Readonly<Record<string, Command<Base>>>;
  /** Follows the commands in the help. */
  readonly note?: string;
  /** Matches IDs and numbers, which may be logged. Other words may be names or keys. */
  readonly loggable: RegExp;
}

/** The declaration of a command. Its help, its words and its options are derived from its forms. */
export interface Command<Base = Stores> {
  /** Descriptions by usage, such as `ID [--grace 24h]`. A form with an empty description shares the next form's. */
  readonly forms: Readonly<Record<string, string>>;
  /** Parses the arguments, which match the forms. @throws {UsageError} */
  readonly prepare: (args: Arguments, io: CommandIo) => Work<Base>;
  /** Selects the lines of standard input to send, if the first word is `-`. @throws {CommandError} */
  readonly input?: (lines: readonly string[]) => readonly string[];
  /** Runs the command in the service, if one request is not enough. Resolves to the exit code. */
  readonly remotely?: (args: Arguments, send: Send, io: CommandIo) => Promise<number>;
}

/** The work of a prepared command. */
export type Work<Base = Stores> = (base: Base) => Promise<void>;

/** Runs a command line in the service, with this text as its standard input. Resolves to the exit code. */
export type Send = (args: readonly string[], input: string, io: CommandIo) => Promise<number>;

/** The stores that commands work on. */
export interface Stores {
  readonly accounts: AccountStore;
  readonly pets: PetStore;
  readonly messages: MessageStore;
  readonly transact: <Result>(transaction: Transaction<Result>) => Promise<Result>;
}

/** The arguments of a command. */
export interface Arguments {
  /** The whole command line. */
  readonly line: readonly string[];
  /** The full name of the command, such as `accounts rotate`. */
  readonly name: string;
  /** The words after the name. */
  readonly words: readonly string[];
  /** The values of each option. A flag has none. */
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** The environment of a command. */
export interface CommandIo {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Lines of standard input. */
  readonly input: () => Promise<readonly string[]>;
  /** Writes a line to standard output. */
  readonly out: (line: string) => Promise<void>;
  /** Writes a line to standard error. */
  readonly err: (line: string) => void;
  /** Whether the process is stopping, so that the command should end. */
  readonly isStopping: () => boolean;
  /** Whether output goes over the network, so that a written line may still be lost. */
  readonly isRemote: boolean;
}

/** A parsed command, ready to run. */
export interface Prepared<Base = Stores> {
  readonly command: Command<Base>;
  readonly args: Arguments;
  readonly work: Work<Base>;
}

/** The command line is invalid. The message says what was expected. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed. The message says why. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

const EXIT_CODES = "Exit codes: 0 success, 1 failure, 2 invalid arguments.";
const CONTEXT = `KV_PATH and ENVIRONMENT select the store and the kind of keys, as for deno task
start. With SERVICE_URL and OPERATOR_TOKEN, a running service runs the command.`;
const LIST = new Intl.ListFormat("en-GB");
const MARGIN = " ".repeat(21);
const MAX_COUNT = 1e12;
const MAX_GROUP = 100;
/** A long `-abc...`, for which `parseArgs` takes quadratic time. */
const LONG_GROUP = new RegExp(`^-[^-].{${MAX_GROUP - 1}}`, "su");

/**
 * Parses a command line, such as `["accounts", "list"]`, and calls `run` with the command. Resolves to the exit code: 0
 * success, 1 failure, 2 invalid arguments.
 *
 * @throws errors of `run` other than StoreUnavailable, CorruptRow and CommandError.
 */
export async function runCommandLine<Base>(
  tasks: readonly Task<Base>[],
  line: readonly string[],
  io: CommandIo,
  run: (prepared: Prepared<Base>) => Promise<number>,
): Promise<number> {
  try {
    const { task, rest, options } = parse(tasks, line);
    if (options.has("help")) {
      await io.out(helpOf(task));
      return 0;
    }
    const { command, name, words } = commandIn(task, rest);
    const args = { line, name, words, options };
    requireMatch(args, Object.keys(command.forms));
    return await run({ command, args, work: command.prepare(args, io) });
  } catch (error) {
    if (!(error instanceof UsageError)) return await explain(error, io);
    const { name } = tasks.find(({ name }) => name === line[0]) ?? tasks[0] ?? {};
    io.err(`${error.message}. See: deno task ${name} --help`);
    return 2;
  }
}

/**
 * Describes a command line for the log, such as `accounts close acct_4kQ0…`: the command with its IDs and numbers.
 * Empty if the command line is invalid.
 */
export function describeCommand<Base>(tasks: readonly Task<Base>[], line: readonly string[]): string {
  try {
    const { task, rest } = parse(tasks, line);
    const { name, words } = commandIn(task, rest);
    return [name, ...words.filter((word) => "loggable" in task && task.loggable.test(word))].join(" ");
  } catch (error) {
    if (error instanceof UsageError) return "";
    throw error;
  }
}

/** The output of `deno task NAME --help`. */
export function helpOf<Base>(task: Task<Base>): string {
  if ("command" in task) {
    const forms = Object.entries(task.command.forms).map(([form, text]) => `${form}\n\n${text}`);
    return `Usage: deno task ${task.name} ${forms.join("\n\n")}\n\n${EXIT_CODES}`;
  }
  const list = Object.entries(task.commands).flatMap(([name, { forms }]) =>
    Object.entries(forms).map(([form, text]) => describeForm(`  ${name} ${form}`, text))
  );
  const parts = [`Usage: deno task ${task.name} COMMAND`, list.join("\n"), ...(task.note ? [task.note] : [])];
  return [...parts, `${CONTEXT}\n${EXIT_CODES}`].join("\n\n");
}

/** A usage with its description beside it, or below a long usage. */
function describeForm(usage: string, text: string): string {
  const start = usage.length < MARGIN.length ? usage.padEnd(MARGIN.length) : `${usage}\n${MARGIN}`;
  return `${start}${text.replaceAll(/\n */g, `\n${MARGIN}`)}`.trimEnd();
}

/** Splits a command line into its task, the remaining words and the options. */
function parse<Base>(
  tasks: readonly Task<Base>[],
  line: readonly string[],
): { task: Task<Base>; rest: readonly string[]; options: Arguments["options"] } {
  if (line.some((arg) => LONG_GROUP.test(arg))) {
    throw new UsageError(`An argument that begins with one - must have at most ${MAX_GROUP} characters`);
  }
  const { positionals: [first, ...rest], values } = parseOptions(tasks, line);
  const task = tasks.find(({ name }) => name === first);
  if (task === undefined) {
    throw new UsageError(`The commands are ${LIST.format(tasks.map(({ name }) => name))}`);
  }
  const options = Object.entries(values).map(([name, value]) =>
    [name, Array.isArray(value) ? value.map(String) : []] as const
  );
  return { task, rest, options: new Map(options) };
}

/** Parses with the options of all commands, because the command is known only after the options have been parsed. */
function parseOptions<Base>(
  tasks: readonly Task<Base>[],
  line: readonly string[],
): { positionals: readonly string[]; values: Readonly<Record<string, unknown>> } {
  const commands = tasks.flatMap((task) => "command" in task ? [task.command] : Object.values(task.commands));
  const options = [...optionsIn(commands.flatMap(({ forms }) => Object.keys(forms)))].map(([name, type]) =>
    [name, { type, multiple: type === "string" }] as const
  );
  try {
    return parseArgs({
      args: [...line],
      allowPositionals: true,
      options: { ...Object.fromEntries(options), help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    const [reason] = error instanceof Error ? error.message.split(/\.\s/) : [];
    throw new UsageError(reason);
  }
}

/** The options in forms. An option without a value is a flag. */
function optionsIn(forms: readonly string[]): ReadonlyMap<string, "string" | "boolean"> {
  const options = forms.join("\n").matchAll(/--([\w-]+)( [\w.|]+)?/g);
  return new Map([...options].map(([, name = "", value]) => [name, value ? "string" : "boolean"]));
}

/** Finds a task's command by the first word. Returns it with its full name and the remaining words. */
function commandIn<Base>(
  task: Task<Base>,
  words: readonly string[],
): Pick<Prepared<Base>, "command"> & Pick<Arguments, "name" | "words"> {
  if ("command" in task) return { command: task.command, name: task.name, words };
  const [name, ...rest] = words;
  if (name === undefined) throw new UsageError("Name a command");
  const command = Object.hasOwn(task.commands, name) ? task.commands[name] : undefined;
  if (command === undefined) throw new UsageError(`There is no command ${task.name} ${name}`);
  return { command, name: `${task.name} ${name}`, words: rest };
}

/** What messages call the words in forms. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["ID", "an ID"],
  ["NAME", "a NAME"],
  ["PLAN", "a PLAN"],
  ["FILE", "a FILE"],
  ["N", "a number N"],
  ["-", "- and ids on standard input"],
]);

/** Requires as many words as the first form has, and only options that a form has. */
function requireMatch({ name, words, options }: Arguments, forms: readonly string[]): void {
  const known = optionsIn(forms);
  const unknown = options.keys().find((option) => !known.has(option));
  if (unknown !== undefined) throw new UsageError(`${name} has no option --${unknown}`);
  const expected = (forms[0] ?? "").replace(/ ?\[?--.*/, "").split(" ").filter((word) => word !== "");
  if (words.length < expected.length) {
    throw new UsageError(`${name} needs ${expected.map((word) => WORDS.get(word) ?? word).join(" and ")}`);
  }
  if (words.length > expected.length) {
    throw new UsageError(`${name} has no argument '${words[expected.length]}'`);
  }
}

/** Prints why a command failed. Throws unexpected errors. */
async function explain(error: unknown, { out, err, isRemote }: CommandIo): Promise<1> {
  const issued = issuedInDoubt(error);
  if (issued) {
    err(
      `The KV did not respond, so this key of ${issued.account.id} may not be valid. Try the key, or run the command again:`,
    );
    await out(issued.apiKey);
  } else if (error instanceof CommandError || error instanceof CorruptRow) err(`${error.message}.`);
  else if (error instanceof StoreUnavailable) {
    // KV's own message is shown only on this machine.
    const { message } = !isRemote && error.cause instanceof Error ? error.cause : error;
    err(`The KV does not respond: ${message}.`);
  } else throw error;
  return 1;
}

/** The new key that a transaction may have stored before KV stopped responding; undefined if there is none. */
export function issuedInDoubt(error: unknown): Issued | undefined {
  return error instanceof Unresolved && isIssued(error.result) ? error.result : undefined;
}

function isIssued(result: unknown): result is Issued {
  return typeof result === "object" && result !== null && "apiKey" in result;
}

/**
 * Parses a whole number from 1 to 10^12.
 *
 * @throws {UsageError} that names `name`, if the text is anything else.
 */
export function parseCount(name: string, text = ""): number {
  const count = /^\d{1,13}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COUNT) return count;
  throw new UsageError(`${name} must be a whole number from 1 to ${MAX_COUNT}`);
}
