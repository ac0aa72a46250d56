/** A promise, what was measured, and whether it was kept. */
export interface Finding {
  readonly promise: string;
  readonly measured: string;
  readonly held: boolean;
}

/** How long and how hard each part stresses the service. */
export interface Effort {
  /** Kills of the service. */
  readonly kills: number;
  /** Number of bad connections. */
  readonly connections: number;
  /** Minimum duration of the bad connections, and of the flood of unknown keys after them, in seconds. */
  readonly minDuration: number;
  /** Maximum p99 latency of good clients in the meantime, as a multiple of the usual one. */
  readonly maxSlowdown: number;
  /** Number of addresses that send unknown keys. */
  readonly addresses: number;
}

/** Prints a line of progress. */
export type Note = (line: string) => void;

/** A part of the run: stresses the service and checks promises. */
export type Part = (effort: Effort, note: Note) => Promise<Finding[]>;

/** Kept if a value is exactly the expected one. */
export function exactly<Value extends number | string>(
  promise: string,
  value: Value,
  expected: Value,
): Finding {
  return { promise, measured: format(value), held: value === expected };
}

/** Kept if a value does not exceed a bound, which is printed. */
export function atMost(promise: string, value: number, bound: number, unit: string = ""): Finding {
  return { promise, measured: `${format(value)} of ${format(bound)}${unit}`, held: value <= bound };
}

/** Kept if a value reaches a bound, without which other findings would mean little. */
export function atLeast(promise: string, value: number, bound: number): Finding {
  return { promise, measured: format(value), held: value >= bound };
}

function format(value: number | string): string {
  if (typeof value === "string") return value;
  const digits = Math.abs(value) < 10 ? { maximumFractionDigits: 2 } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en-US", digits);
}
