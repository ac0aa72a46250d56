import { bump, noteVersion, Outdated, VersionCheck, type VersionRow } from "../store/versions.ts";
import type { CommitResult } from "../kv/commit.ts";
import { type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { ROUND_SIZE } from "../metrics/metrics.ts";
import { batched, type Waiting } from "../store/batch.ts";
import type { Change } from "./change.ts";
import { ChangeGroup } from "./change_group.ts";

type WaitingChange = Waiting<Change, CommitResult>;

/** Commits at a time: while one becomes durable, the next is made. */
const LANES = 3;

/**
 * Joins changes that wait into one commit, as databases do to share what it costs to make one durable. When one
 * is refused, it goes on without the changes whose checks failed: the others do not suffer for it.
 */
export class GroupCommit {
  /**
   * Carries out all of a change, or nothing of it.
   *
   * @throws {Outdated} where nothing was done because a VersionCheck among its checks does not hold.
   * @throws {StoreUnavailable}
   */
  readonly commit: (change: Change) => Promise<CommitResult>;
  readonly #store: Store;
  readonly #watched: VersionRow | undefined;

  /** Each commit also sets the row that is `watched`. */
  constructor(store: Store, watched?: VersionRow) {
    this.#store = store;
    this.#watched = watched;
    this.commit = batched((round) => this.#commitRound(round), {
      gather: (count) => store.commits.gather(count),
      lanes: () => LANES,
    });
  }

  async #commitRound(round: readonly WaitingChange[]): Promise<void> {
    let waiting = round;
    while (waiting.length > 0) {
      const group = new ChangeGroup(this.#store.maxChecks);
      const { taken = [], left = [] } = Object.groupBy(
        waiting,
        ({ item }) => group.take(item) ? "taken" : "left",
      );
      await this.#commitGroup(taken);
      // Whoever checks a row that was changed before it, decided on what is no longer so.
      const { stale = [], next = [] } = Object.groupBy(
        left,
        ({ item }) => group.outdates(item) ? "stale" : "next",
      );
      for (const { resolve } of stale) resolve({ ok: false, rows: [] });
      waiting = next;
    }
  }

  /** Tells each change what became of the commit that it was in, and of no other. */
  async #commitGroup(group: readonly WaitingChange[]): Promise<void> {
    ROUND_SIZE.observe(group.length, "changes");
    const checks = [...new Set(group.flatMap(({ item }) => item.checks))];
    const started = performance.now();
    let result: CommitResult;
    try {
      result = await this.#commitAll(group, checks);
    } catch (error) {
      for (const { reject } of group) reject(error);
      return;
    }
    checks.forEach((check, index) => {
      if (!(check instanceof VersionCheck)) return;
      if (result.ok) check.noteHeld(started);
      else check.noteRow(result.rows[index] ?? null);
    });
    if (!result.ok) return await this.#goOn(group, failedChecks(checks, result.rows), result);
    if (this.#watched) noteVersion(this.#watched, result.versionstamp);
    for (const { resolve } of group) resolve(result);
  }

  /** Goes on with those whose checks have not failed, after a commit that was refused; with nobody, if none has. */
  async #goOn(
    group: readonly WaitingChange[],
    failed: readonly Deno.AtomicCheck[],
    refused: CommitResult,
  ): Promise<void> {
    const others: WaitingChange[] = [];
    for (const call of group) {
      const own = call.item.checks.filter((check) => failed.includes(check));
      if (own.some((check) => check instanceof VersionCheck)) call.reject(new Outdated());
      else if (own.length > 0 || failed.length === 0) call.resolve(refused);
      else others.push(call);
    }
    if (others.length > 0) await this.#commitGroup(others);
  }

  #commitAll(group: readonly WaitingChange[], checks: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    return this.#store.commit((operation) => {
      operation.check(...checks);
      for (const { item } of group) {
        for (const [key, value] of item.sets) operation.set(key, value);
        for (const key of item.deletes ?? []) operation.delete(key);
        for (const key of item.increments ?? []) operation.sum(key, 1n);
      }
      if (this.#watched) bump(operation, this.#watched);
    }, checks.map(({ key }) => key));
  }
}

/** The checks for which a commit was refused, as their rows show. */
function failedChecks(
  checks: readonly Deno.AtomicCheck[],
  rows: readonly (Entry | null)[],
): Deno.AtomicCheck[] {
  return checks.filter(({ versionstamp }, index) => versionstampOf(rows[index] ?? null) !== versionstamp);
}
