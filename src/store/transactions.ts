import { CommitInDoubt, type CommitResult } from "../kv/commit.ts";
import { KV_DEADLINE, pause, StoreUnavailable } from "../kv/deadline.ts";
import { type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { isBlind, type Job, Round, type Snapshot } from "./round.ts";
import {
  type Done,
  type KnownRow,
  type Queue,
  type RunOptions,
  type Transaction,
  Unresolved,
} from "./transaction.ts";
import { nameOf, noteVersion, Outdated } from "./versions.ts";

/*
 * Every write by this service is a transaction: it reads some rows, uses them to decide what to write, and commits on
 * condition that none of them has changed. If one has, the transaction reads and decides again. This file runs many
 * transactions in one commit, because a commit costs far more than its content.
 *
 * The path of a transaction through its queue (`Line`):
 *
 *     run()  waiting   for its rows, if it reads any, and for earlier transactions that decide on the same rows
 *       ↓    reading   together with all other waiting transactions, ten keys per snapshot
 *       ↓    ready     for a lane, with the transactions that read nothing
 *       ↓    deciding  one after the other, each on the rows as earlier ones leave them (`Round`)
 *            in KV     one commit: checks on all rows that were decided on, then writes and version rows
 *
 * How the commit can end:
 *
 *     applied   Each caller gets the result of its transaction.
 *     refused   A read shows which rows have changed. Transactions that decided on these rows read and decide again. If
 *               a caller passed the rows in, its transaction decides on the rows from that read. All other transactions
 *               decide again immediately, together.
 *     in doubt  Nothing runs again until it is known whether the commit applied. Markers in KV show this
 *               (`kv/commit.ts`). If they cannot be read, callers get `Unresolved`.
 *
 * Why the results are exact:
 *
 * - `decide` is a pure function of its rows. Ids and random values are drawn before the transaction runs.
 * - If a decision depends on another's write in the same commit, its result is returned after the commit has applied.
 *   If the commit is refused, that write never happened.
 * - A transaction that writes nothing needs no commit if its rows were read in one snapshot that began after the
 *   call: its result was true at that moment. Rows that the caller passed in might be older, so they are not enough.
 * - An assumption about a version row is checked in the same commit, or read in the same snapshot.
 * - The step that sends the commit to KV checks whether the caller is still waiting. A commit can wait a long time for
 *   that step, and nothing must be stored for a request that has already received 503.
 *
 * Why no transaction waits forever:
 *
 * - Within this process, a transaction has exclusive use of the rows that it decides on, from its read to the end of
 *   its commit. Other transactions in the queue get these rows in order of arrival. So none starves, and no commit from
 *   this queue causes another to be refused.
 * - Rows are read again for each commit, even if this process knows how its last commit left them. A process that kept
 *   committing on its own results would block all others. So a caller must not pass rows in while other processes are
 *   writing them.
 * - The transaction that arrived first is part of the next commit.
 * - After two refused commits, a transaction no longer shares a commit with transactions on other rows. So a row that
 *   other processes keep changing delays only transactions on that row. For a transaction without rows, two commits
 *   that had no room for it count the same, because such transactions come last in a commit.
 */

/** Carries out transactions. */
export class Transactions {
  readonly #store: Store;
  readonly #clock: () => number;
  readonly #lines: Map<Queue, Line> = new Map();

  /** `clock` returns ms since the epoch. */
  constructor(store: Store, clock: () => number) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Carries out a transaction at most once. Keeps trying for five seconds.
   *
   * @throws errors from `decide` or `mayBegin`. Nothing was done.
   * @throws {Outdated} if its assumption no longer holds. Nothing was done.
   * @throws {Unresolved} if it is unknown whether the transaction was carried out.
   * @throws {StoreUnavailable} if it was not carried out.
   */
  run<Result>(transaction: Transaction<Result>, options: RunOptions = {}): Promise<Done<Result>> {
    const { queue } = transaction;
    let line = this.#lines.get(queue);
    if (line === undefined) this.#lines.set(queue, line = new Line(this.#store, this.#clock, queue));
    return line.run(transaction, options);
  }
}

const MAX_READS = 8;
/** Maximum number of keys in one snapshot. */
const MAX_KEYS = 10;
/** Maximum number of simultaneous reads from a distant KV. */
const READING_LANES = 12;
/** Shared by transactions without rows, of which there are many. */
const NO_KEYS: ReadonlyMap<string, Deno.KvKey> = new Map();
const NO_ROWS: Snapshot = { rows: new Map(), began: -Infinity };
/** Thrown if a caller ran out of time before its commit was sent to KV. */
const LATE: unique symbol = Symbol("late");

/** The transactions in one queue. */
class Line {
  readonly #store: Store;
  readonly #clock: () => number;
  readonly #queue: Queue;
  /** Jobs whose rows have to be read. */
  #waiting: Job[] = [];
  /** Jobs that can decide. */
  #ready: Job[] = [];
  /** Jobs with exclusive use of their rows: those that are reading, ready or committing. */
  readonly #holding: Set<Job> = new Set();
  #reading = 0;
  #committing = 0;
  #isGathering = false;

  constructor(store: Store, clock: () => number, queue: Queue) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = queue;
  }

  /** Maximum number of simultaneous commits. */
  get #lanes(): number {
    return this.#queue.lanes(this.#store.commits.isFar);
  }

  run<Result>(transaction: Transaction<Result>, options: RunOptions): Promise<Done<Result>> {
    const { promise, resolve, reject } = Promise.withResolvers<Done<Result>>();
    const { reads = [] } = transaction;
    const known = reads.filter(isKnown);
    const knowsRows = known.length === reads.length;
    const job: Job = {
      reads: byName(reads.map((read) => isKnown(read) ? read.key : read)),
      options,
      started: performance.now(),
      knowsRows,
      snapshot: knowsRows ? snapshotOf(known) : undefined,
      refusals: 0,
      hasFailed: false,
      decide(rows, write, now) {
        const result = transaction.decide(rows, write, now);
        return { result, resolve: (done) => resolve({ result, ...done }) };
      },
      reject,
    };
    if (reads.length > MAX_READS) reject(new RangeError("A transaction reads too many rows"));
    else this.#enqueue(job);
    return promise;
  }

  #enqueue(job: Job): void {
    (isBlind(job) ? this.#ready : this.#waiting).push(job);
    const canAdvance = this.#waiting.length > 0 || this.#committing < this.#lanes;
    if (!this.#isGathering && canAdvance) this.#gather();
  }

  /** Waits for transactions that arrive at the same time, then advances. */
  async #gather(): Promise<void> {
    this.#isGathering = true;
    await Promise.resolve(); // Calls made in the same turn of the event loop always join.
    const { requests = () => this.#waiting.length + this.#ready.length } = this.#queue;
    await this.#store.commits.gather(requests);
    this.#isGathering = false;
    this.#advance();
  }

  /** Begins the reads and commits that can begin now. */
  #advance(): void {
    if (this.#isGathering) return;
    const lanes = this.#store.reads.isFar ? READING_LANES : 1;
    if (this.#waiting.length > 0 && this.#reading < lanes) this.#startReading();
    while (this.#committing < this.#lanes) {
      const jobs = this.#nextToCommit();
      if (jobs.length === 0) return;
      this.#committing++;
      this.#commit(jobs).finally(() => {
        this.#committing--;
        this.#advance();
      });
    }
  }

  /** Reads the rows for all jobs that need not wait for others. If several need a row, the oldest gets it first. */
  #startReading(): void {
    const taken = new Set([...this.#holding].flatMap(({ reads }) => [...reads.keys()]));
    const { free = [], waiting = [] } = Object.groupBy(this.#waiting.toSorted(byAge), ({ reads }) => {
      if (taken.isDisjointFrom(reads)) return "free";
      for (const name of reads.keys()) taken.add(name);
      return "waiting";
    });
    this.#waiting = waiting;
    const jobs = free.filter((job) => this.#mayBegin(job));
    for (const job of jobs) this.#holding.add(job);
    this.#ready.push(...jobs.filter(({ snapshot }) => snapshot));
    const groups = bySnapshot(jobs.filter(({ snapshot }) => snapshot === undefined));
    if (groups.length === 0) return;
    this.#reading++;
    Promise.all(groups.map((group) => this.#read(group))).finally(() => {
      this.#reading--;
      this.#advance();
    });
  }

  /** Reads some jobs' rows in one snapshot. */
  async #read(jobs: readonly Job[]): Promise<void> {
    const began = performance.now();
    const keys = new Map(jobs.flatMap((job) => [...keysToRead(job)]));
    let entries: readonly (Entry | null)[];
    try {
      entries = await this.#store.getMany([...keys.values()]);
    } catch (error) {
      this.#fail(jobs, error);
      return;
    }
    const names = [...keys.keys()];
    const snapshot = { rows: new Map(names.map((name, index) => [name, entries[index] ?? null])), began };
    for (const job of jobs) {
      if (assumptionHolds(job, snapshot)) {
        job.snapshot = snapshot;
        this.#ready.push(job);
      } else this.#fail([job], new Outdated());
    }
  }

  /**
   * The jobs for the next commit: all that can share it with the oldest job. Blind jobs come last, because they might
   * write a row that others have just found missing.
   */
  #nextToCommit(): readonly Job[] {
    const byArrival = this.#ready.toSorted(byAge);
    const [first] = byArrival;
    if (first === undefined) return [];
    const { deciding = [], blind = [], others = [] } = Object.groupBy(byArrival, (job) => {
      if (!mayJoin(job, first)) return "others";
      return isBlind(job) ? "blind" : "deciding";
    });
    this.#ready = others;
    return [...deciding, ...blind];
  }

  /** Commits as many of the jobs together as possible. */
  async #commit(candidates: readonly Job[]): Promise<void> {
    const round = this.#form(candidates);
    const jobs = round.decisions.map(({ job }) => job);
    if (jobs.length === 0) return;
    this.#store.metrics.roundSize.observe(jobs.length, this.#queue.label);
    const started = performance.now();
    const commit = this.#store.commit((operation) => {
      // Checked here, because a commit can wait a long time for its turn.
      if (!jobs.every((job) => this.#mayBegin(job))) throw LATE;
      round.build(operation);
    }, round.checkedKeys);
    const result = await commit.catch((error) => this.#resultAfter(error, round));
    if (result?.ok) {
      round.resolve(result.versionstamp, started);
      for (const job of jobs) this.#holding.delete(job);
    } else if (result) this.#retry(jobs, round.checkedRows(result.rows));
  }

  /** Lets jobs decide, one after the other. Those that do not fit are left for later. */
  #form(jobs: readonly Job[]): Round {
    const { maxChecks = () => Infinity } = this.#queue;
    const limit = Math.min(this.#store.maxChecks, maxChecks(this.#store.commits.isFar));
    const round = new Round(limit, this.#clock());
    for (const job of jobs) {
      const verdict = this.#mayBegin(job) ? round.take(job) : "settled";
      if (verdict === "settled") this.#holding.delete(job);
      else if (verdict === "full") {
        if (isBlind(job)) job.refusals++; // Otherwise jobs with rows might never leave it any room.
        this.#ready.push(job);
      } else if (verdict === "unread") this.#readAgain(job);
    }
    return round;
  }

  /** The result of a commit that was rejected with this error; undefined if its jobs failed or will be tried again. */
  async #resultAfter(error: unknown, { decisions }: Round): Promise<CommitResult | undefined> {
    const jobs = decisions.map(({ job }) => job);
    if (error === LATE) this.#ready.push(...jobs);
    else if (!(error instanceof CommitInDoubt)) this.#fail(jobs, error);
    else {
      const isPatient = jobs.some(({ options: { isPatient = true } }) => isPatient);
      const finding = isPatient ? error.findOutPatiently() : error.findOut();
      const found = await finding.catch(() => undefined);
      if (found?.ok) return found;
      for (const { job, outcome } of decisions) {
        if (found === undefined) this.#fail([job], new Unresolved(outcome.result, error));
        else if (job.hasFailed) {
          this.#fail([job], new StoreUnavailable("The transaction was not carried out", { cause: error }));
        } else {
          job.hasFailed = true; // Another job's write might be the reason, so this one is tried once more, alone.
          this.#ready.push(job);
        }
      }
    }
    return undefined;
  }

  /** Retries the jobs in a refused commit. `shown` has the rows that the commit checked, as they are now. */
  #retry(jobs: readonly Job[], shown: Snapshot): void {
    for (const job of jobs) job.refusals++;
    const { outdated = [], lost = [], others = [] } = Object.groupBy(jobs, (job) => {
      if (!assumptionHolds(job, shown)) return "outdated";
      return hasChanged(job, shown) ? "lost" : "others";
    });
    this.#fail(outdated, new Outdated());
    if (outdated.length + lost.length === 0) this.#retryLater(others, shown); // The reason is unknown.
    else {
      this.#ready.push(...others);
      this.#retryLater(lost, shown);
    }
  }

  /**
   * Retries jobs that lost a race. After the first refusal, retries immediately, because the process that won was
   * reading its next rows in the meantime. After further refusals, waits for a random time first, so that processes do
   * not retry in step.
   */
  async #retryLater(jobs: readonly Job[], shown: Snapshot): Promise<void> {
    if (jobs.some(isApart)) await pause(Math.random() * Math.max(1, this.#store.commits.ms / 2));
    for (const job of jobs) {
      if (!this.#mayBegin(job)) continue;
      if (performance.now() > job.started + KV_DEADLINE) {
        this.#fail([job], new StoreUnavailable("Too many conflicting writes"));
      } else if (job.knowsRows) {
        job.snapshot = shown;
        this.#ready.push(job);
      } else this.#readAgain(job);
    }
    this.#advance();
  }

  /** Queues a job so that its rows are read again. */
  #readAgain(job: Job): void {
    this.#holding.delete(job);
    job.snapshot = undefined;
    this.#waiting.push(job);
  }

  /** Whether a job is still allowed to begin. If not, its caller gets the error. */
  #mayBegin(job: Job): boolean {
    try {
      job.options.mayBegin?.();
      return true;
    } catch (error) {
      this.#fail([job], error);
      return false;
    }
  }

  #fail(jobs: readonly Job[], error: unknown): void {
    for (const job of jobs) {
      job.reject(error);
      this.#holding.delete(job);
    }
  }
}

