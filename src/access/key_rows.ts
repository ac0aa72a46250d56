import type { Entry, Store } from "../kv/store.ts";
import type { ApiKey } from "./api_key.ts";
import type { Usage } from "./usage.ts";

/** A key's two rows, as they were at one moment. */
export interface KeyRows {
  readonly key: Entry<ApiKey>;
  readonly usage: Entry<Usage>;
}

/**
 * Value of a usage row: JSON in UTF-8. Every admission writes one, and KV stores bytes as they are.
 * Before, rows held objects.
 */
type UsageRow = Uint8Array<ArrayBuffer> | Usage;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

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

/** The row of a usage. */
export function toUsageRow(usage: Usage): UsageRow {
  return ENCODER.encode(JSON.stringify(usage));
}

/**
 * The rows of each key, undefined where there is none.
 *
 * @throws {StoreUnavailable}
 */
export async function readKeyRows(store: Store, keyIds: readonly string[]): Promise<(KeyRows | undefined)[]> {
  // Each of the two rows is one of the two types. With an even number of rows to a read, both are in one.
  const rows = keyIds.flatMap((keyId) => [keyRow(keyId), usageRow(keyId)]);
  const entries = await store.getMany<ApiKey & UsageRow>(rows);
  return keyIds.map((_, index) => {
    const [key, usage] = entries.slice(2 * index, 2 * index + 2);
    return key && usage ? { key, usage: { ...usage, value: usageOf(usage.value) } } : undefined;
  });
}

function usageOf(row: UsageRow): Usage {
  return row instanceof Uint8Array ? JSON.parse(DECODER.decode(row)) : row;
}
