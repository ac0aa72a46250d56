import { parseArgs } from "node:util";
import { CorruptRow, StoreUnavailable } from "../engine/mod.ts";
import { type Output, printable } from "./table.ts";

/** A task in deno.json for operators: one command, or a group from which the next word selects one. */
export type Task<Base> =
  | { readonly name: string; readonly command: Command<Base> }
  | CommandGroup<Base>;

/** A group of commands. */
export interface CommandGroup<Base> {
  readonly name: string;
  /** By name, which can have several words. */
  readonly commands: Readonly<Record<string, Command<Base>>>;
  /** Follows the commands in the help. */
  readonly note?: string;
}

/** The declaration of a command. Its usage, its words and its options are derived from it. */
export interface Command<Base> {
  /** The words after its name, such as `ID`. */
  readonly words?: readonly string[];
  /** Its options by name. */
  readonly options?: Readonly<Record<string, Option>>;
  /** What it does. */
  readonly help: string;
  /** Parses the arguments. @throws {UsageError} */
  readonly prepare: (args: Arguments, io: CommandIo) => Work<Base>;
}

/** An option of a command. */
export interface Option {
  /** Placeholder of its value, such as `N`; a flag has none. */
  readonly value?: string;
  readonly isRepeatable?: boolean;
}

/** The work of a prepared command. */
export type Work<Base> = (base: Base) => Promise<void>;

/** The arguments of a command. */
export interface Arguments {
  /** The full name of the command, such as `accounts rotate`. */
  readonly name: string;
  /** The words after the name. */
  readonly words: readonly string[];
  /** The values of each option. A flag has none. */
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** The environment of a command. */
export interface CommandIo extends Output {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Lines of standard input. */
  readonly input: () => Promise<readonly string[]>;
}

/** The command line is invalid. The message says what was expected. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed. The message says why, perhaps in a service's words. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  /** The code of the service's error; empty if there is none. */
  readonly code: string;

  constructor(message: string, code = "") {
    super(printable(message));
    this.code = code;
  }
}

/** The service refused the request as invalid. The message is the service's. */
export class InvalidArguments extends CommandError {
  override readonly name = "InvalidArguments";
}

const EXIT_CODES = "Exit codes: 0 success, 1 failure, 2 invalid arguments.";
const CONTEXT = `KV_PATH and ENVIRONMENT select the store and the kind of keys, as for deno task
start. With SERVICE_URL and OPERATOR_TOKEN, they are ignored, and a running service does the work.`;
const LIST = new Intl.ListFormat("en-GB");
const MARGIN = " ".repeat(21);
const WIDTH = 110 - MARGIN.length;
const MAX_COUNT = 1e12;

/**
 * Parses a command line, such as `["accounts", "list"]`, and calls `run` with the command's work. Resolves to the exit
 * code: 0 success, 1 failure, 2 invalid arguments.
 *
 * @throws errors of `run` other than StoreUnavailable, CorruptRow and CommandError.
 */
export async function runCommandLine<Base>(
  tasks: readonly Task<Base>[],
  line: readonly string[],
  io: CommandIo,
  run: (work: Work<Base>) => Promise<void>,
): Promise<number> {
  try {
    const [first, ...rest] = line;
    const task = tasks.find(({ name }) => name === first);
    if (task === undefined) {
      throw new UsageError(`The commands are ${LIST.format(tasks.map(({ name }) => name))}`);
    }
    const found = commandIn(task, rest);
    const { words, options } = parse(found?.rest ?? rest, found?.command.options);
    if (options.has("help")) {
      await io.out(helpOf(task));
      return 0;
    }
    if (found === undefined) throw noCommand(task, words);
    const { command, name } = found;
    requireWords(name, words, command);
    await run(command.prepare({ name, words, options }, io));
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) return explain(error, io);
    const { name } = tasks.find(({ name }) => name === line[0]) ?? tasks[0] ?? {};
    io.err(`${error.message}. See: deno task ${name} --help`);
    return 2;
  }
}