/** Divides jobs among snapshots of at most ten keys each. All of a job's keys are in one snapshot. */
function bySnapshot(jobs: readonly Job[]): readonly (readonly Job[])[] {
  const groups: Job[][] = [];
  let names: ReadonlySet<string> = new Set();
  for (const job of jobs) {
    const own = new Set(keysToRead(job).keys());
    names = names.union(own);
    const group = names.size <= MAX_KEYS ? groups.at(-1) : undefined;
    if (group === undefined) {
      groups.push([job]);
      names = own;
    } else group.push(job);
  }
  return groups;
}

/** Keys of all rows that a job needs, by name, including the version row for its assumption. */
function keysToRead({ reads, options: { assumes } }: Job): ReadonlyMap<string, Deno.KvKey> {
  return assumes ? new Map(reads).set(assumes.name, assumes.key) : reads;
}

/** Whether a job's assumption holds in a snapshot. */
function assumptionHolds({ options: { assumes } }: Job, { rows, began }: Snapshot): boolean {
  if (assumes === undefined) return true;
  const versionstamp = versionstampOf(rows.get(assumes.name) ?? null);
  noteVersion(assumes.row, versionstamp);
  if (versionstamp !== assumes.versionstamp) return false;
  assumes.noteHeld(began);
  return true;
}

