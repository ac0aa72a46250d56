import { Outdated, seeVersion, touch, VersionCheck, type Watched } from "../caching/watched.ts";
import type { CommitResult } from "../kv/commit.ts";
import { type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { batched, type Waiting } from "./batcher.ts";
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
  readonly #watched: Watched | undefined;

  /** Each commit also sets the row that is `watched`. */
  constructor(store: Store, watched?: Watched) {
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
    this.#store.metrics.roundSize.observe(group.length, "changes");
    const checks = checksOf(group);
    const started = performance.now();
    let sent = group;
    let result: CommitResult;
    try {
      result = await this.#store.commit((operation) => {
        sent = thoseThatMayBegin(group);
        this.#build(operation, sent);
      }, checks.map(({ key }) => key));
    } catch (error) {
      for (const { reject } of group) reject(error);
      return;
    }
    checks.forEach((check, index) => {
      if (!(check instanceof VersionCheck)) return;
      if (result.ok) check.seeHold(started);
      else check.seeRow(result.rows[index] ?? null);
    });
    if (!result.ok) return await this.#goOn(sent, failedChecks(checks, result.rows), result);
    if (this.#watched) seeVersion(this.#watched, result.versionstamp);
    for (const { resolve } of sent) resolve(result);
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

  /** Sums come first: where a row holds no number, KV stores what comes before its sum, and nothing after. */
  #build(operation: Deno.AtomicOperation, group: readonly WaitingChange[]): void {
    operation.check(...checksOf(group));
    for (const { item } of group) for (const key of item.increments ?? []) operation.sum(key, 1n);
    for (const { item } of group) {
      for (const [key, value] of item.sets) operation.set(key, value);
      for (const key of item.deletes ?? []) operation.delete(key);
    }
    if (this.#watched) touch(operation, this.#watched);
  }
}

/** Each check once. */
function checksOf(group: readonly WaitingChange[]): Deno.AtomicCheck[] {
  return [...new Set(group.flatMap(({ item }) => item.checks))];
}

/**
 * Those that still are to be begun; the others are rejected.
 *
 * @throws what the last of them throws, where there are no others.
 */
function thoseThatMayBegin(group: readonly WaitingChange[]): readonly WaitingChange[] {
  let reason: unknown;
  const those = group.filter(({ item, reject }) => {
    try {
      item.mayBegin?.();
      return true;
    } catch (error) {
      reject(reason = error);
      return false;
    }
  });
  if (those.length === 0) throw reason;
  return those;
}

/** The checks for which a commit was refused, as their rows show. */
function failedChecks(
  checks: readonly Deno.AtomicCheck[],
  rows: readonly (Entry | null)[],
): Deno.AtomicCheck[] {
  return checks.filter(({ versionstamp }, index) => versionstampOf(rows[index] ?? null) !== versionstamp);
}
