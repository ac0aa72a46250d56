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
  readonly #rows: KeyMap<Use> = new KeyMap();
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
    const used = checks.map(({ key }) => this.#rows.get(key));
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
      const use = this.#rows.get(key);
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
    const known = this.#rows.get(key);
    if (known) return known;
    const use = { check: undefined, isWritten: false, grows: false };
    this.#rows.add(key, use);
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
    const isUnchanged = !use.isWritten && (!use.grows || increments.some((key) => isSameKey(key, check.key)));
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

/**
 * A map by key of KV, whose parts are strings and numbers.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const names = new KeyMap<string>();
 * names.add(["pets", 7], "Rex");
 * assertEquals(names.get(["pets", 7]), "Rex");
 * assertEquals(names.get(["pets", "7"]), undefined);
 * ```
 */
export class KeyMap<Value> {
  /** By last part, in which most keys differ: to make a string of each key takes longer. */
  readonly #byLast: Map<Deno.KvKeyPart | undefined, [key: Deno.KvKey, value: Value][]> = new Map();

  /** The value of a key; undefined where there is none. */
  get(key: Deno.KvKey): Value | undefined {
    return this.#byLast.get(key.at(-1))?.find(([other]) => isSameKey(key, other))?.[1];
  }

  /** Adds a key that is not there yet. */
  add(key: Deno.KvKey, value: Value): void {
    const last = key.at(-1);
    const entries = this.#byLast.get(last);
    if (entries) entries.push([key, value]);
    else this.#byLast.set(last, [[key, value]]);
  }
}

/** Whether two keys, whose parts are strings and numbers, are the same. */
export function isSameKey(one: Deno.KvKey, other: Deno.KvKey): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index]);
}
