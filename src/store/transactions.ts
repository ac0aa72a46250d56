import { CommitInDoubt, type CommitResult } from "../kv/commit.ts";
import { KV_DEADLINE, pause, StoreUnavailable } from "../kv/deadline.ts";
import { type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { type Job, nameOf, Round, type Snapshot } from "./round.ts";
import {
  type Caller,
  type Done,
  type KnownRow,
  type Queue,
  type Transaction,
  Unresolved,
} from "./transaction.ts";
import { noteVersion, Outdated } from "./versions.ts";

/*
 * Every write of this service is a transaction: it reads some rows, decides on them what to write, and commits on
 * condition that these rows have not changed since. If one has, it reads and decides again. This file runs transactions,
 * many in one commit, because a commit costs far more than what is in it.
 *
 * The way of a transaction through its queue (`Line`):
 *
 *     run()  waiting   for its rows, if it reads any, and for earlier transactions that decide on the same rows
 *       ↓    reading   with all others that wait then, ten keys to a snapshot
 *       ↓    ready     for a lane, with the transactions that read nothing
 *       ↓    deciding  one after the other, each on what those before it wrote (`Round`)
 *            in KV     one commit: checks of all rows that were decided on, then sums, writes and version rows
 *
 * And what its commit may come to:
 *
 *     applied   Each caller gets the result of its transaction.
 *     refused   A read shows which rows changed. The transactions that decided on those read and decide again, or decide on
 *               what that read showed if they had brought their rows along; the others decide again at once, together.
 *     in doubt  Nothing runs again before it is known whether the commit applied. KV's markers tell (`kv/commit.ts`). If
 *               they cannot be reached, callers get `Unresolved`.
 *
 * Why the results are exact:
 *
 * - `decide` is a function of its rows. An id, which must not be drawn twice, is drawn once for all runs; random values
 *   are drawn before.
 * - A decision on what a neighbour in the same commit wrote is returned after that commit applied. If it is refused, the
 *   neighbour's row never existed.
 * - A result without any write needs no commit if its rows were read in one snapshot that began after the call: it was true
 *   at that moment. Rows that the caller brought along may be older, so they do not suffice.
 * - What the caller assumes of a version row is checked in the same commit, or read in the same snapshot.
 * - Whether the caller still waits is asked in the step that hands the commit to KV. A commit may wait long before that, and
 *   nothing must be stored for a request that had its 503.
 * - If the row of a sum holds no number, KV stores the sums before it and nothing else. So sums come first in a commit, and
 *   are made only of rows that the transaction has seen to hold numbers.
 *
 * Why no one waits for ever:
 *
 * - From its read to the end of its commit, a transaction has the rows that it decides on to itself in this process. Others
 *   get them in the order in which they came, so none is overtaken for ever, and no commit of this process refuses another,
 *   unless it adds to rows that it only peeked at.
 * - Rows are read again for each commit, even if this process knows how its last one left them, unless the caller brings
 *   them along. A process that went from commit to commit on its own results would shut out all others: who brings rows
 *   along has them read first while others write them, too.
 * - A transaction that was in two refused commits no longer shares one with transactions of other rows. A row that others
 * change all the time holds up only transactions that want it. The same goes for one without rows, which comes last in a
 *   commit, if two had no room for it.
 */

/** Carries out transactions. */
export class Transactions {
  readonly #store: Store;
  readonly #clock: () => number;
  readonly #lines: Map<Queue, Line> = new Map();

  /** The clock tells ms since the epoch. */
  constructor(store: Store, clock: () => number) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Carries out a transaction, at most once. Without a caller it is tried for five seconds, and for ten more it is tried
   * to find out what became of a commit in doubt.
   *
   * @throws what `decide` throws, and what `mayBegin` throws: then nothing was done.
   * @throws {Outdated} when what the caller assumes is no longer so; nothing was done.
   * @throws {Unresolved} when it is not known whether it was done.
   * @throws {StoreUnavailable} when it was not done.
   */
  run<Result>(transaction: Transaction<Result>, caller?: Caller): Promise<Done<Result>> {
    const { queue } = transaction;
    let line = this.#lines.get(queue);
    if (line === undefined) this.#lines.set(queue, line = new Line(this.#store, this.#clock, queue));
    return line.run(transaction, caller);
  }
}

const NONE: readonly Deno.KvKey[] = [];
const MAX_READS = 8;
/** Keys of one snapshot. */
const MAX_KEYS = 10;
/** How many reads may be on their way at a time to a KV that is far away. */
const READING_LANES = 12;
/** Jobs that are to be tried again at once, those of one commit together. */
type Again = readonly (readonly Job[])[];

/** Thrown if a job ran out of time before its commit was handed to KV. */
const FEWER: unique symbol = Symbol("fewer");

/** The transactions of one queue. */
class Line {
  readonly #store: Store;
  readonly #clock: () => number;
  readonly #queue: Queue;
  /** Jobs whose rows are to be read, in the order in which they came. */
  #waiting: Job[] = [];
  /** Jobs whose rows are known. */
  #ready: Job[] = [];
  /** Jobs without rows. */
  #blind: Job[] = [];
  /** How many jobs that are being read, ready or being committed decide on a row, by name. */
  readonly #reserved: Map<string, number> = new Map();
  #reading = 0;
  #committing = 0;
  #isGathering = false;

  constructor(store: Store, clock: () => number, queue: Queue) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = queue;
  }

  /** How many commits may be on their way. */
  get #lanes(): number {
    return this.#queue.lanes(this.#store.commits.isFar);
  }

  run<Result>(transaction: Transaction<Result>, caller: Caller | undefined): Promise<Done<Result>> {
    const { promise, resolve, reject } = Promise.withResolvers<Done<Result>>();
    const { reads = NONE, peeks = NONE, ids } = transaction;
    const keys = reads.map(keyOf);
    const known = peeks.length === 0 ? broughtAlong(reads) : undefined;
    if (keys.length > MAX_READS || keys.length + peeks.length >= MAX_KEYS) {
      reject(new RangeError("A transaction reads too many rows"));
      return promise;
    }
    this.#enqueue({
      keys,
      names: keys.map(nameOf),
      peeks,
      ids,
      caller,
      started: performance.now(),
      snapshot: known,
      isKnown: known !== undefined,
      isRead: false,
      isReserved: false,
      refusals: 0,
      failures: 0,
      id: undefined,
      isSent: false,
      decide(rows, write, now) {
        const result = transaction.decide(rows, write, now);
        return { result, tell: (done) => resolve({ result, ...done }) };
      },
      reject,
    });
    return promise;
  }

  #enqueue(job: Job): void {
    (hasRows(job) ? this.#waiting : this.#blind).push(job);
    const canGoOn = this.#waiting.length > 0 || this.#committing < this.#lanes;
    if (!this.#isGathering && canGoOn) this.#gather();
  }

  /** Lets come what comes at the same time, and goes on. */
  async #gather(): Promise<void> {
    this.#isGathering = true;
    await Promise.resolve(); // Calls of the same turn of the event loop come along in any case.
    const { requests = () => this.#waiting.length + this.#blind.length } = this.#queue;
    await this.#store.commits.gather(requests);
    this.#isGathering = false;
    this.#advance();
  }

  /** Has whatever can be read or committed now read or committed. */
  #advance(): void {
    if (this.#isGathering) return;
    const lanes = this.#store.reads.isFar ? READING_LANES : 1;
    if (this.#waiting.length > 0 && this.#reading < lanes) this.#startReading();
    while (this.#committing < this.#lanes) {
      const jobs = this.#nextToCommit();
      if (jobs.length === 0) return;
      this.#committing++;
      this.#useLane(jobs).finally(() => {
        this.#committing--;
        this.#advance();
      });
    }
  }

  /** Reads the rows of all jobs that need not wait for another: the first that waits for a row has it next. */
  #startReading(): void {
    const wanted = new Set<string>();
    const { free = [], waiting = [] } = Object.groupBy(this.#waiting, ({ names }) => {
      if (!names.some((name) => this.#reserved.has(name) || wanted.has(name))) return "free";
      for (const name of names) wanted.add(name);
      return "waiting";
    });
    this.#waiting = waiting;
    const jobs = free.filter((job) => this.#mayBegin(job));
    for (const job of jobs) this.#reserve(job);
    this.#ready.push(...jobs.filter(({ snapshot }) => snapshot));
    const shared = sharedReads(jobs.filter(({ snapshot }) => snapshot === undefined));
    if (shared.length === 0) return;
    this.#reading++;
    Promise.all(shared.map((read) => this.#read(read))).finally(() => {
      this.#reading--;
      this.#advance();
    });
  }

  /** Reads the rows of some jobs in one snapshot. */
  async #read({ keys, jobs }: SharedRead): Promise<void> {
    const started = performance.now();
    let entries: readonly (Entry | null)[];
    try {
      entries = await this.#store.getMany([...keys.values()]);
    } catch (error) {
      this.#fail(jobs, error);
      return;
    }
    const snapshot = new Map([...keys.keys()].map((name, index) => [name, entries[index] ?? null]));
    for (const job of jobs) {
      if (assumptionHolds(job, snapshot, started)) {
        job.snapshot = snapshot;
        job.isRead = true;
        this.#ready.push(job);
      } else this.#fail([job], new Outdated());
    }
  }

  /**
   * The jobs for a commit, the first that waits among them; those with rows come first. A job that was refused twice
   * shares the next with none but those that want a row of its own, or have none like itself: then a row that others
   * often change holds up nobody else.
   */
  #nextToCommit(): readonly Job[] {
    const [ready, blind] = [this.#ready[0], this.#blind[0]];
    const first = ready && blind && blind.started < ready.started ? blind : ready ?? blind;
    if (first === undefined) return [];
    const joins = (job: Job) => job === first || (isApart(first) ? isOfSameRows(job, first) : !isApart(job));
    const jobs = [...this.#ready, ...this.#blind].filter(joins);
    this.#ready = this.#ready.filter((job) => !joins(job));
    this.#blind = this.#blind.filter((job) => !joins(job));
    return jobs;
  }

  /** Commits jobs, and goes on with those that are to decide again at once. */
  async #useLane(jobs: readonly Job[]): Promise<void> {
    const rounds = [jobs];
    for (let round = rounds.shift(); round; round = rounds.shift()) {
      rounds.push(...await this.#attempt(round));
    }
  }

  /** Commits what can be committed together; gives the jobs that are to be tried again at once, each commit's together. */
  async #attempt(jobs: readonly Job[]): Promise<Again> {
    const round = this.#form(jobs);
    if (round.joined.length === 0) return [];
    this.#store.metrics.roundSize.observe(round.joined.length, this.#queue.label);
    const started = performance.now();
    const commit = this.#store.commit((operation) => {
      // Asked here, for a commit may wait long for its turn.
      if (!round.joined.every(({ job }) => isInTime(job))) throw FEWER;
      for (const { job } of round.joined) job.isSent = true;
      round.build(operation);
    }, round.checkedKeys);
    let result: CommitResult | Again;
    try {
      result = await commit;
    } catch (error) {
      result = await this.#resultAfter(error, round);
    }
    if (!("ok" in result)) return result;
    if (!result.ok) return this.#retry(round, result.rows);
    const { versionstamp } = result;
    round.noteVersions(versionstamp);
    for (const { job, outcome, hasWritten } of round.joined) {
      job.caller?.assumes?.noteHeld(started);
      outcome.tell({ committed: hasWritten, rows: round.rowsOf(job, versionstamp) });
      this.#end(job);
    }
    return [];
  }

  /** Has jobs decide, one after the other, and leaves for later what does not fit. */
  #form(jobs: readonly Job[]): Round {
    const { maxChecks = () => Infinity } = this.#queue;
    const limit = Math.min(this.#store.maxChecks, maxChecks(this.#store.commits.isFar));
    const round = new Round(limit, this.#clock());
    const full: Job[] = [];
    const unread: Job[] = [];
    for (const job of jobs) {
      const verdict = this.#mayBegin(job) ? round.take(job) : "settled";
      if (verdict === "settled") this.#end(job);
      else if (verdict === "no id") this.#waitForIds(job);
      else if (verdict === "unread" || (verdict === "full" && round.decidedOn(job))) unread.push(job);
      else if (verdict === "full") full.push(job);
    }
    const blind = full.filter((job) => !hasRows(job));
    for (const job of blind) job.refusals++; // Else those with rows might leave it no room for ever.
    this.#ready.unshift(...full.filter(hasRows));
    this.#blind.unshift(...blind);
    this.#readAgain(unread);
    return round;
  }

  /** What became of a commit that was rejected with this error, or the jobs that are to be tried again. */
  async #resultAfter(error: unknown, round: Round): Promise<CommitResult | Again> {
    const jobs = round.joined.map(({ job }) => job);
    if (error === FEWER) return [jobs];
    if (!(error instanceof CommitInDoubt)) return this.#fail(jobs, error);
    let found: CommitResult;
    try {
      const isPatient = jobs.some(({ caller }) => caller === undefined);
      found = await (isPatient ? error.findOutPatiently() : error.findOut());
    } catch {
      for (const { job, outcome } of round.joined) this.#fail([job], new Unresolved(outcome.result, error));
      return [];
    }
    if (found.ok) return found;
    // What one of them writes may be the reason: each is tried once more, alone.
    const { again = [], failed = [] } = Object.groupBy(
      jobs,
      (job) => ++job.failures === 1 ? "again" : "failed",
    );
    this.#fail(failed, new StoreUnavailable("The transaction was not carried out", { cause: error }));
    return again.map((job) => [job]);
  }

  /** Has jobs of a refused commit tried again: these are the rows that it checked, as they are now. */
  #retry(round: Round, rows: readonly (Entry | null)[]): Again {
    const changed = round.changedRows(rows);
    const losers: Job[] = [];
    const others: Job[] = [];
    for (const { job } of round.joined) {
      job.refusals++;
      const { names, caller } = job;
      if (caller?.assumes && changed.has(nameOf(caller.assumes.key))) this.#fail([job], new Outdated());
      else if (changed.size > 0 && !names.some((name) => changed.has(name))) others.push(job);
      else losers.push(job);
    }
    for (const job of losers) {
      const isShown = job.isKnown && changed.size > 0;
      job.snapshot = isShown ? round.rowsAfter(job, rows) : undefined;
    }
    if (losers.length > 0) this.#retryLater(losers);
    if (!others.some(isApart)) return [others];
    this.#ready.unshift(...others.filter(hasRows));
    this.#blind.unshift(...others.filter((job) => !hasRows(job)));
    return [];
  }

  /**
   * Tries jobs again that lost a race: after the first refusal at once, for the process that won has been reading already
   * while the refusal was looked into; later after a moment that differs from process to process.
   */
  async #retryLater(jobs: readonly Job[]): Promise<void> {
    if (jobs.some(isApart)) await pause(Math.random() * Math.max(1, this.#store.commits.ms / 2));
    else await Promise.resolve(); // Until what else is of the same commit is back in its place.
    const { late = [], next = [] } = Object.groupBy(
      jobs.filter((job) => this.#mayBegin(job)),
      ({ started }) => performance.now() > started + KV_DEADLINE ? "late" : "next",
    );
    this.#fail(late, new StoreUnavailable("Too many conflicting writes"));
    this.#readAgain(next.filter(({ snapshot }) => snapshot === undefined));
    this.#ready.unshift(...next.filter(({ snapshot }) => snapshot));
    this.#advance();
  }

  /** Has the rows of jobs read again, before those of jobs that came later. */
  #readAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      this.#release(job);
      job.snapshot = undefined;
      job.isRead = false;
    }
    this.#waiting.unshift(...jobs);
  }

  async #waitForIds(job: Job): Promise<void> {
    this.#release(job);
    try {
      await job.ids?.refilled();
    } catch (error) {
      // What became of the ids may be unknown; the job was not carried out.
      const isInDoubt = error instanceof Unresolved;
      this.#fail([job], isInDoubt ? new StoreUnavailable("No ids could be taken", { cause: error }) : error);
      return;
    }
    job.snapshot = undefined;
    job.isRead = false;
    this.#enqueue(job);
  }

  /** Whether a job may still begin; else its caller gets the error. */
  #mayBegin(job: Job): boolean {
    try {
      job.caller?.mayBegin();
      return true;
    } catch (error) {
      this.#fail([job], error);
      return false;
    }
  }

  #fail(jobs: readonly Job[], error: unknown): Again {
    for (const job of jobs) {
      job.reject(error);
      this.#end(job);
    }
    return [];
  }

  /** Done with a job: others may have its rows, and its id, if that was never sent. */
  #end(job: Job): void {
    this.#release(job);
    if (job.id !== undefined && !job.isSent) job.ids?.giveBack(job.id);
    job.id = undefined;
  }

  #reserve(job: Job): void {
    job.isReserved = true;
    for (const name of job.names) this.#reserved.set(name, (this.#reserved.get(name) ?? 0) + 1);
  }

  #release(job: Job): void {
    if (!job.isReserved) return;
    job.isReserved = false;
    for (const name of job.names) {
      const count = (this.#reserved.get(name) ?? 0) - 1;
      if (count > 0) this.#reserved.set(name, count);
      else this.#reserved.delete(name);
    }
  }
}

