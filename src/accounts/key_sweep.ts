import { decodeJson, decodeText, type Entry, type Store, type Transaction } from "../engine/mod.ts";
import { accountKey, apiKeyKey } from "./account.ts";

const PAGE = 100;
const END = apiKeyKey("~");

/**
 * Returns a sweep that looks at the next 100 rows of API keys at each call, and removes those that their account does
 * not have: a release that does not know added keys leaves their rows when it removes an account. It never asks to be
 * called again at once.
 */
export function createKeySweep(
  store: Store,
  run: (removal: Transaction<boolean>) => Promise<unknown>,
): () => Promise<false> {
  let start = apiKeyKey("");
  return async function sweepKeys(): Promise<false> {
    const rows = await store.list({ start, end: END }, PAGE);
    const last = rows.length === PAGE ? rows.at(-1) : undefined;
    start = last ? [...last.key, ""] : apiKeyKey("");
    const owners = rows.map((row) => accountKey(decodeJson<string>(row)));
    const accounts = await store.getMany(owners);
    for (const [index, { key }] of rows.entries()) {
      const [owner, account = null] = [owners[index], accounts[index]];
      if (owner && !names(account, key)) await run(removing(key, owner));
    }
    return false;
  };
}

/** Removes the row of an API key unless its account has the key. The result is whether it was removed. */
function removing(key: Deno.KvKey, owner: Deno.KvKey): Transaction<boolean> {
  return {
    reads: [owner],
    decide(rows, write) {
      if (names(rows.get(owner), key)) return false;
      write.delete(key);
      return true;
    },
  };
}

/** Whether an account's row has the hash of a key anywhere, because a later release may have put it there. */
function names(account: Entry | null, key: Deno.KvKey): boolean {
  return account !== null && decodeText(account).includes(String(key.at(-1)));
}
