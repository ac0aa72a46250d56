import { parseArgs } from "node:util";
import { isPlan, type Limits, type Plan, PLAN_LIMITS, PLANS } from "../access/plans.ts";
import { UsageError } from "./command.ts";

/** A command line, taken apart. */
export interface Arguments {
  readonly words: readonly string[];
  readonly options: {
    readonly help?: boolean;
    readonly account?: string;
    readonly plan?: string;
    readonly "per-minute"?: string;
    readonly "per-day"?: string;
    readonly grace?: string;
  };
}

const UNITS: ReadonlyMap<string, number> = new Map([["s", 1_000], ["m", 60_000], ["h", 3_600_000], [
  "d",
  86_400_000,
]]);

/**
 * Takes a command line apart.
 *
 * @throws {UsageError} for an unknown option, or one without its value.
 */
export function parseArguments(args: readonly string[]): Arguments {
  const text = { type: "string" } as const;
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        account: text,
        plan: text,
        "per-minute": text,
        "per-day": text,
        grace: text,
      },
    });
    return { words: positionals, options: values };
  } catch (error) {
    throw new UsageError(
      error instanceof Error ? error.message.split(/\.\s/)[0] : "The options are not understood",
    );
  }
}

/**
 * Refuses options that a command has no use for.
 *
 * @throws {UsageError} naming the option.
 */
export function expectOptions(
  options: Arguments["options"],
  command: string,
  known: readonly string[],
): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`${command} takes no --${unknown}`);
}

/**
 * The plan and its limits, which Enterprise takes from `--per-minute` and `--per-day`.
 *
 * @throws {UsageError}
 */
export function parsePlan(
  plan: string | undefined,
  options: Arguments["options"],
): { plan: Plan; limits: Limits } {
  if (plan === undefined || !isPlan(plan)) {
    throw new UsageError(`The plan must be one of ${PLANS.join(", ")}`);
  }
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

/**
 * A whole number from 1 to 10^12.
 *
 * @throws {UsageError} naming what was expected to be one.
 */
export function parseCount(name: string, text: string | undefined): number {
  const count = text !== undefined && /^\d{1,13}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > 1e12) {
    throw new UsageError(`${name} must be a whole number from 1 to 1000000000000`);
  }
  return count;
}

/**
 * A duration such as `90s`, `30m`, `24h` or `7d`, in ms.
 *
 * @throws {UsageError}
 */
export function parseDuration(name: string, text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    throw new UsageError(`${name} must be a duration such as 30m, 24h or 7d`);
  }
  return Number(count) * (UNITS.get(unit) ?? 0);
}