/** Jobs of one snapshot, and the keys that they read, by name. */
interface SharedRead {
  readonly keys: Map<string, Deno.KvKey>;
  readonly jobs: Job[];
}

/** Reads for jobs, of ten keys each at most; all keys of a job are in one. */
function sharedReads(jobs: readonly Job[]): readonly SharedRead[] {
  const reads: SharedRead[] = [];
  for (const job of jobs) {
    const assumed = job.caller?.assumes;
    const own = new Map(
      [...job.keys, ...job.peeks, ...(assumed ? [assumed.key] : [])].map((key) => [nameOf(key), key]),
    );
    let read = reads.at(-1);
    const added = [...own.keys()].filter((name) => !read?.keys.has(name)).length;
    if (read === undefined || read.keys.size + added > MAX_KEYS) {
      reads.push(read = { keys: new Map(), jobs: [] });
    }
    for (const [name, key] of own) read.keys.set(name, key);
    read.jobs.push(job);
  }
  return reads;
}

/** Whether what a job assumes holds in a snapshot that was begun at `started`, by `performance.now()`. */
function assumptionHolds({ caller }: Job, snapshot: Snapshot, started: number): boolean {
  const assumes = caller?.assumes;
  if (assumes === undefined) return true;
  const entry = snapshot.get(nameOf(assumes.key)) ?? null;
  noteVersion(assumes.row, versionstampOf(entry));
  if (versionstampOf(entry) !== assumes.versionstamp) return false;
  assumes.noteHeld(started);
  return true;
}

/** The rows that a caller brought along; undefined unless these are all. */
function broughtAlong(reads: readonly (Deno.KvKey | KnownRow)[]): Snapshot | undefined {
  if (reads.length === 0 || !reads.every(isKnown)) return undefined;
  return new Map(reads.map(({ key, entry }) => [nameOf(key), entry]));
}

function isKnown(read: Deno.KvKey | KnownRow): read is KnownRow {
  return "entry" in read;
}

function keyOf(read: Deno.KvKey | KnownRow): Deno.KvKey {
  return isKnown(read) ? read.key : read;
}

function hasRows({ keys, peeks }: Job): boolean {
  return keys.length + peeks.length > 0;
}

function isApart({ refusals }: Job): boolean {
  return refusals >= 2;
}

/** Whether a job decides on a row that another decides on, or neither on any. */
function isOfSameRows(job: Job, other: Job): boolean {
  return hasRows(job) ? job.names.some((name) => other.names.includes(name)) : !hasRows(other);
}

function isInTime({ caller }: Job): boolean {
  try {
    caller?.mayBegin();
    return true;
  } catch {
    return false;
  }
}
