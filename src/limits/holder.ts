import type { Entry } from "../engine/row.ts";
import { decodeUsage, type Limits, type Usage, usageKey } from "./usage.ts";

/** Whoever has limits, such as an account. */
export interface Holder {
  readonly id: string;
  readonly limits: Limits;
}

/** The rows in which holders of one kind are stored. */
export interface HolderRows<Of extends Holder> {
  /** Key of a holder's row. Every change of the holder or, by an operator, of its usage writes this row. */
  key(id: string): Deno.KvKey;
  /**
   * Decodes a holder's row.
   *
   * @throws {CorruptRow}
   */
  decode(row: Entry): Of;
  /** Whether a credential is valid for the holder at `now` (ms since the epoch), and the holder is not suspended. */
  isOpenedBy(holder: Of, credential: string, now: number): boolean;
}

/** A holder and its usage, with their rows. */
export interface HolderState<Of extends Holder> {
  readonly holder: Of;
  readonly holderRow: Entry;
  readonly usage: Usage;
  readonly usageRow: Entry;
}

/** Keys of a holder's row and its usage row. */
export function stateKeys(
  rows: Pick<HolderRows<Holder>, "key">,
  id: string,
): [holder: Deno.KvKey, usage: Deno.KvKey] {
  return [rows.key(id), usageKey(id)];
}

/**
 * Decodes a holder's row and its usage row; undefined if one is missing, because the holder does not exist.
 *
 * @throws {CorruptRow}
 */
export function decodeState<Of extends Holder>(
  { decode }: HolderRows<Of>,
  holderRow: Entry | null | undefined,
  usageRow: Entry | null | undefined,
): HolderState<Of> | undefined {
  if (!holderRow || !usageRow) return undefined;
  return { holder: decode(holderRow), holderRow, usage: decodeUsage(usageRow), usageRow };
}
