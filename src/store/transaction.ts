import { StoreUnavailable } from "../kv/deadline.ts";
import type { Entry } from "../kv/row.ts";
import type { VersionCheck, VersionRow } from "./versions.ts";

/** Transactions that share commits. */
export interface Queue {
  /** What its commits count as among the metrics. */
  readonly label: "changes" | "leases";
  /** How many commits may be on their way at a time: while one becomes durable, the next is made. */
  readonly lanes: (isFar: boolean) => number;
  /** Most rows that a commit may check; undefined if that is up to KV. */
  readonly maxChecks?: (isFar: boolean) => number;
  /** How many requests have come until now, if many share a transaction: a commit waits until no more come. */
  readonly requests?: () => number;
}

/** A row as it is known; null if there is none. */
export interface KnownRow {
  readonly key: Deno.KvKey;
  readonly entry: Entry | null;
}

/** What is to be done to the store. */
export interface Transaction<Result> {
  readonly queue: Queue;
  /** Rows that it decides on: its commit checks them. At most 8. A caller that knows all of them may bring them along. */
  readonly reads?: readonly (Deno.KvKey | KnownRow)[];
  /** Rows that are read in the same snapshot and not checked: for bounds that may be exceeded by what is in flight. */
  readonly peeks?: readonly Deno.KvKey[];
  /** Where `write.id()` draws from. */
  readonly ids?: IdSource;
  /**
   * Decides on the rows at `now` (ms since the epoch). It has no effect but by `write`, and may run several times. With
   * what it throws, the transaction is rejected and writes nothing.
   */
  decide(rows: Rows, write: Write, now: number): Result;
}

/** The rows that a transaction reads and peeks at. */
export interface Rows {
  /** The row, or null. */
  get(key: Deno.KvKey): Entry | null;
}

/**
 * What a transaction changes. A row that others of its queue decide on is only changed by one that decides on it, too, or
 * that peeks at it and adds to it.
 */
export interface Write {
  set(key: Deno.KvKey, value: Uint8Array<ArrayBuffer>): void;
  delete(key: Deno.KvKey): void;
  /** Adds to a number, which may be less than 0. The transaction has to read the row, or to peek at it. */
  add(key: Deno.KvKey, count: number): void;
  /** Changes the version of a row. */
  bump(row: VersionRow): void;
  /** A new id, the same in each run. */
  id(): number;
}

/** Gives ids to transactions. */
export interface IdSource {
  /** The next id; undefined if none is at hand. */
  draw(): number | undefined;
  /** Takes an id back that was not used. */
  giveBack(id: number): void;
  /** Resolves when ids are at hand. */
  refilled(): Promise<void>;
}

/** On whose behalf a transaction is run. */
export interface Caller {
  /** What it assumes; undefined if it assumes nothing. */
  readonly assumes?: VersionCheck | undefined;
  /** Throws if nothing may be begun any more. */
  mayBegin(): void;
}

/** What a transaction came to. */
export interface Done<Result> {
  readonly result: Result;
  /** Whether it wrote anything. */
  readonly committed: boolean;
  /** The rows of its `reads`, as its commit left them, or as they were read. */
  readonly rows: readonly KnownRow[];
}

/** It is not known whether a transaction was carried out; if it was, with this result. */
export class Unresolved extends StoreUnavailable {
  override readonly name = "Unresolved";
  readonly result: unknown;

  constructor(result: unknown, cause: unknown) {
    super("It is not known whether the transaction was carried out", { cause });
    this.result = result;
  }
}
