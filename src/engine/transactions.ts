import { monotonicNow, type MonotonicTime, msBetween, msSince, PAST, pause, plus } from "../base/mod.ts";
import { CommitInDoubt, type CommitResult, REFUSED } from "./backend.ts";
import { KV_DEADLINE, StoreUnavailable } from "./deadline.ts";
import { type Drawn, isBlind, type Job, type Keys, Round, type Snapshot, versionIn } from "./round.ts";
import { type Entry, MAX_KEYS } from "./row.ts";
import { sizeOf } from "./sizes.ts";
import type { Store } from "./store.ts";
import {
  type Decided,
  type Done,
  type KnownRow,
  MAX_ROWS,
  TooManyRows,
  type Transaction,
  Unresolved,
} from "./transaction.ts";
import { nameOf } from "./versions.ts";

/*
 * Every write is a transaction: it reads some rows, uses them to decide what to write, and commits on
 * condition that none of them has changed. If one has, the transaction decides again. This file runs many transactions
 * in one commit, because a commit costs far more than its content.
 *
 * A transaction that is being carried out is a job. It is in one of two states:
 *
 *     waiting   for a lane, and for its rows if another job holds them. No later job gets its rows first.
 *     held      in a lane, together with others, or pausing. No other job that is held in another lane has its rows.
 *
 *     run()      →  waiting
 *     #next()       waiting → held: the oldest job whose rows are free, and all that can share its commit
 *     #carryOut()   reads the rows that are not known, lets the jobs decide, one after the other, each on the rows as
 *                   earlier ones leave them (`Round`), and commits: checks on all these rows, then writes and version
 *                   rows
 *     #requeue()    held → waiting: a job that had no room, that needs other rows, whose rows must be read again, or that
 *                   was refused
 *     #refill()     held → waiting, once this process has new ids for a job that has drawn in vain; until then, it is in
 *                   neither state, and has no rows
 *     otherwise     held → done: the caller gets the result or the error
 *
 * Which rows a job needs is known only once it decides, because the content of one row can lead to another:
 *
 *     guess         A run that gets a row which has not been read finds null there, goes on, and does not count. This
 *                   shows most of its rows at once. The job takes the rows that it got, and decides again on these.
 *     first guess   If it has written, these writes are committed, with checks that the unread rows do not exist. If they
 *                   do, the commit is refused, and then no row of their table is assumed missing for ten seconds.
 *     later ones    The job pauses, and then takes the rows of all its runs, in case a row changes back and forth. It
 *                   gives up after twenty guesses.
 *
 * How the commit can end:
 *
 *     applied       Each caller gets the result of its transaction.
 *     refused       The rows show which of them have changed. The jobs decide on these rows immediately. Those that
 *                   lost the race share a commit only with jobs on their rows; all others share one.
 *     in doubt      Nothing runs again until it is known whether the commit applied. If that stays unknown while a
 *                   caller waits, callers get `Unresolved`.
 *     not applied   Each job is tried once more, alone: another one might be the reason.
 *
 * Why the results are exact:
 *
 * - `decide` may run several times. Only its last run counts: the one on the rows that the commit checked.
 * - The rows of a run are those in `reads` and those it got. A run counts only if each of them is one that the job has
 *   taken, and was read or assumed. The commit checks all of them, and no others: what an earlier run got no longer
 *   matters, because the last one decided without it.
 * - If a decision depends on another's write in the same commit, its result is returned after the commit has applied.
 *   If the commit is refused, that write never happened.
 * - A transaction that writes nothing needs no commit if its rows were read in one snapshot that began after the
 *   call: its result was true at that moment. Rows that the caller passed in might be older, and those of a guess might
 *   exist, so they are not enough. A job takes at most ten rows at a time, so one snapshot has them all.
 * - The step that sends the commit to KV checks whether the caller is still waiting. A commit can wait a long time for
 *   that step, and nothing must be stored for a request that has already received 503.
 *
 * Why no transaction waits forever:
 *
 * - A lane has exclusive use of the rows of its jobs, from their read to the end of its commit. Other jobs get them in
 *   order of arrival. So none starves, and no commit from this process causes another to be refused. A job decides only
 *   on rows that it has taken, even if its snapshot has those of others. If it has to wait for a row, it reads it again.
 * - A job takes all its rows at once, and gives them all back before it waits for others. So jobs never wait for each
 *   other in a circle. It keeps its age, and its rows stay reserved while it pauses. So after its second guess, no later
 *   job of this process changes what it decided on, not even in the same commit.
 * - If the first eight rows of a run have all been read, and it gets another, reading more cannot help: it fails at once.
 *   So does a guess that gets a sixteenth row, because a loop that ends at some row would never end on a guess.
 * - The oldest job whose rows are free is part of the next commit.
 * - If there are several lanes, jobs whose rows must be read, jobs that know their rows, and jobs without any do not
 *   share a commit. So none waits for a read that it does not need. On a file, which has one lane, a read takes less
 *   time than another commit, so a commit there even waits for jobs to read the rows of their first guess.
 * - Rows are read for each commit, even if this process knows how its last commit left them. A process that kept
 *   committing on its own results would block all others. So a caller must not pass rows in while other processes are
 *   writing them. A job that loses a second race pauses, and reads its rows again right before it commits.
 * - A job that has lost a race no longer shares a commit with jobs on other rows. So a row that other processes keep
 *   changing delays only jobs on that row. If a refusal shows no changed row, each job counts as one that lost.
 */

