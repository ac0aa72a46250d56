import type { Change } from "./change.ts";

/** What one atomic operation takes of keys, values and mutations, with some room for what is not counted here. */
const MAX_KEY_BYTES = 75_000;
const MAX_VALUE_BYTES = 600_000;
const MAX_MUTATIONS = 900;

/**
 * Changes that one atomic operation carries out, in their order, as if each had an operation of its own. For that,
 * no two may check the same row: the later one decided on what the earlier one changes. But those who share a check,
 * as one and the same object, know of each other: which of them comes first makes no difference.
 */
export class ChangeGroup {
  readonly #maxChecks: number;
  readonly #checks: Set<Deno.AtomicCheck> = new Set();
  /** Names of the rows that are checked. */
  readonly #checked: Set<string> = new Set();
  #keyBytes = 0;
  #valueBytes = 0;
  #mutations = 0;

  /** With so many checks at most, unless the first change has more. */
  constructor(maxChecks: number) {
    this.#maxChecks = maxChecks;
  }

  /** Takes a change in, if it fits; the first does. */
  take(change: Change): boolean {
    const own = change.checks.filter((check) => !this.#checks.has(check));
    const keys = changedKeys(change);
    const keyBytes = this.#keyBytes + sum(keys, bytesOf);
    const valueBytes = this.#valueBytes + sum(change.sets, ([, value]) => value.length);
    const mutations = this.#mutations + keys.length;
    const fits = this.#checks.size + own.length <= this.#maxChecks && keyBytes <= MAX_KEY_BYTES &&
      valueBytes <= MAX_VALUE_BYTES && mutations <= MAX_MUTATIONS && !this.outdates(change);
    const isFirst = this.#mutations === 0 && this.#checks.size === 0;
    if (!fits && !isFirst) return false;
    this.#keyBytes = keyBytes;
    this.#valueBytes = valueBytes;
    this.#mutations = mutations;
    for (const check of own) {
      this.#checks.add(check);
      this.#checked.add(nameOf(check));
    }
    return true;
  }

  /** Whether a change decided on a row that another of this group has decided on. */
  outdates({ checks }: Change): boolean {
    return checks.some((check) => !this.#checks.has(check) && this.#checked.has(nameOf(check)));
  }
}

function nameOf({ key }: Deno.AtomicCheck): string {
  return JSON.stringify(key);
}

function changedKeys({ sets, deletes = [], increments = [] }: Change): Deno.KvKey[] {
  return [...sets.map(([key]) => key), ...deletes, ...increments];
}

/** Roughly. */
function bytesOf(key: Deno.KvKey): number {
  return sum(key, (part) => typeof part === "string" ? part.length + 2 : 10);
}

function sum<Item>(items: readonly Item[], size: (item: Item) => number): number {
  return items.reduce((total, item) => total + size(item), 0);
}
