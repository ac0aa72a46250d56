import type { Entry, Rows, Write } from "../engine/mod.ts";
import type { ErrorKind } from "../web/mod.ts";
import type { Change, Hook } from "./hook.ts";
import type { Resource } from "./resource.ts";
import { FIRST, type Generations, OWN } from "./rows.ts";

/*
 * A declaration can extend the transactions that create, change or delete its items: read further rows, refuse, and write
 * rows of its own.
 *
 * A transaction names the rows it reads before it begins, but which rows these are depends on the item: the room that a
 * booking leaves, for example. So a change reads the item first, computes the keys from it, and reads the item again
 * together with their rows. If another change of the item came in between, so that other rows are needed, nothing is
 * written, and all is done again.
 *
 * Rows of its own begin with "own" and the collection's name. After these comes the collection's generation, so that a
 * rebuild can write them anew.
 */

/** Maximum number of rows that all hooks of a collection read for one change of an item. */
const MAX_ROWS = 5;

/** A hook breaks its rules: a bug in the declaration, which its message names. Clients get 500. */
export class HookFault extends Error {
  override readonly name = "HookFault";

  get logReason(): string {
    return this.message;
  }
}

/** The rows that a change reads, by their name. */
export type HookKeys = ReadonlyMap<string, Deno.KvKey>;

/** Those of a change that reads none. */
export const NO_KEYS: HookKeys = new Map();

/** All that extends the transactions of a collection: what it declares, and what others that refer to it add. */
export class Hooks {
  readonly #name: string;
  readonly #generations: Generations | undefined;
  /** Each with the collection whose rows it writes. */
  readonly #all: readonly (readonly [Hook, home: string])[];
  /** Errors of creations and changes, and of deletions. */
  readonly errors: { readonly put: readonly ErrorKind[]; readonly delete: readonly ErrorKind[] };

  /** `resources` are all collections of the catalogue. */
  constructor({ name, extend }: Resource, resources: readonly Resource[], generations?: Generations) {
    const reverses = resources.flatMap((other) =>
      other.extend.flatMap(({ reverse }) => reverse?.of === name ? [[reverse.hook, other.name] as const] : [])
    );
    this.#name = name;
    this.#generations = generations;
    this.#all = [...extend.map((own) => [own, name] as const), ...reverses];
    this.errors = {
      put: extend.flatMap(({ errors }) => errors ?? []),
      delete: reverses.flatMap(([{ errors }]) => errors ?? []),
    };
  }

  /** Whether changes read no further rows. */
  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** The rows that a change reads. @throws {HookFault} if they are too many. */
  keysOf(change: Change): HookKeys {
    if (this.isEmpty) return NO_KEYS;
    const located = this.#all.flatMap(([hook]) => hook.keys(change).map((key) => this.#locate(key)));
    const distinct = new Map(located.map((key) => [JSON.stringify(key), key]));
    if (distinct.size <= MAX_ROWS) return distinct;
    throw new HookFault(
      `The hooks of ${this.#name} read ${distinct.size} rows for one change of an item: at most ${MAX_ROWS} are possible`,
    );
  }

  /** Lets all decide on the rows that `keysOf` returned for the change. */
  apply(rows: Rows, write: Write, change: Change, keys: HookKeys): void {
    for (const [hook, home] of this.#all) {
      const named = `The hook ${hook.name} of ${home}`;
      const get = (key: Deno.KvKey): Entry | null => {
        const located = this.#locate(key);
        if (keys.has(JSON.stringify(located))) return rows.get(located);
        throw new HookFault(`${named} gets a row that its keys do not name`);
      };
      const own = (key: Deno.KvKey): Deno.KvKey => {
        if (key.length > 2 && key[0] === OWN && key[1] === home) return this.#locate(key);
        throw new HookFault(
          `${named} writes a row whose key does not begin with "${OWN}" and "${home}"`,
        );
      };
      hook.apply({ get }, {
        set: (key, value) => write.set(own(key), value),
        delete: (key) => write.delete(own(key)),
      }, change);
    }
  }

  /** The key with the generation of the collection whose own row it names. */
  #locate(key: Deno.KvKey): Deno.KvKey {
    const parts = key.map((part) => typeof part === "bigint" ? String(part) : part);
    if (parts[0] !== OWN) return parts;
    return parts.toSpliced(2, 0, this.#generations?.get(String(parts[1])) ?? FIRST);
  }
}
