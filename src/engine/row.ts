/** Options for listing rows. */
export interface ListOptions {
  /** Whether to begin with the last row. */
  readonly reverse?: boolean;
}

/** A row that exists, as KV returns it. */
export interface Entry {
  readonly key: Deno.KvKey;
  readonly value: unknown;
  readonly versionstamp: string;
}

/** A row does not have the format that its reader expects. The message says which row. */
export class CorruptRow extends Error {
  override readonly name = "CorruptRow";

  get logReason(): string {
    return this.message;
  }
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true });

/**
 * Encodes a value as JSON in UTF-8, which every version of Deno reads.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const entry = { key: ["numbers"], value: encodeJson([1, 2]), versionstamp: "0" };
 * assertEquals(decodeJson<number[]>(entry), [1, 2]);
 * ```
 */
export function encodeJson(value: unknown): Uint8Array<ArrayBuffer> {
  return encodeText(JSON.stringify(value));
}

/** Encodes text as the value of a row. */
export function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(text);
}

/**
 * Decodes the JSON in a row.
 *
 * @throws {CorruptRow} if it is not JSON.
 */
export function decodeJson<T>(entry: Entry): T {
  const text = decodeText(entry);
  try {
    return JSON.parse(text);
  } catch {
    throw new CorruptRow(`A row of ${String(entry.key[0])} is not JSON`);
  }
}

/**
 * Decodes the text in a row.
 *
 * @throws {CorruptRow} if it is not UTF-8.
 */
export function decodeText({ key, value }: Entry): string {
  try {
    if (value instanceof Uint8Array) return DECODER.decode(value);
  } catch {
    // Not UTF-8.
  }
  throw new CorruptRow(`A row of ${String(key[0])} is not text`);
}

/**
 * Decodes a count. A missing row counts as 0.
 *
 * @throws {CorruptRow} if it is not a count.
 */
export function decodeCount(entry: Entry | null): number {
  if (entry === null) return 0;
  if (entry.value instanceof Deno.KvU64) return Number(entry.value.value);
  throw new CorruptRow(`A row of ${String(entry.key[0])} is not a number`);
}

/** The versionstamp for checking the row; null if the row must not exist. */
export function versionstampOf(entry: Entry | null): string | null {
  return entry?.versionstamp ?? null;
}

/** Maximum number of keys in one read, which is a snapshot. */
export const MAX_KEYS = 10;

/** Reads rows, in the order of `keys`; null for a missing row. More than ten keys need several snapshots. */
export async function getRows(kv: Deno.Kv, keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
  const reads: Promise<Deno.KvEntryMaybe<unknown>[]>[] = [];
  for (let start = 0; start < keys.length; start += MAX_KEYS) {
    reads.push(kv.getMany<unknown[]>(keys.slice(start, start + MAX_KEYS)));
  }
  const entries = await Promise.all(reads);
  return entries.flat().map((entry) => entry.versionstamp === null ? null : entry);
}

/** Maximum number of rows that KV returns in one batch. */
const MAX_BATCH = 500;

/** Reads the first `limit` rows that match a selector or, in reverse, the last ones. */
export function listRows(
  kv: Deno.Kv,
  selector: Deno.KvListSelector,
  limit: number,
  options: ListOptions = {},
): Promise<Entry[]> {
  const batchSize = Math.min(limit, MAX_BATCH);
  return Array.fromAsync(kv.list(selector, { ...options, limit, batchSize }));
}