/** Whether a snapshot has another version of a row that a job has decided on. */
function hasChanged({ reads, snapshot }: Job, { rows }: Snapshot): boolean {
  const versionIn = (some: Snapshot["rows"] | undefined, name: string) =>
    versionstampOf(some?.get(name) ?? null);
  return reads.keys().some((name) => versionIn(rows, name) !== versionIn(snapshot?.rows, name));
}

function isKnown(read: Deno.KvKey | KnownRow): read is KnownRow {
  return "entry" in read;
}

/** A snapshot of the rows that a caller passed in. */
function snapshotOf(rows: readonly KnownRow[]): Snapshot {
  if (rows.length === 0) return NO_ROWS;
  return { rows: new Map(rows.map(({ key, entry }) => [nameOf(key), entry])), began: -Infinity };
}

function byName(keys: readonly Deno.KvKey[]): ReadonlyMap<string, Deno.KvKey> {
  return keys.length === 0 ? NO_KEYS : new Map(keys.map((key) => [nameOf(key), key]));
}

function byAge(one: Job, other: Job): number {
  return one.started - other.started;
}

/** Whether a job has been refused so often that it would delay others. */
function isApart({ refusals }: Job): boolean {
  return refusals >= 2;
}

/** Whether a job can share a commit with the first one. */
function mayJoin(job: Job, first: Job): boolean {
  if (job === first) return true;
  if (job.hasFailed || first.hasFailed) return false;
  if (!isApart(first)) return !isApart(job);
  return isBlind(first) ? isBlind(job) : job.reads.keys().some((name) => first.reads.has(name));
}
