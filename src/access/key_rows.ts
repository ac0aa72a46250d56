import { decodeJson, type JsonValue } from "../kv/json_value.ts";
import type { Entry, Store } from "../kv/store.ts";
import type { ApiKey } from "./api_key.ts";
import type { Usage } from "./usage.ts";

/** A key's two rows, as they were at one moment. */
export interface KeyRows {
  readonly key: Entry<ApiKey>;
  readonly usage: Entry<Usage>;
}

/** Name of the row of an ApiKey. */
export function keyRow(keyId: string): Deno.KvKey {
  return ["keys", keyId];
}

/** Name of the row of the Usage of a key. */
export function usageRow(keyId: string): Deno.KvKey {
  return ["usage", keyId];
}

/** Name of the row that tells the id of the key a secret belongs to; written once, never changed. */
export function secretRow(hash: string): Deno.KvKey {
  return ["api_keys", hash];
}

/**
 * The rows of each key, undefined where there is none.
 *
 * @throws {StoreUnavailable}
 */
export async function readKeyRows(store: Store, keyIds: readonly string[]): Promise<(KeyRows | undefined)[]> {
  const names = keyIds.flatMap((keyId) => [keyRow(keyId), usageRow(keyId)]);
  // Each of the two rows is one of the two types.
  const entries = await store.getMany<JsonValue<ApiKey & Usage>>(names);
  return keyIds.map((_, index) => {
    const [key, usage] = entries.slice(2 * index, 2 * index + 2);
    return key && usage ? { key: decoded(key), usage: decoded(usage) } : undefined;
  });
}

function decoded<T>(entry: Entry<JsonValue<T>>): Entry<T> {
  return { ...entry, value: decodeJson(entry.value) };
}
