import type { AccountStore } from "../accounts/account_store.ts";
import type { MessageStore } from "../messages/message_store.ts";
import type { PetStore } from "../pets/pet_store.ts";
import type { Transaction } from "../store/transaction.ts";

/** What commands work on. */
export interface Stores {
  readonly accounts: AccountStore;
  readonly pets: PetStore;
  readonly messages: MessageStore;
  /** Carries out a transaction. */
  readonly transact: <Result>(transaction: Transaction<Result>) => Promise<Result>;
}

/** What a command does, once it was understood. */
export type Command = (stores: Stores) => Promise<void>;

/** Where a command reads and writes. */
export interface Terminal {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Lines of standard input. */
  readonly input: () => Promise<readonly string[]>;
  /** Writes a line of output, for programs. */
  readonly out: (line: string) => Promise<void>;
  /** Writes a line for people. */
  readonly err: (line: string) => void;
  /** Whether the process is about to end, so that nothing more is to be begun. */
  readonly isStopping: () => boolean;
  /** Whether a line that was written may still be lost. */
  readonly isRemote: boolean;
}

/** A command line that was not understood; the message says what was expected. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command that could not be carried out; the message says why. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
