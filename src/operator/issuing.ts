import { ACCOUNT_NAME, type Issued, MAX_NAME_LENGTH } from "../accounts/account.ts";
import type { NewAccount } from "../accounts/account_store.ts";
import { isValid } from "../api/schema.ts";
import { StoreUnavailable } from "../kv/deadline.ts";
import { type Transaction, Unresolved } from "../store/transaction.ts";
import { describe } from "./account_view.ts";
import { CommandError, type Stores, type Terminal } from "./terminal.ts";

/** It is not known whether a key was issued; if it was, it is this one. */
export class IssueInDoubt extends StoreUnavailable {
  override readonly name = "IssueInDoubt";
  readonly issued: Issued;

  constructor(issued: Issued, cause: unknown) {
    super("It is not known whether the key was issued", { cause });
    this.issued = issued;
  }
}

/**
 * Carries out a transaction that issues a key, or none.
 *
 * @throws {IssueInDoubt}
 */
export async function issue<Result extends Issued | null>(
  { transact }: Stores,
  transaction: Transaction<Result>,
): Promise<Result> {
  try {
    return await transact(transaction);
  } catch (error) {
    if (error instanceof Unresolved && isIssued(error.result)) throw new IssueInDoubt(error.result, error);
    throw error;
  }
}

const CREATIONS_AT_ONCE = 500;
const REPLACE = "replace it with accounts rotate ID.";

/** What the name of an account must have, in words. */
export const EXPECTED_NAME: string = `1 to ${MAX_NAME_LENGTH} printable characters, not white space alone`;

/**
 * The names on lines of input, of which some may be empty.
 *
 * @throws {CommandError} which one is not a name.
 */
export function namesIn(lines: readonly string[]): readonly string[] {
  const names = lines.filter((line) => line !== "");
  const wrong = names.findIndex((name) => !isValid(ACCOUNT_NAME, name));
  if (wrong !== -1) throw new CommandError(`Name ${wrong + 1} must have ${EXPECTED_NAME}`);
  return names;
}

/** Makes an account for each name on standard input; prints `NAME<TAB>KEY` for each. */
export async function createMany(
  stores: Stores,
  plan: Omit<NewAccount, "name">,
  { input, out, err, clock, isStopping }: Terminal,
): Promise<void> {
  const names = namesIn(await input());
  const print = async ({ account, apiKey }: Issued) => {
    try {
      await out(`${account.name}\t${apiKey}`);
    } catch (error) {
      err(`The key of ${account.id} was not read, nor were those made with it: ${REPLACE}`);
      throw error;
    }
  };
  let made = 0;
  if (names.length === 0) err("Made 0 of 0 accounts.");
  for (let start = 0; start < names.length; start += CREATIONS_AT_ONCE) {
    if (isStopping()) throw new CommandError("The service is stopping; try the others again");
    const some = names.slice(start, start + CREATIONS_AT_ONCE);
    const results = await Promise.allSettled(
      some.map((name) => issue(stores, stores.accounts.creating({ ...plan, name }, clock()))),
    );
    for (const result of results) {
      if (result.status === "fulfilled") {
        await print(result.value);
        made++;
      } else {
        if (!(result.reason instanceof StoreUnavailable)) throw result.reason;
        if (!(result.reason instanceof IssueInDoubt)) continue;
        const { issued } = result.reason;
        err(`The KV did not answer: it is not known whether the key of ${issued.account.id} is valid:`);
        await print(issued);
      }
    }
    err(`Made ${made} of ${names.length} accounts.`);
    if (made < start + some.length) throw new CommandError("The others could not be made; try those again");
  }
}

/** Prints an account's new key; `what` was done is printed for people. */
export async function printKey(what: string, issued: Issued, { out, err }: Terminal): Promise<void> {
  err(`${what}: ${describe(issued.account)}`);
  err("This is the only time that the key is shown:");
  try {
    await out(issued.apiKey);
  } catch (error) {
    err(`It was not read: ${REPLACE}`);
    throw error;
  }
}

function isIssued(result: unknown): result is Issued {
  return typeof result === "object" && result !== null && "apiKey" in result;
}
