/** A promise that was put to the test, and what came of it. */
export interface Finding {
  readonly promise: string;
  readonly measured: string;
  readonly held: boolean;
}

/** How much of everything. */
export interface Effort {
  /** Kills of the service's process. */
  readonly kills: number;
  /** Kills of the KV Connect server that it stands on. */
  readonly storeKills: number;
  /** How often that server stands still, and for how many seconds. */
  readonly stops: number;
  readonly stopSeconds: number;
  /** How long processes contend for the same animals. */
  readonly seconds: number;
  /** Connections that do nothing good. */
  readonly connections: number;
  /** For how many seconds they, and then floods of unknown keys, last at least. */
  readonly siege: number;
  /** How many times as long as usual good clients may wait meanwhile, of a hundred the longest but one. */
  readonly patience: number;
  /** Addresses that send unknown keys. */
  readonly addresses: number;
  /** Weeks of simulated traffic, after a hundred days of it. */
  readonly weeks: number;
  /** How often a day its clients come. */
  readonly sessions: number;
}

/** What `deno task soak` does by default. */
export const FULL: Effort = {
  kills: 200,
  storeKills: 50,
  stops: 3,
  stopSeconds: 20,
  seconds: 60,
  connections: 10_000,
  siege: 15,
  patience: 25,
  addresses: 300_000,
  weeks: 5,
  sessions: 3,
};

/** Takes a line of progress. */
export type Note = (line: string) => void;

/** Puts a part of the service under stress. */
export type Part = (effort: Effort, note: Note) => Promise<Finding[]>;

/** That something happened as often as it has to. */
export function exactly(promise: string, value: number, expected: number): Finding {
  return { promise, measured: format(value), held: value === expected };
}

/** That something turned out as it was expected to. */
export function equal(promise: string, value: string, expected: string): Finding {
  return { promise, measured: value, held: value === expected };
}

/** That something is no more than a bound, which is printed. */
export function atMost(promise: string, value: number, bound: number, unit: string = ""): Finding {
  return { promise, measured: `${format(value)} of ${format(bound)}${unit}`, held: value <= bound };
}

/** That something happened often enough for the rest to mean anything. */
export function atLeast(promise: string, value: number, bound: number, unit: string = ""): Finding {
  return { promise, measured: `${format(value)}${unit}`, held: value >= bound };
}

function format(value: number): string {
  const digits = Math.abs(value) < 10 ? { maximumFractionDigits: 2 } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en-US", digits);
}

/** Resolves after `ms`. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
