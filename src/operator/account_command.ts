// What commands on one account share.
import type { Schema } from "../web/schema.ts";
import { ACCOUNTS_PATH } from "../accounts/operated_account.ts";
import type { Client } from "./client.ts";
import { type Arguments, type Command, type CommandIo, UsageError } from "./command_line.ts";

/** The method of a request, what follows the account's path, and its body. */
export type AccountRequest = readonly [method: string, path?: string, body?: unknown];

/** A command that sends one request about the account whose ID is the first word, and prints the result. */
export interface AccountCommand<Result> extends Pick<Command<Client>, "options" | "help"> {
  readonly result: Schema<Result>;
  readonly request: (args: Arguments) => AccountRequest;
  readonly print: (result: Result, io: CommandIo) => Promise<void> | void;
}

/** Declares such a command. */
export function ofAccount<Result>(
  { result, request, print, ...rest }: AccountCommand<Result>,
): Command<Client> {
  return {
    ...rest,
    words: ["ID"],
    prepare(args, io) {
      const id = idIn(args);
      const [method, path = "", body] = request(args);
      return async (client) =>
        await print(await client.call(method, accountPathOf(id) + path, result, body), io);
    },
  };
}

/** The ID that is the first word. @throws {UsageError} */
export function idIn({ name, words: [id = ""] }: Arguments): string {
  if (/_(?:live|test)_/.test(id)) {
    throw new UsageError(`${name} needs the account's ID, acct_..., not its key`);
  }
  if (!/^\w+$/.test(id)) throw new UsageError("The ID must have only letters, digits and _");
  return id;
}

/** The path of an account. */
export function accountPathOf(id: string): string {
  return `${ACCOUNTS_PATH}/${id}`;
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Parses a duration such as `90s`, `30m`, `24h` or `7d`, in seconds. */
export function parseSeconds(name: string, text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (UNITS[unit] ?? NaN);
  if (Number.isNaN(seconds)) throw new UsageError(`${name} must be a duration such as 30m, 24h or 7d`);
  return seconds;
}

/** Prints an API key alone on standard output. `lost` says what to do if that fails. */
export async function printApiKey(apiKey: string, lost: string, { out, err }: CommandIo): Promise<void> {
  err("The key is shown only once, on standard output.");
  try {
    await out(apiKey);
  } catch (error) {
    err(`The key could not be printed: ${lost}`);
    throw error;
  }
}
