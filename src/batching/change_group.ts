import type { Change } from "./change.ts";

/** What one atomic operation takes of keys, values and mutations, with some room for what is not counted here. */
const MAX_KEY_BYTES = 75_000;
const MAX_VALUE_BYTES = 600_000;
const MAX_MUTATIONS = 900;

/** What a change takes of an atomic operation. */
interface Size {
  keyBytes: number;
  valueBytes: number;
  mutations: number;
}

/** What a group does with a row. */
interface Use {
  /** Undefined where it does not check it. */
  check: Deno.AtomicCheck | undefined;
  /** Whether the row is set or deleted, and whether it grows. */
  isWritten: boolean;
  grows: boolean;
}

/** Changes that one atomic operation carries out, in their order, as if each had an operation of its own. */
export class ChangeGroup {
  readonly #maxChecks: number;
  /** By name. */
  readonly #rows: Map<string, Use> = new Map();
  #checks = 0;
  readonly #size: Size = { keyBytes: 0, valueBytes: 0, mutations: 0 };

  /** With so many checks at most, unless the first change has more. */
  constructor(maxChecks: number) {
    this.#maxChecks = maxChecks;
  }

  /** Takes a change in, if it fits; the first does. */
  take(change: Change): boolean {
    const size = sizeOf(change);
    const { checks, sets, deletes = [], increments = [] } = change;
    const used = checks.map(({ key }) => this.#rows.get(nameOf(key)));
    const more = used.filter((use) => use?.check === undefined).length;
    const isFirst = this.#size.mutations === 0 && this.#checks === 0;
    if (!isFirst && !(this.#hasRoom(more, size) && seesWhatItChecks(change, used))) return false;
    this.#checks += more;
    this.#size.keyBytes += size.keyBytes;
    this.#size.valueBytes += size.valueBytes;
    this.#size.mutations += size.mutations;
    for (const check of checks) this.#use(check.key).check = check;
    for (const [key] of sets) this.#use(key).isWritten = true;
    for (const key of deletes) this.#use(key).isWritten = true;
    for (const key of increments) this.#use(key).grows = true;
    return true;
  }

  /** Whether a change decided on a row that this group changes. */
  outdates({ checks }: Change): boolean {
    return checks.some(({ key }) => {
      const use = this.#rows.get(nameOf(key));
      return use?.isWritten || use?.grows;
    });
  }

  #hasRoom(checks: number, { keyBytes, valueBytes, mutations }: Size): boolean {
    return this.#checks + checks <= this.#maxChecks &&
      this.#size.keyBytes + keyBytes <= MAX_KEY_BYTES &&
      this.#size.valueBytes + valueBytes <= MAX_VALUE_BYTES &&
      this.#size.mutations + mutations <= MAX_MUTATIONS;
  }

  #use(key: Deno.KvKey): Use {
    const name = nameOf(key);
    const use = this.#rows.get(name) ?? { check: undefined, isWritten: false, grows: false };
    this.#rows.set(name, use);
    return use;
  }
}

/**
 * Who checks a row has to see what those before made of it, unless all of them only count in it and carry the very
 * same check: which of them comes first makes no difference.
 */
function seesWhatItChecks({ checks, increments = [] }: Change, used: readonly (Use | undefined)[]): boolean {
  return checks.every((check, index) => {
    const use = used[index];
    if (use === undefined) return true;
    const isUnchanged = !use.isWritten && (!use.grows || increments.map(nameOf).includes(nameOf(check.key)));
    return isUnchanged && (use.check ?? check) === check;
  });
}

function sizeOf({ sets, deletes = [], increments = [] }: Change): Size {
  const size = { keyBytes: 0, valueBytes: 0, mutations: sets.length + deletes.length + increments.length };
  for (const [key, value] of sets) {
    size.keyBytes += bytesOf(key);
    size.valueBytes += value.length;
  }
  for (const key of deletes) size.keyBytes += bytesOf(key);
  for (const key of increments) size.keyBytes += bytesOf(key);
  return size;
}

/** Roughly. */
function bytesOf(key: Deno.KvKey): number {
  let bytes = 0;
  for (const part of key) bytes += typeof part === "string" ? part.length + 2 : 10;
  return bytes;
}

/** What a key, whose parts are strings and numbers, is called: each by another name. */
function nameOf(key: Deno.KvKey): string {
  return JSON.stringify(key);
}