/** Maximum number of guesses of one job. */
const MAX_GUESSES = 20;
/** How long after a row was wrongly assumed missing no commit assumes that again for its table, in ms. */
const ASSUMED_AGAIN = 10_000;
/** Shared by transactions without rows, of which there are many. */
const NO_KEYS: Keys = new Map();
const NO_ROWS: Snapshot = { rows: new Map(), began: PAST };
/** Thrown if a caller ran out of time, or features changed, before the commit was sent to KV. */
const LATE: unique symbol = Symbol("late");

/** Carries out transactions. */
export class Transactions {
  readonly #store: Store;
  readonly #clock: () => number;
  /** By age. */
  #waiting: Job[] = [];
  /** Jobs with rows. Blind ones, of which there are many, would only make the set grow. */
  readonly #held: Set<Job> = new Set();
  /** Until when no commit assumes that rows of a table do not exist. */
  readonly #foundIn: Map<Deno.KvKeyPart | undefined, MonotonicTime> = new Map();
  /** Number of lanes in use. */
  #lanes = 0;
  #isGathering = false;

  /** `clock` has the time, in ms since the epoch. */
  constructor(store: Store, clock: () => number) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Carries out a transaction at most once. Gives up after five seconds of conflicts. While KV hangs, several
   * operations miss their deadlines one after the other, which can take 20 s or longer. `mayBegin`, which throws if
   * no new step is allowed to begin, can end this between two of them.
   *
   * @throws errors from `decide` or `mayBegin`. Nothing was done.
   * @throws {Unresolved} if it is unknown whether the transaction was carried out.
   * @throws {StoreUnavailable} if it was not carried out.
   */
  run<Result extends Decided>(
    transaction: Transaction<Result>,
    mayBegin?: () => void,
  ): Promise<Done<Result>> {
    const { promise, resolve, reject } = Promise.withResolvers<Done<Result>>();
    const { reads = [] } = transaction;
    const keys = reads.map((read) => isKnown(read) ? read.key : read);
    const known = reads.filter(isKnown);
    const given = byName(keys);
    const drawn: Drawn[] = [];
    const job: Job = {
      given,
      reads: given,
      drawn,
      lacking: undefined,
      guesses: 0,
      mayBegin,
      started: monotonicNow(),
      snapshot: known.length === reads.length ? snapshotOf(known) : undefined,
      losses: 0,
      hasFailed: false,
      decide(rows, write, now) {
        const result = transaction.decide(rows, write, now);
        if (result instanceof Promise) {
          result.catch(() => {}); // If it still writes, that throws.
          throw new TypeError("A transaction decides at once: decide() returned a promise");
        }
        return (done, used) => {
          giveBack(drawn, used);
          resolve({ result, ...done });
        };
      },
      reject(reason) {
        if (!(reason instanceof Unresolved)) giveBack(drawn, []);
        reject(reason);
      },
    };
    try {
      if (given.size > MAX_ROWS) throw new TooManyRows(keys);
      keys.forEach(sizeOf);
    } catch (error) {
      reject(error);
      return promise;
    }
    this.#waiting.push(job);
    if (!this.#isGathering && this.#lanes < this.#store.lanes) this.#gather();
    return promise;
  }

  /** Waits for transactions that arrive at the same time, then advances. */
  async #gather(): Promise<void> {
    this.#isGathering = true;
    await Promise.resolve(); // Calls made in the same turn of the event loop always join.
    await this.#store.commits.gather();
    this.#isGathering = false;
    this.#advance();
  }

