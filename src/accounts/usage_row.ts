import { CorruptRow, decodeJson, encodeJson, type Entry } from "../kv/row.ts";
import { UNUSED, type Usage } from "./usage.ts";

/** Key of the row that tells what an account has used. */
export function usageKey(accountId: string): Deno.KvKey {
  return ["usage", accountId];
}

const NAMES = Object.keys(UNUSED);

/** The row's value: the numbers alone, in the order of UNUSED, for a commit carries many. */
export function encodeUsage(usage: Usage): Uint8Array<ArrayBuffer> {
  return encodeJson(Object.values({ ...UNUSED, ...usage }));
}

/**
 * The usage that a row tells.
 *
 * @throws {CorruptRow}
 */
export function decodeUsage(entry: Entry): Usage {
  const numbers: unknown = decodeJson(entry);
  if (!Array.isArray(numbers) || numbers.length !== NAMES.length || !numbers.every(isCount)) {
    throw new CorruptRow("A row of usage holds no usage");
  }
  return { ...UNUSED, ...Object.fromEntries(NAMES.map((name, index) => [name, numbers[index] ?? 0])) };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
