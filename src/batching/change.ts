/** A key and the value to store under it. */
export type Row = readonly [key: Deno.KvKey, value: Uint8Array<ArrayBuffer>];

/**
 * What is to be changed, on condition that other rows still are as they were. Whoever changes a row that others check
 * has to check it, too: changes that share a commit are told apart by their checks.
 */
export interface Change {
  readonly checks: readonly Deno.AtomicCheck[];
  readonly sets: readonly Row[];
  readonly deletes?: readonly Deno.KvKey[];
  /** Numbers that grow by one. */
  readonly increments?: readonly Deno.KvKey[];
  /** Asked in the step that hands the change to KV; throws where it is not to be begun any more. */
  readonly mayBegin?: (() => unknown) | undefined;
}

/** Changes nothing, on no condition. */
export const NO_CHANGE: Change = { checks: [], sets: [] };

/** What else is to be changed along with an item that is made, as soon as the item is known. */
export type Along<Item> = (item: Item) => Change;

/** All of two changes. */
export function both(one: Change, other: Change): Change {
  if (one === NO_CHANGE) return other;
  if (other === NO_CHANGE) return one;
  const { checks, sets, deletes = [], increments = [], mayBegin = one.mayBegin } = other;
  return {
    checks: one.checks.concat(checks),
    sets: one.sets.concat(sets),
    deletes: (one.deletes ?? []).concat(deletes),
    increments: (one.increments ?? []).concat(increments),
    mayBegin,
  };
}