  /** Puts jobs into the free lanes. */
  #advance(): void {
    while (!this.#isGathering && this.#lanes < this.#store.lanes) {
      const jobs = this.#next([]);
      if (jobs.length === 0) return;
      this.#lanes++;
      this.#carryOut(jobs).finally(() => {
        this.#lanes--;
        this.#advance();
      });
    }
  }

  /**
   * Takes the oldest job whose rows are free, and all that can share its commit. Jobs left behind reserve their rows. If
   * a commit already has jobs, only those of `candidates` can join it.
   */
  #next(joined: readonly Job[], candidates?: ReadonlySet<Job>): readonly Job[] {
    const reserved = new Set<string>();
    const reserve = ({ reads }: Job) => reads.keys().forEach((name) => reserved.add(name));
    const inCommit = new Set(joined);
    for (const job of this.#held) if (!inCommit.has(job)) reserve(job);
    const jobs: Job[] = [];
    let checked: ReadonlySet<string> = new Set(joined.flatMap(({ reads }) => [...reads.keys()]));
    this.#waiting = this.#waiting.filter((job) => {
      if (!this.#mayBegin(job)) return false;
      const first = joined[0] ?? jobs[0] ?? job;
      const together = isBlind(job) ? checked : checked.union(job.reads);
      const hasRoom = job === first || together.size <= this.#store.maxChecks;
      const isFree = isBlind(job) || reserved.isDisjointFrom(job.reads);
      const isTaken = hasRoom && isFree && this.#mayJoin(job, first) && (candidates?.has(job) ?? true);
      if (isTaken) {
        jobs.push(job);
        checked = together;
      } else {
        reserve(job);
        if (!isFree) job.snapshot = undefined; // Its rows are likely to change before its turn.
      }
      return !isTaken;
    });
    for (const job of jobs) if (!isBlind(job)) this.#held.add(job);
    return jobs;
  }

  /** Reads, decides and commits. */
  async #carryOut(jobs: readonly Job[]): Promise<void> {
    const round = new Round(this.#store.schema.features, (key) => this.#mayAssumeMissing(key));
    for (let taken = jobs; taken.length > 0;) {
      const guessed = await this.#decide(taken, round);
      const joined = round.contributions.map(({ job }) => job);
      const isWaiting = joined.length > 0 && this.#store.lanes === 1;
      taken = isWaiting ? this.#next(joined, new Set(guessed)) : [];
    }
    if (round.contributions.length > 0) await this.#commit(round);
  }

  /** Reads the rows that are not known, and lets jobs decide. Returns those whose first run was a guess. */
  async #decide(jobs: readonly Job[], round: Round): Promise<readonly Job[]> {
    const unread = jobs.filter(({ snapshot }) => snapshot === undefined);
    await Promise.all(bySnapshot(unread).map((group) => this.#read(group)));
    const now = this.#clock();
    const read = jobs.filter(({ snapshot }) => snapshot !== undefined); // The read of others has failed.
    const verdicts = Map.groupBy(read, (job) => round.take(job, now));
    for (const job of verdicts.get("ended") ?? []) this.#held.delete(job);
    for (const job of verdicts.get("lacking ids") ?? []) this.#refill(job);
    const { first = [], later = [] } = Object.groupBy(
      verdicts.get("guessed") ?? [],
      ({ guesses }) => guesses === 1 ? "first" : "later",
    );
    this.#requeue([...verdicts.get("left out") ?? [], ...first]);
    if (later.length > 0) this.#requeueLater(later);
    return first;
  }

  /** Reads some jobs' rows in one snapshot. */
  async #read(jobs: readonly Job[]): Promise<void> {
    const began = monotonicNow();
    const keys = new Map(jobs.flatMap(({ reads }) => [...reads]));
    let entries: readonly (Entry | null)[];
    try {
      entries = await this.#store.getMany([...keys.values()]);
    } catch (error) {
      this.#fail(jobs, error);
      return;
    }
    const names = [...keys.keys()];
    const snapshot = { rows: new Map(names.map((name, index) => [name, entries[index] ?? null])), began };
    for (const job of jobs) job.snapshot = snapshot;
  }

  async #commit(round: Round): Promise<void> {
    const jobs = round.contributions.map(({ job }) => job);
    this.#store.metrics.roundSize.observe(jobs.length, "commit");
    const began = monotonicNow();
    const commit = this.#store.commit((operation, stamp) => {
      // Checked here, because a commit can wait a long time for its turn.
      if (round.features !== this.#store.schema.features) throw LATE;
      if (!jobs.every((job) => this.#mayBegin(job))) throw LATE;
      round.build(operation, stamp);
    }, round.checks);
    const result = await commit.catch((error) => this.#resultAfter(error, round));
    if (result?.ok) {
      round.resolve(result.versionstamp);
      for (const job of jobs) this.#held.delete(job);
    } else if (result) this.#retry(jobs, round.checkedRows(result.rows, began));
  }

  /** The result of a commit that was rejected with this error; undefined if its jobs failed or will be tried again. */
  async #resultAfter(error: unknown, { contributions }: Round): Promise<CommitResult | undefined> {
    const jobs = contributions.map(({ job }) => job);
    if (error === LATE) {
      this.#requeue(jobs);
      return undefined;
    }
    const isInDoubt = error instanceof CommitInDoubt;
    const found = isInDoubt
      ? await error.findOut(() => jobs.some(isAwaited)).catch(() => undefined)
      : REFUSED;
    if (found?.ok) return found;
    const again: Job[] = [];
    for (const job of jobs) {
      if (found === undefined) this.#fail([job], new Unresolved(error));
      else if (job.hasFailed || (!isInDoubt && jobs.length === 1)) this.#fail([job], error);
      else {
        job.hasFailed = true; // Another job's write might be the reason, so this one is tried once more, alone.
        again.push(job);
      }
    }
    this.#requeue(again);
    return undefined;
  }

  /**
   * Retries the jobs in a refused commit. `shown` has the rows that the commit checked, as they are now. Jobs decide on
   * these at once. If one loses a race again, the race is close: it waits for a random time, so that processes do not
   * retry in step, and reads its rows right before it commits.
   */
  async #retry(jobs: readonly Job[], shown: Snapshot): Promise<void> {
    const changed = jobs.filter((job) => hasChanged(job, shown));
    for (const job of changed) this.#rememberFound(job, shown);
    const losers = new Set(changed.length > 0 ? changed : jobs); // If nothing has changed, the reason is unknown.
    for (const job of losers) job.losses++;
    for (const job of jobs) job.snapshot = shown;
    const { again = [], now = [] } = Object.groupBy(
      jobs,
      (job) => losers.has(job) && job.losses > 1 ? "again" : "now",
    );
    this.#requeue(now);
    if (again.length > 0) await this.#requeueLater(again);
  }

  /** Moves a job back to the waiting ones once this process has ids for it, unless others have used them up for too long. */
  async #refill(job: Job): Promise<void> {
    this.#held.delete(job);
    try {
      await job.lacking?.refill();
      if (msSince(job.started) > KV_DEADLINE) {
        throw new StoreUnavailable("Others use up all new ids");
      }
      this.#requeue([job]);
    } catch (error) {
      this.#fail([job], error);
    }
  }

  /** Moves jobs back to the waiting ones after a random time, unless they have tried for too long. */
  async #requeueLater(jobs: readonly Job[]): Promise<void> {
    await pause(Math.random() * Math.max(1, this.#store.commits.ms / 2));
    const { inTime = [], late = [], lost = [] } = Object.groupBy(
      jobs.filter((job) => this.#mayBegin(job)),
      (job) => {
        if (!isBlind(job)) job.snapshot = undefined;
        if (job.guesses >= MAX_GUESSES) return "lost";
        return msSince(job.started) <= KV_DEADLINE ? "inTime" : "late";
      },
    );
    this.#fail(lost, new StoreUnavailable("The rows that a transaction needs keep changing"));
    this.#fail(late, new StoreUnavailable("Too many conflicting writes"));
    this.#requeue(inTime);
  }

  /**
   * Moves jobs back to the waiting ones, all at once, because the first could otherwise start alone. Then advances, even
   * without any, because rows may have become free.
   */
  #requeue(jobs: readonly Job[]): void {
    for (const job of jobs) this.#held.delete(job);
    if (jobs.length > 0) {
      this.#waiting = [...jobs, ...this.#waiting].toSorted((one, other) =>
        msBetween(other.started, one.started)
      );
    }
    this.#advance();
  }

  /** Whether a job can share a commit with the first one. */
  #mayJoin(job: Job, first: Job): boolean {
    if (job === first) return true;
    if (job.hasFailed || first.hasFailed) return false;
    if (this.#store.lanes > 1 && needOf(job) !== needOf(first)) return false;
    if (first.losses === 0) return job.losses === 0;
    return needOf(job) === "nothing" || job.reads.keys().some((name) => first.reads.has(name));
  }

  /** Whether a job is still allowed to begin. If not, its caller gets the error. */
  #mayBegin(job: Job): boolean {
    try {
      job.mayBegin?.();
      return true;
    } catch (error) {
      this.#fail([job], error);
      return false;
    }
  }

  /** Whether a commit may assume that a row does not exist. That saves a read or, if it is wrong, costs a commit. */
  #mayAssumeMissing([table]: Deno.KvKey): boolean {
    return monotonicNow() >= (this.#foundIn.get(table) ?? PAST);
  }

  /** Remembers the tables of rows that a refused commit wrongly assumed missing. */
  #rememberFound({ snapshot }: Job, { rows }: Snapshot): void {
    for (const key of snapshot?.assumed ?? []) {
      if (rows.get(nameOf(key))) this.#foundIn.set(key[0], plus(monotonicNow(), ASSUMED_AGAIN));
    }
  }

  #fail(jobs: readonly Job[], error: unknown): void {
    for (const job of jobs) {
      job.reject(error);
      this.#held.delete(job);
    }
  }
}

