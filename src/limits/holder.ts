import { type Entry, versionstampOf } from "../engine/mod.ts";
import { decodeUsage, type Limits, UNUSED, type Usage, usageKey } from "./usage.ts";

/** What has limits, such as a tenant. */
export interface Holder {
  readonly id: string;
  readonly limits: Limits;
}

/** One kind of holder, such as tenants, and the rows that store them, if any. */
export interface Holders<Of extends Holder> {
  /**
   * Key of a holder's row; undefined if holders are not stored. A transaction that changes the holder or its usage must
   * write this row, so that processes with leases notice. One that changes the limits must also write the usage that
   * `changeLimits()` returns.
   */
  key(id: string): Deno.KvKey | undefined;
  /**
   * Decodes a holder's row, which is null if it is missing, or if holders are not stored. Returns undefined if there is
   * no such holder.
   *
   * @throws {CorruptRow}
   */
  decode(id: string, row: Entry | null): Of | undefined;
  /** Whether a credential is valid for the holder at `now`, and the holder is not suspended. */
  isOpenedBy(holder: Of, credential: string, now: number): boolean;
}

/**
 * Holders that are not stored. Any text is the id of a holder. The limits of a holder must not change.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const anyone = unstored(() => ({ minute: 60, day: 1_000 }));
 * assertEquals(anyone.decode("Ann", null), { id: "Ann", limits: { minute: 60, day: 1_000 } });
 * ```
 */
export function unstored(limitsOf: (id: string) => Limits): Holders<Holder> {
  return {
    key: () => undefined,
    decode: (id) => ({ id, limits: limitsOf(id) }),
    isOpenedBy: () => true,
  };
}

/** A holder and its usage, with their rows. The usage row is null before the first request. */
export interface HolderState<Of extends Holder> {
  readonly holder: Of;
  /** Null if holders are not stored. */
  readonly holderRow: Entry | null;
  readonly usage: Usage;
  readonly usageRow: Entry | null;
}

/** Keys of the rows of a state: the holder's row, if it is stored, and the usage row. */
export function stateKeys(holders: Pick<Holders<Holder>, "key">, id: string): Deno.KvKey[] {
  const key = holders.key(id);
  return key ? [key, usageKey(id)] : [usageKey(id)];
}

/**
 * Decodes the rows of a state, in the order of `stateKeys()`; undefined if the holder does not exist. Reuses what `known`
 * has decoded from the same rows.
 *
 * @throws {CorruptRow}
 */
export function decodeState<Of extends Holder>(
  holders: Holders<Of>,
  id: string,
  rows: readonly (Entry | null)[],
  known?: HolderState<Of>,
): HolderState<Of> | undefined {
  const isStored = rows.length > 1;
  const [holderRow = null, usageRow = null] = isStored ? rows : [null, ...rows];
  if (isStored && holderRow === null) return undefined;
  // Compared by identity, because a row that is changed by another transaction of the same commit keeps its version.
  const holder = known?.holderRow === holderRow ? known.holder : holders.decode(id, holderRow);
  if (holder === undefined) return undefined;
  const usage = known && usageRow === known.usageRow
    ? known.usage
    : usageRow === null
    ? UNUSED
    : decodeUsage(usageRow);
  return { holder, holderRow, usage, usageRow };
}

/** Whether the first row is a later version of the second one. */
export function isLater(one: Entry | null, other: Entry | null): boolean {
  return (versionstampOf(one) ?? "") > (versionstampOf(other) ?? "");
}
