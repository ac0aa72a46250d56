import type { Store } from "../kv/store.ts";

/** What a command does, once it was understood. */
export type Command = (store: Store) => Promise<void>;

/** Where a command reads and writes. */
export interface Terminal {
  readonly env: (name: string) => string | undefined;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Writes a line of output, for programs. */
  readonly out: (line: string) => Promise<void>;
  /** Writes a line for people. */
  readonly err: (line: string) => void;
}

/** A command line that was not understood; the message says what was expected. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command that could not be carried out; the message says why. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