/** Gives back the ids that were drawn, but are not used. */
function giveBack(drawn: Drawn[], used: readonly Drawn[]): void {
  for (const one of drawn.splice(0)) if (!used.includes(one)) one.from.giveBack(one.id);
}

/** Divides jobs among snapshots of at most ten keys each. All of a job's keys are in one snapshot. */
function bySnapshot(jobs: readonly Job[]): readonly (readonly Job[])[] {
  const groups: Job[][] = [];
  let names: ReadonlySet<string> = new Set();
  for (const job of jobs) {
    const own = new Set(job.reads.keys());
    names = names.union(own);
    const group = names.size <= MAX_KEYS ? groups.at(-1) : undefined;
    if (group === undefined) {
      groups.push([job]);
      names = own;
    } else group.push(job);
  }
  return groups;
}

/** Whether a snapshot has another version of a row that a job has decided on. */
function hasChanged({ reads, snapshot }: Job, shown: Snapshot): boolean {
  return reads.keys().some((name) => versionIn(shown, name) !== versionIn(snapshot, name));
}

function isKnown(read: Deno.KvKey | KnownRow): read is KnownRow {
  return "entry" in read;
}

/** A snapshot of the rows that a caller passed in. */
function snapshotOf(rows: readonly KnownRow[]): Snapshot {
  if (rows.length === 0) return NO_ROWS;
  return { rows: new Map(rows.map(({ key, entry }) => [nameOf(key), entry])), began: PAST };
}

function byName(keys: readonly Deno.KvKey[]): ReadonlyMap<string, Deno.KvKey> {
  return keys.length === 0 ? NO_KEYS : new Map(keys.map((key) => [nameOf(key), key]));
}

/** Whether a job's caller is still waiting. */
function isAwaited({ mayBegin }: Job): boolean {
  try {
    mayBegin?.();
    return true;
  } catch {
    return false;
  }
}

/** What a job needs before it can decide. */
function needOf(job: Job): "nothing" | "known rows" | "a read" {
  if (isBlind(job)) return "nothing";
  return job.snapshot ? "known rows" : "a read";
}
