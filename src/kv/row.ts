/** A row that exists, as KV gave it. */
export interface Entry {
  readonly key: Deno.KvKey;
  readonly value: unknown;
  readonly versionstamp: string;
}

/** A row does not hold what this service stores in it; the message names the first part of its key. */
export class CorruptRow extends Error {
  override readonly name = "CorruptRow";
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true });

/**
 * A row's value: JSON in UTF-8. KV stores bytes as they are, and every version of Deno reads them.
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

/** A row's value that is text already. */
export function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(text);
}

/**
 * The value of the JSON in a row.
 *
 * @throws {CorruptRow} when it holds none.
 */
export function decodeJson<T>(entry: Entry): T {
  const text = decodeText(entry);
  try {
    return JSON.parse(text);
  } catch {
    throw new CorruptRow(`A row of ${String(entry.key[0])} holds no JSON`);
  }
}

/**
 * The text in a row.
 *
 * @throws {CorruptRow} when it holds none.
 */
export function decodeText({ key, value }: Entry): string {
  try {
    if (value instanceof Uint8Array) return DECODER.decode(value);
  } catch {
    // Not UTF-8.
  }
  throw new CorruptRow(`A row of ${String(key[0])} holds no text`);
}

/**
 * The number in a row that grows by `Deno.AtomicOperation.sum`; 0 if there is no row.
 *
 * @throws {CorruptRow} when it holds none.
 */
export function decodeCount(entry: Entry | null): number {
  if (entry === null) return 0;
  if (entry.value instanceof Deno.KvU64) return Number(entry.value.value);
  throw new CorruptRow(`A row of ${String(entry.key[0])} holds no number`);
}

/** The version of a row, as a check of it takes it: null if there is none. */
export function versionstampOf(entry: Entry | null): string | null {
  return entry?.versionstamp ?? null;
}

/** Keys that one read takes. */
const MAX_KEYS = 10;

/** Rows in the order of their keys, null if there is none. Not one snapshot beyond ten keys. */
export async function getRows(kv: Deno.Kv, keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
  const reads: Promise<Deno.KvEntryMaybe<unknown>[]>[] = [];
  for (let start = 0; start < keys.length; start += MAX_KEYS) {
    reads.push(kv.getMany<unknown[]>(keys.slice(start, start + MAX_KEYS)));
  }
  const entries = await Promise.all(reads);
  return entries.flat().map((entry) => entry.versionstamp === null ? null : entry);
}
