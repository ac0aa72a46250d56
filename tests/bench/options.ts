import { parseArgs } from "node:util";
import { isWorkName, type WorkName, WORKS } from "./works.ts";

const SUBJECTS = ["comparison", "growth", "profile"] as const;

/** What to measure. */
export type Subject = typeof SUBJECTS[number];

/** What the command line asks for. */
export interface Options {
  readonly subject: Subject;
  readonly rounds: number;
  readonly seconds: number;
  readonly works: readonly WorkName[];
  readonly animals: number;
  readonly requests: number;
}

/** A command line that cannot be understood. */
export class UsageError extends Error {}

const WORK_NAMES = Object.keys(WORKS).filter(isWorkName);

/** What `--help` prints. */
export const HELP: string = `Measures the service beside other servers, how it grows, and where its time goes.

  deno task bench [options]           the comparison, as Markdown tables
  deno task bench growth [options]    commits, latency, memory and start-up as they grow
  deno task bench profile [options]   where the main thread's time goes

  --rounds N      rounds in which the servers take turns; medians are printed (5)
  --seconds N     length of one measurement (3)
  --only WORK     measure only this, may be repeated: ${WORK_NAMES.join(", ")}
  --animals N     growth: size of the largest catalogue (1000000)
  --requests N    growth: requests until memory is looked at last (1000000)
  --help          this text

Progress is written to standard error. Data is kept in data/ meanwhile. Needs wrk.`;

const FLAGS = {
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "3" },
  only: { type: "string", multiple: true },
  animals: { type: "string", default: "1000000" },
  requests: { type: "string", default: "1000000" },
  help: { type: "boolean", default: false },
} as const;

/**
 * Reads the command line; undefined when it asks for help.
 *
 * @throws {UsageError}
 */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const [subject = "comparison", ...rest] = positionals;
  if (!isSubject(subject) || rest.length > 0) {
    throw new UsageError(`unknown: ${positionals.join(" ")}`);
  }
  const { only = WORK_NAMES } = values;
  if (!only.every(isWorkName)) throw new UsageError(`--only takes one of ${WORK_NAMES.join(", ")}`);
  return {
    subject,
    works: only,
    rounds: positive("rounds", values.rounds),
    seconds: positive("seconds", values.seconds),
    animals: positive("animals", values.animals),
    requests: positive("requests", values.requests),
  };
}

function isSubject(text: string): text is Subject {
  return SUBJECTS.some((subject) => subject === text);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new UsageError(`--${name} takes a whole number from 1`);
  }
  return value;
}
