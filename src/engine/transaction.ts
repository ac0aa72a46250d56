import { StoreUnavailable } from "./deadline.ts";
import type { Entry } from "./row.ts";
import type { Features } from "./schema_version.ts";
import type { VersionRow } from "./versions.ts";

/** Maximum number of rows that a transaction decides on. */
export const MAX_ROWS = 8;

/** A row as last seen. Its entry is null if the row does not exist. */
export interface KnownRow {
  readonly key: Deno.KvKey;
  readonly entry: Entry | null;
}

/** What a transaction can decide: anything but a promise. A function whose result is `void` could return one. */
export type Decided =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | object & { readonly then?: never };

/** A change to the store. */
export interface Transaction<Result extends Decided> {
  /**
   * Rows that are read before it first decides, and that its commit checks, even if it does not get them. Without them,
   * it decides once to find out which rows it gets. A caller that knows all of these rows can pass them in.
   */
  readonly reads?: readonly (Deno.KvKey | KnownRow)[];
  /**
   * Decides what to write, given the rows at `now` (ms since the epoch). It might run several times, and only its last
   * run counts, so it must have no other effect. If it throws, the transaction is rejected with that error and writes
   * nothing. The rows it gets and those in `reads` are at most 8.
   */
  decide(rows: Rows, write: Write, now: number): Result;
}

/** The rows that a transaction decides on. */
export interface Rows {
  /** The features of the store. If they change before the commit, the transaction decides again. */
  readonly features: Features;
  /** The time of the decision, in ms since the epoch. */
  readonly now: number;
  /**
   * The row; null if there is none, or if it has not been read yet. In the latter case, this run does not count: the
   * row is read, and the transaction decides again.
   *
   * @throws {TooManyRows}
   * @throws {TypeError} if KV has no such key.
   * @throws {RangeError} if the key is too large.
   */
  get(key: Deno.KvKey): Entry | null;
}

/** The value of a row: bytes, or a count. */
export type Value = Uint8Array<ArrayBuffer> | Deno.KvU64;

/**
 * A transaction's changes. If others decide on a row, the transaction is allowed to change that row only if it also
 * decides on the row, or if the row is new.
 *
 * @throws {TypeError} from every method if the transaction has already decided, or if KV has no such key or value.
 * @throws {RangeError} from every method if KV has no room for such a key or value.
 */
export interface Write {
  set(key: Deno.KvKey, value: Value): undefined;
  delete(key: Deno.KvKey): undefined;
  /** Changes the version of a row. */
  bump(row: VersionRow): undefined;
  /**
   * Appends an entry, which becomes JSON, to the log with this prefix. All entries that a commit appends to a log are one
   * row: its key is the prefix and then the versionstamp of the commit, and its value is their list, in the order of
   * decisions. So the order of a log is that of the commits. It needs no read and no check.
   */
  append(log: Deno.KvKey, entry: object): undefined;
  /**
   * Draws a new id. If this process has none left, this run does not count: it takes some, and the transaction decides
   * again. An id that no run needs in the end is given back, unless it is unknown whether the transaction was carried
   * out.
   */
  draw(ids: IdSource): number;
}

/** Where new ids come from. */
export interface IdSource {
  /** The next id; undefined if this process has none left. */
  take(): number | undefined;
  /**
   * Resolves when this process has some.
   *
   * @throws {StoreUnavailable}
   */
  refill(): Promise<void>;
  /** Takes back an id that is certain not to be used. */
  giveBack(id: number): void;
}

/** The result of a transaction. */
export interface Done<Result> {
  readonly result: Result;
  /** Whether it wrote anything. */
  readonly committed: boolean;
  /** The rows of `reads` and then those it got, as its commit left them or, without a commit, as they were read. */
  readonly rows: readonly KnownRow[];
}

/** It is unknown whether a transaction was carried out. */
export class Unresolved extends StoreUnavailable {
  override readonly name = "Unresolved";

  constructor(cause: unknown) {
    super("It is not known whether the transaction was carried out", { cause });
  }
}

/** A transaction gets more rows than one can have. This is a bug in its `decide`, which the names of the tables show. */
export class TooManyRows extends RangeError {
  override readonly name = "TooManyRows";

  constructor(keys: Iterable<Deno.KvKey>) {
    const counts = Object.entries(Object.groupBy(keys, ([table]) => String(table)));
    const tables = counts.map(([table, rows = []]) => `${table} (${rows.length})`).join(", ");
    super(`A transaction gets more than ${MAX_ROWS} rows: ${tables}`);
  }

  get logReason(): string {
    return this.message;
  }
}
