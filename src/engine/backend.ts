import { monotonicNow, msSince, pause } from "../base/mod.ts";
import { StoreUnavailable } from "./deadline.ts";
import type { EngineMetrics } from "./metrics.ts";
import type { Entry, ListOptions } from "./row.ts";

/**
 * A Deno KV: a file (`file.ts`), or one at a distance (`remote/`). The rest of the engine relies on these rules:
 *
 *  1. Every method settles within the deadline, or rejects with `StoreUnavailable`.
 *  2. A commit applies at most once, and completely or not at all.
 *  3. `ok: false` means that the commit has not applied, and never will. `rows` are the rows that it checks, in order,
 *     read after that.
 *  4. A rejection means the same, unless it is `CommitInDoubt`.
 *  5. `CommitInDoubt.findOut()` finds out the result. Until then, nothing is repeated.
 *  6. `build` runs in the step that sends the commit. It runs again if an attempt had no effect. If it throws, nothing is
 *     sent, and the commit rejects with that error.
 *  7. A read that begins after a commit has resolved sees that commit.
 *  8. Versionstamps rise, and compare as strings.
 *  9. Rows whose keys begin with `"commits"` belong to the backend. `sweep` removes what killed processes left there.
 * 10. If `lanes` or `dataVersion` is wrong, this makes the engine slower, but never wrong.
 */
export interface Backend {
  /** Maximum number of checks that a caller can add to one commit. */
  readonly maxChecks: number;
  /** Number of rounds that are worth having under way at a time. It can change. */
  readonly lanes: number;
  /** A number that changes with every commit by any process; undefined if unknown. Reading it takes no time. */
  readonly dataVersion?: number | undefined;
  /** Size in bytes; undefined if unknown. */
  readonly size?: number | undefined;
  /**
   * Versionstamps of rows as of this call, null for a missing one; undefined if only `getMany` can read them. Reading them
   * takes hardly any time.
   */
  versionsOf?(keys: readonly Deno.KvKey[]): readonly (string | null)[] | undefined;
  /** Reads rows, in the order of `keys`; null for a missing row. Each ten keys are one snapshot. */
  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]>;
  /** Reads the first `limit` rows that match a selector or, in reverse, the last ones. */
  list(selector: Deno.KvListSelector, limit: number, options?: ListOptions): Promise<Entry[]>;
  /** Commits the operation that `build` fills, with these checks. */
  commit(build: Build, checks: readonly Deno.AtomicCheck[]): Promise<CommitResult>;
  /** Checks that rows can be written. */
  probe(): Promise<void>;
  /** Removes some of the rows that killed processes left. Resolves to true if there may be more. */
  sweep(): Promise<boolean>;
  /** Call this when no operation is under way. */
  close(): Promise<void>;
}

/** Options for opening a backend. */
export interface BackendOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Deadline for one operation, in ms. */
  readonly deadline?: number;
  readonly metrics?: EngineMetrics | undefined;
}

/** How long to wait for a server, in ms. `onWait` is called once the wait takes more than a second. */
export interface Patience {
  readonly ms: number;
  readonly onWait: (host: string) => void;
}

/**
 * Adds changes to an atomic operation, right before it is sent to KV. At the end of a key, `stamp` stands for the
 * commit's versionstamp. Throws if the commit must not begin.
 */
export type Build = (operation: Deno.AtomicOperation, stamp: symbol) => void;

/** The result of a commit. If a check failed, nothing was written, and `rows` are the checked ones. */
export type CommitResult =
  | { readonly ok: true; readonly versionstamp: string }
  | { readonly ok: false; readonly rows: readonly (Entry | null)[] };

/** The result of a commit that did not apply, without the rows. */
export const REFUSED: CommitResult = { ok: false, rows: [] };

/** How long to try to find out the result of a commit in doubt, in ms. */
const FIND_OUT_TIMEOUT = 10_000;
/** Pause between attempts to find out the result of a commit in doubt, in ms. */
export const PAUSE = 500;

/** It is unknown whether a commit has applied, or will still apply. */
export class CommitInDoubt extends StoreUnavailable {
  override readonly name = "CommitInDoubt";
  readonly #ask: () => Promise<CommitResult | "lost">;

  /** `ask` finds out the result. "lost" means that nobody will ever know it. If it rejects, it is called again. */
  constructor(ask: () => Promise<CommitResult | "lost">, cause: unknown) {
    super("It is not known whether the commit applied", { cause });
    this.#ask = ask;
  }

  /**
   * Finds out the commit's final result, without the checked rows. Tries for up to ten seconds, as long as a caller may
   * wait, and at least once.
   *
   * @throws {CommitInDoubt} this same error, if the result is still unknown.
   */
  async findOut(mayWait: () => boolean): Promise<CommitResult> {
    for (const started = monotonicNow();; await pause(PAUSE)) {
      const found = await this.#ask().catch(() => undefined);
      if (found === "lost") throw this;
      if (found) return found;
      if (msSince(started) >= FIND_OUT_TIMEOUT || !mayWait()) throw this;
    }
  }
}
