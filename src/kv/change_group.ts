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

/** Changes that one atomic operation carries out, in their order, as if each had an operation of its own. */
export class ChangeGroup {
  readonly #maxChecks: number;
  readonly #checks: Map<string, Deno.AtomicCheck> = new Map();
  /** Rows that are set or deleted, and rows that grow. */
  readonly #written: Set<string> = new Set();
  readonly #grown: Set<string> = new Set();
  readonly #size: Size = { keyBytes: 0, valueBytes: 0, mutations: 0 };

  /** With so many checks at most, unless the first change has more. */
  constructor(maxChecks: number) {
    this.#maxChecks = maxChecks;
  }

  /** Takes a change in, if it fits; the first does. */
  take(change: Change): boolean {
    const size = sizeOf(change);
    const isFirst = this.#size.mutations === 0 && this.#checks.size === 0;
    if (!isFirst && !(this.#hasRoom(change, size) && this.#seesWhatItChecks(change))) return false;
    this.#size.keyBytes += size.keyBytes;
    this.#size.valueBytes += size.valueBytes;
    this.#size.mutations += size.mutations;
    const { checks, sets, deletes = [], increments = [] } = change;
    for (const check of checks) this.#checks.set(nameOf(check.key), check);
    for (const [key] of sets) this.#written.add(nameOf(key));
    for (const key of deletes) this.#written.add(nameOf(key));
    for (const key of increments) this.#grown.add(nameOf(key));
    return true;
  }

  /** Whether a change decided on a row that this group changes. */
  outdates({ checks }: Change): boolean {
    return checks.some(({ key }) => {
      const row = nameOf(key);
      return this.#written.has(row) || this.#grown.has(row);
    });
  }

  #hasRoom({ checks }: Change, { keyBytes, valueBytes, mutations }: Size): boolean {
    let count = this.#checks.size;
    for (const { key } of checks) if (!this.#checks.has(nameOf(key))) count++;
    return count <= this.#maxChecks &&
      this.#size.keyBytes + keyBytes <= MAX_KEY_BYTES &&
      this.#size.valueBytes + valueBytes <= MAX_VALUE_BYTES &&
      this.#size.mutations + mutations <= MAX_MUTATIONS;
  }

  /**
   * Who checks a row has to see what those before made of it, unless all of them only count in it and carry the
   * very same check: which of them comes first makes no difference.
   */
  #seesWhatItChecks({ checks, increments = [] }: Change): boolean {
    return checks.every((check) => {
      const row = nameOf(check.key);
      const isUnchanged = !this.#written.has(row) &&
        (!this.#grown.has(row) || increments.some((key) => nameOf(key) === row));
      return isUnchanged && (this.#checks.get(row) ?? check) === check;
    });
  }
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

/** Tells keys apart, as long as none differ in the type of a part alone. */
function nameOf(key: Deno.KvKey): string {
  return key.join("\0");
}

/** Roughly. */
function bytesOf(key: Deno.KvKey): number {
  let bytes = 0;
  for (const part of key) bytes += typeof part === "string" ? part.length + 2 : 10;
  return bytes;
}
