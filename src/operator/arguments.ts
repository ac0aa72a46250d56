import { parseArgs } from "node:util";
import { PET_FIELDS } from "../pets/pet.ts";
import { isPlan, type Limits, type Plan, PLAN_LIMITS, PLANS } from "../accounts/account.ts";
import { type Command, type Terminal, UsageError } from "./terminal.ts";

/** What the help of every command says of how it exits. */
export const EXIT_CODES = "Exit codes: 0 done, 1 could not be done, 2 not understood.";

/** The options that commands take, each with text after it unless it is a flag. */
const OPTIONS = {
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  plan: { type: "string" },
  "per-minute": { type: "string" },
  "per-day": { type: "string" },
  grace: { type: "string" },
} as const;

/** An option for each field of an animal: a list is given by repeating it. */
const FIELD_OPTIONS = new Map(
  Object.keys(PET_FIELDS).map((name) => [optionOf(name), { type: "string", multiple: true }] as const),
);

/** A command line, taken apart. */
export interface Arguments {
  /** The words that name the command, such as `accounts` and `list`. */
  readonly command: readonly string[];
  /** Those after them. */
  readonly words: readonly string[];
  readonly options: {
    readonly [Name in keyof typeof OPTIONS]?: (typeof OPTIONS)[Name]["type"] extends "boolean" ? boolean
      : string;
  };
  /** What was given for fields of an animal, by name. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
}

/** The commands of a group by name, each with what it makes of its arguments. */
export interface Group {
  readonly help: string;
  /** The form of an id, or a number, which may be logged: what else operators type may be a name or a key. */
  readonly loggable: RegExp;
  /** Throw UsageError where they are not understood. */
  readonly commands: Readonly<Record<string, (args: Arguments, terminal: Terminal) => Command>>;
}

const MAX_GROUP = 100;
/** `-abc...`, for which `parseArgs` takes time that grows with the square of its length. No word is as long. */
const LONG_GROUP = new RegExp(`^-[^-].{${MAX_GROUP - 1}}`, "su");

/**
 * Takes a command line apart; its first `names` words name the command.
 *
 * @throws {UsageError} for an unknown option, or one without its value.
 */
export function parseArguments(args: readonly string[], names: number): Arguments {
  if (args.some((arg) => LONG_GROUP.test(arg))) {
    throw new UsageError(`An argument that begins with one - must have at most ${MAX_GROUP} characters`);
  }
  try {
    const { positionals, values: found } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...Object.fromEntries(FIELD_OPTIONS), ...OPTIONS },
    });
    const values = new Map<string, unknown>(Object.entries(found));
    const given = Object.keys(PET_FIELDS).flatMap((name) => {
      const texts = values.get(optionOf(name));
      return Array.isArray(texts) ? [[name, texts.map(String)] as const] : [];
    });
    const options = Object.fromEntries(
      Object.entries(found).filter(([name]) => !FIELD_OPTIONS.has(name)),
    );
    return {
      command: positionals.slice(0, names),
      words: positionals.slice(names),
      options,
      fields: new Map(given),
    };
  } catch (error) {
    throw new UsageError(
      error instanceof Error ? error.message.split(/\.\s/)[0] : "The options are not understood",
    );
  }
}

/** The option for a field: `category-id` for `categoryId`. */
export function optionOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/**
 * The words of a command, as many as have names, and none of the options that it has no use for.
 *
 * @throws {UsageError}
 */
export function expect(
  { command, words, options, fields }: Arguments,
  names: readonly string[],
  known: readonly string[] = [],
): readonly string[] {
  const name = command.join(" ");
  const given = [...Object.keys(options), ...[...fields.keys()].map(optionOf)];
  const unknown = given.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`${name} takes no --${unknown}`);
  if (words.length < names.length) throw new UsageError(`${name} needs ${names.join(" and ")}`);
  if (words.length > names.length) throw new UsageError(`${name} takes no argument '${words[names.length]}'`);
  return words;
}

/**
 * The plan and its limits, which Enterprise takes from `--per-minute` and `--per-day`.
 *
 * @throws {UsageError}
 */
export function parsePlan(plan: string, options: Arguments["options"]): { plan: Plan; limits: Limits } {
  if (!isPlan(plan)) throw new UsageError(`The plan must be one of ${PLANS.join(", ")}`);
  const { "per-minute": perMinute, "per-day": perDay } = options;
  if (plan !== "enterprise") {
    if (perMinute !== undefined || perDay !== undefined) {
      throw new UsageError(
        `--per-minute and --per-day are for enterprise; the ${plan} plan has fixed limits`,
      );
    }
    return { plan, limits: PLAN_LIMITS[plan] };
  }
  if (perMinute === undefined || perDay === undefined) {
    throw new UsageError("The enterprise plan requires --per-minute N and --per-day N");
  }
  return {
    plan,
    limits: { minute: parseCount("--per-minute", perMinute), day: parseCount("--per-day", perDay) },
  };
}

const MAX_COUNT = 1e12;

/**
 * A whole number from 1 to 10^12.
 *
 * @throws {UsageError} naming what was expected to be one.
 */
export function parseCount(name: string, text: string): number {
  const count = /^\d{1,13}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_COUNT) {
    throw new UsageError(`${name} must be a whole number from 1 to ${MAX_COUNT}`);
  }
  return count;
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/**
 * A duration such as `90s`, `30m`, `24h` or `7d`, in ms.
 *
 * @throws {UsageError}
 */
export function parseDuration(name: string, text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS.get(unit) ?? NaN);
  if (Number.isNaN(ms)) throw new UsageError(`${name} must be a duration such as 30m, 24h or 7d`);
  return ms;
}
