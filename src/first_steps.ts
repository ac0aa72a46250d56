import { accountKey } from "./accounts/account.ts";
import { type Config, DEFAULT_KV_PATH } from "./config.ts";
import { isUrl, MEMORY } from "./kv/open.ts";
import type { Store } from "./kv/store.ts";
import { print } from "./stdio.ts";

/**
 * Prints what is missing where nobody can get a key; on a file without any account, that there is none and, outside
 * production, the commands that make one and use it at `origin`.
 */
export async function printFirstSteps(
  store: Store,
  { kvPath, environment, onDeploy, signUpIsOpen, operatorTokens }: Config,
  origin: string,
): Promise<void> {
  if (onDeploy && !signUpIsOpen && operatorTokens.length === 0) {
    print("Nobody can get an API key: set OPERATOR_TOKEN, for commands, or SIGN_UP=open.");
  }
  if (kvPath === undefined || kvPath === MEMORY || isUrl(kvPath)) return;
  const [account] = await store.list({ start: accountKey(""), end: accountKey("~") }, 1);
  if (account) return;
  if (environment === "production") return print(`There is no account in ${kvPath}.`);
  const variables = kvPath === DEFAULT_KV_PATH ? "" : `KV_PATH=${quoted(kvPath)} `;
  print(`
There is no account yet. In another terminal, make one and list the animals:

  KEY=$(${variables}deno task accounts create me)
  curl -H "Authorization: Bearer $KEY" ${origin}/v1/pets
`);
}

/** A word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