/** The output of `deno task NAME --help`. */
export function helpOf<Base>(task: Task<Base>): string {
  if ("command" in task) {
    return `Usage: deno task ${usageOf(task.name, task.command)}\n\n${task.command.help}\n\n${EXIT_CODES}`;
  }
  const list = Object.entries(task.commands).map(([name, command]) => {
    const usage = `  ${usageOf(name, command)}`;
    const start = usage.length < MARGIN.length ? usage.padEnd(MARGIN.length) : `${usage}\n${MARGIN}`;
    return start + wrapped(command.help).join(`\n${MARGIN}`);
  });
  const note = task.note === undefined ? [] : [task.note];
  return [`Usage: deno task ${task.name} COMMAND`, list.join("\n"), ...note, `${CONTEXT}\n${EXIT_CODES}`]
    .join("\n\n");
}

/** A command with its words and options, such as `rotate ID [--grace 24h]`. */
export function usageOf<Base>(name: string, { words = [], options = {} }: Command<Base>): string {
  const forms = Object.entries(options).map(([option, { value, isRepeatable }]) =>
    `[--${option}${value === undefined ? "" : ` ${value}`}]${isRepeatable ? "..." : ""}`
  );
  return [name, ...words, ...forms].join(" ");
}

/** The lines of a text that is broken at spaces. */
function wrapped(text: string): string[] {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

/** Parses the arguments of a command with these options. @throws {UsageError} */
function parse(
  args: readonly string[],
  options: Command<never>["options"] = {},
): Pick<Arguments, "words" | "options"> {
  const known = Object.entries(options).map(([name, { value }]) =>
    [name, value === undefined ? { type: "boolean" } : { type: "string", multiple: true }] as const
  );
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...Object.fromEntries(known), help: { type: "boolean", short: "h" } },
    });
    const given = Object.entries(values).map(([name, value]) =>
      [name, Array.isArray(value) ? value.map(String) : []] as const
    );
    return { words: positionals, options: new Map(given) };
  } catch (error) {
    const [reason] = error instanceof Error ? error.message.split(/\.\s/) : [];
    throw new UsageError(reason);
  }
}

/** A task's command, with its full name and the arguments after it; undefined if they do not begin with its name. */
function commandIn<Base>(
  task: Task<Base>,
  args: readonly string[],
): { command: Command<Base>; name: string; rest: readonly string[] } | undefined {
  if ("command" in task) return { command: task.command, name: task.name, rest: args };
  for (const [name, command] of Object.entries(task.commands)) {
    const words = name.split(" ");
    const isMeant = words.every((word, index) => word === args[index]);
    if (isMeant) return { command, name: `${task.name} ${name}`, rest: args.slice(words.length) };
  }
  return undefined;
}

function noCommand<Base>(task: Task<Base>, words: readonly string[]): UsageError {
  if (words.length === 0 || "command" in task) return new UsageError("Name a command");
  const longest = Math.max(...Object.keys(task.commands).map((name) => name.split(" ").length));
  return new UsageError(`There is no command ${[task.name, ...words.slice(0, longest)].join(" ")}`);
}

/** What messages call a word of a command, such as `an ID`. */
function withArticle(word: string): string {
  if (word === "-") return "- and ids on standard input";
  if (word === "N") return "a number N";
  return `${/^[AEIO]/.test(word) ? "an" : "a"} ${word}`;
}

/** Requires as many words as the command has. */
function requireWords<Base>(
  name: string,
  words: readonly string[],
  { words: expected = [] }: Command<Base>,
): void {
  if (words.length < expected.length) {
    throw new UsageError(`${name} needs ${expected.map(withArticle).join(" and ")}`);
  }
  if (words.length > expected.length) {
    throw new UsageError(`${name} has no argument '${words[expected.length]}'`);
  }
}

/** Prints why a command failed. Returns the exit code. Throws unexpected errors. */
function explain(error: unknown, { err }: CommandIo): 1 | 2 {
  if (error instanceof CommandError || error instanceof CorruptRow) err(`${error.message}.`);
  else if (error instanceof StoreUnavailable) {
    err(`The KV does not respond: ${printable(error.logReason)}.`);
  } else throw error;
  return error instanceof InvalidArguments ? 2 : 1;
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
