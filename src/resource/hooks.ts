import { CorruptRow, type Entry, LARGEST_VALUE, type Rows, type Value, type Write } from "../engine/mod.ts";
import { ApiError, type ErrorKind } from "../web/mod.ts";
import type { Change, Hook, RowCounts } from "./hook.ts";
import type { Resource } from "./resource.ts";
import { FIRST, type Generations, OWN } from "./rows.ts";

/*
 * A declaration can extend the transactions that create, change or delete its items: read further rows, refuse, and write
 * rows of its own.
 *
 * A transaction finds out which rows it gets while it decides: a row that is not read yet is null, and then all is
 * decided again. So every hook decides before the first refusal counts; otherwise the rows of later hooks would be found
 * one after the other. A hook also gets each row that it writes, so that no two transactions write one without knowing
 * of each other.
 *
 * Rows of its own begin with "own" and the collection's name. After these comes the collection's generation, so that a
 * rebuild can write them anew.
 */

/** Number of rows that a hook gets for one change of an item, if it does not say. */
const USUAL_ROWS = 2;

/** A rule or hook breaks its own rules: a bug in the declaration, which its message names. Clients get 500. */
export class HookFault extends Error {
  override readonly name = "HookFault";

  get logReason(): string {
    return this.message;
  }
}

/** The most rows that a hook gets. */
export function rowsOf({ rows = USUAL_ROWS }: Hook): RowCounts {
  return typeof rows === "number" ? { creation: rows, change: rows, deletion: rows } : rows;
}

function kindOf({ before, after }: Pick<Change, "before" | "after">): keyof RowCounts {
  if (before === undefined && after !== undefined) return "creation";
  return after === undefined ? "deletion" : "change";
}

/**
 * Requires what a rule or a hook returned to be a text or nothing, as the rest of the message says.
 *
 * @throws {HookFault}
 */
export function requireReturned<Expected>(
  returned: unknown,
  isExpected: (value: unknown) => value is Expected,
  fault: string,
): Expected {
  if (isExpected(returned)) return returned;
  if (returned instanceof Promise) returned.catch(() => {}); // It decides at once, or not at all.
  throw new HookFault(`${fault}, not ${returned instanceof Promise ? "a promise" : `a ${typeof returned}`}`);
}

/** A row as a hook writes it; null if it deletes the row. */
interface Written {
  readonly key: Deno.KvKey;
  readonly value: Value | null;
}

/** All that extends the transactions of a collection: what it declares, and what others that refer to it add. */
export class Hooks {
  readonly #generations: Generations | undefined;
  /** Each with the collection whose rows it writes. */
  readonly #all: readonly (readonly [Hook, home: string])[];
  /** Errors of creations and changes, and of deletions. */
  readonly errors: { readonly put: readonly ErrorKind[]; readonly delete: readonly ErrorKind[] };

  /** `resources` are all collections of the catalogue. */
  constructor(
    { name, extend }: Pick<Resource, "name" | "extend">,
    resources: readonly Resource[],
    generations?: Generations,
  ) {
    const reverses = resources.flatMap((other) =>
      other.extend.flatMap(({ reverse }) => reverse?.of === name ? [[reverse.hook, other.name] as const] : [])
    );
    this.#generations = generations;
    this.#all = [...extend.map((own) => [own, name] as const), ...reverses];
    this.errors = {
      put: extend.flatMap(({ errors = [] }) => errors),
      delete: this.#all.flatMap(([{ deletionErrors = [] }]) => deletionErrors),
    };
  }

  /** Whether nothing extends them. */
  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** The most rows that all of them get. Those that others add get rows for deletions alone. */
  get rows(): RowCounts {
    const counts = this.#all.map(([hook]) => rowsOf(hook));
    const sum = (kind: keyof RowCounts) => counts.reduce((total, rows) => total + rows[kind], 0);
    return { creation: sum("creation"), change: sum("change"), deletion: sum("deletion") };
  }

  /** The most bytes of the values that all of them write for one change. */
  get valueBytes(): number {
    return this.#all.reduce(
      (sum, [hook]) => sum + rowsOf(hook).change * (hook.valueBytes ?? LARGEST_VALUE),
      0,
    );
  }

  /**
   * Lets all decide on a change. If an account is being deleted, none can refuse: what one that throws has written is
   * dropped, and the faults are returned.
   *
   * @throws {ApiError} the first refusal.
   * @throws {HookFault}
   */
  apply(rows: Rows, write: Pick<Write, "set" | "delete">, change: Change): readonly Error[] {
    const failures: Error[] = [];
    for (const [hook, home] of this.#all) {
      try {
        for (const { key, value } of this.#decide(hook, home, rows, change).values()) {
          if (value === null) write.delete(key);
          else write.set(key, value);
        }
      } catch (error) {
        failures.push(faultOf(error, `The hook ${hook.name} of ${home}`));
      }
    }
    if (failures[0] && change.by !== "removal") throw failures[0];
    return failures;
  }

  /** Lets a hook decide. Returns what it writes, by the names of the rows. */
  #decide(hook: Hook, home: string, rows: Rows, change: Change): ReadonlyMap<string, Written> {
    const [named, most] = [`The hook ${hook.name} of ${home}`, rowsOf(hook)[kindOf(change)]];
    const got = new Set<string>();
    const written = new Map<string, Written>();
    const get = (key: Deno.KvKey): Entry | null => {
      const located = this.locate(key);
      const name = JSON.stringify(located);
      if (got.add(name).size > most) {
        throw new HookFault(`${named} gets more than ${most} rows: say in rows how many it gets at most`);
      }
      const row = rows.get(located);
      const own = written.get(name);
      if (own === undefined) return row;
      return own.value && { key: located, value: own.value, versionstamp: row?.versionstamp ?? "" };
    };
    const put = (key: Deno.KvKey, value: Value | null): undefined => {
      if (key.length <= 2 || key[0] !== OWN || key[1] !== home) {
        throw new HookFault(`${named} writes a row whose key does not begin with "${OWN}" and "${home}"`);
      }
      const { valueBytes = LARGEST_VALUE } = hook;
      if (value instanceof Uint8Array && value.length > valueBytes) {
        throw new HookFault(
          `${named} writes ${value.length} bytes: say in valueBytes how many it writes at most`,
        );
      }
      get(key);
      const located = this.locate(key);
      written.set(JSON.stringify(located), { key: located, value });
    };
    const write = { set: put, delete: (key: Deno.KvKey) => put(key, null) };
    const returned: unknown = hook.apply({ get }, write, change);
    requireReturned(returned, (value) => value === undefined, `${named} must return nothing`);
    return written;
  }

  /** The key with the generation of the collection whose own row it names. */
  locate(key: Deno.KvKey): Deno.KvKey {
    const parts = key.map((part) => typeof part === "bigint" ? String(part) : part);
    if (parts[0] !== OWN) return parts;
    return parts.toSpliced(2, 0, this.#generations?.get(String(parts[1])) ?? FIRST);
  }
}

/** What a rule or a hook has thrown: a refusal, a corrupt row, or else a fault, whose message says only its name. */
export function faultOf(error: unknown, named: string): Error {
  const isKnown = error instanceof ApiError || error instanceof CorruptRow || error instanceof HookFault;
  if (isKnown) return error;
  return new HookFault(`${named} throws ${error instanceof Error ? error.name : typeof error}`, {
    cause: error,
  });
}
