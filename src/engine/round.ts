import { type MonotonicTime, PAST } from "../base/mod.ts";
import { encodeJson, encodeText, type Entry, MAX_KEYS, versionstampOf } from "./row.ts";
import type { Features } from "./schema_version.ts";
import { bytesOf, LARGEST_VALUE, MAX_KEY_BYTES, MAX_MUTATIONS, MAX_VALUE_BYTES, sizeOf } from "./sizes.ts";
import {
  type Done,
  type IdSource,
  type KnownRow,
  MAX_ROWS,
  type Rows,
  TooManyRows,
  type Value,
  type Write,
} from "./transaction.ts";
import { nameOf, raiseVersion, type VersionRow } from "./versions.ts";

/** Keys by name. */
export type Keys = ReadonlyMap<string, Deno.KvKey>;

/** The known state of some rows. */
export interface Snapshot {
  /** By name. */
  readonly rows: ReadonlyMap<string, Entry | null>;
  /** When the read of these rows began; PAST if they were not read together. */
  readonly began: MonotonicTime;
  /** Keys of the rows that are only assumed not to exist. */
  readonly assumed?: readonly Deno.KvKey[];
}

/** A transaction that is being carried out. */
export interface Job {
  /** Keys of the rows that all its runs have, by name. */
  readonly given: Keys;
  /** Keys of the rows that it takes for its next run, by name: those that its last run had. */
  reads: Keys;
  /** Throws if no new step is allowed to begin, because the caller does not wait any longer. */
  readonly mayBegin: (() => void) | undefined;
  /** Time of the call. */
  readonly started: MonotonicTime;
  /** The rows that it decides on, as they were read or are assumed to be; undefined if they have to be read. */
  snapshot: Snapshot | undefined;
  /** The ids that its runs have drawn. Each run gets the same ones. */
  readonly drawn: Drawn[];
  /** What its last run drew from in vain. */
  lacking: IdSource | undefined;
  /** Number of guesses: runs that did not count, because they got a row that had not been read. */
  guesses: number;
  /** Number of refused commits that it caused, because its rows had changed, or that nothing explains. */
  losses: number;
  /** Whether KV failed to carry out a commit that it was part of. The job then gets a commit to itself. */
  hasFailed: boolean;
  decide(rows: Rows, write: Write, now: number): Resolve;
  reject(reason: unknown): void;
}

/** An id that was drawn. */
export interface Drawn {
  readonly from: IdSource;
  readonly id: number;
}

/** Resolves a job's call with its decision, and gives back the ids that it does not use. */
type Resolve = (done: Omit<Done<unknown>, "result">, used: readonly Drawn[]) => void;

/**
 * Whether a job joined a commit. `ended` means that the job's call has already resolved or rejected, and `guessed` that
 * it is left out because it got a row that had not been read. Without ids, it is left out until there are some.
 */
type Verdict = "joined" | "ended" | "left out" | "guessed" | "lacking ids";

interface Change {
  readonly key: Deno.KvKey;
  /** Null to delete the row. */
  readonly value: Value | null;
}

/** A log to which transactions append. */
interface Log {
  readonly name: string;
  readonly prefix: Deno.KvKey;
  /** Size of the key of a row. */
  readonly keyBytes: number;
}

/** The row that a contribution or a commit appends to a log. */
interface Appended {
  readonly log: Log;
  /** Entries, as JSON. */
  readonly entries: string[];
  valueBytes: number;
}

/** What a commit uses up of the limits on one. */
interface Size {
  readonly mutations: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
}

/** What a job decides on, besides its own rows. */
interface Situation {
  readonly features: Features;
  /** Rows as earlier contributions leave them, by name. */
  readonly earlier: ReadonlyMap<string, Entry | null>;
  readonly now: number;
}

/** Maximum number of rows that a guess gets: it could otherwise go on for ever. */
const MAX_GUESSED = 15;

/** Has the length of a versionstamp, which the key of an appended row ends with. */
const STAMP = "0".repeat(20);

/** The value of a version row. Only the version matters. */
const EMPTY = encodeJson({});

/** Shared by all jobs of a commit that decides without any rows: nobody needs their changes. */
const NO_CHANGES: Map<string, Entry | null> = new Map();

/** What one job adds to a commit: its decision on the rows as earlier contributions leave them. */
class Contribution implements Rows, Write {
  readonly job: Job;
  readonly features: Features;
  readonly now: number;
  readonly resolve: Resolve;
  readonly changes: Change[] = [];
  readonly bumps: VersionRow[] = [];
  /** One row for each log. */
  readonly appended: Appended[] = [];
  /** Rows as this contribution leaves them, by name. */
  readonly changed: Map<string, Entry | null>;
  /** Keys of the rows that it has, by name: those given to it, and then those it got. */
  rows: Keys;
  /** Keys of the rows that had not been read. With any of them, it is a guess. */
  readonly unread: Deno.KvKey[] = [];
  /** The ids that it uses. */
  readonly used: Drawn[] = [];
  /** What it drew from in vain. */
  lacking: IdSource | undefined;
  /** Whether it depends on another contribution's write. */
  restsOnOthers = false;
  keyBytes = 0;
  valueBytes = 0;
  /** Why it fails, whatever it decides. */
  fault: TooManyRows | undefined;
  #hasDecided = false;
  /** Rows as earlier contributions leave them, by name. */
  readonly #earlier: ReadonlyMap<string, Entry | null>;

  constructor(job: Job, { features, earlier, now }: Situation) {
    this.job = job;
    this.features = features;
    this.now = now;
    this.rows = job.given;
    this.#earlier = earlier;
    this.changed = earlier === NO_CHANGES ? NO_CHANGES : new Map();
    try {
      this.resolve = job.decide(this, this, now);
      if (this.fault) throw this.fault;
    } catch (error) {
      this.changes.length = 0;
      this.bumps.length = 0;
      this.appended.length = 0;
      this.changed.clear();
      this.resolve = () => job.reject(error);
    } finally {
      this.#hasDecided = true;
    }
  }

  get hasWritten(): boolean {
    return this.changes.length + this.bumps.length + this.appended.length > 0;
  }

  get(key: Deno.KvKey): Entry | null {
    const name = nameOf(key);
    if (!this.rows.has(name)) this.#addRow(name, key);
    // The snapshot can have rows of other jobs, which this one has not taken.
    const read = this.job.reads.has(name) ? this.job.snapshot?.rows.get(name) : undefined;
    if (read === undefined) {
      this.unread.push(key);
      return null;
    }
    this.restsOnOthers ||= this.#earlier.has(name);
    const changed = this.#changedRow(name);
    return changed === undefined ? read : changed;
  }

  set(key: Deno.KvKey, value: Value): undefined {
    this.#change(key, value);
  }

  delete(key: Deno.KvKey): undefined {
    this.#change(key, null);
  }

  bump(row: VersionRow): undefined {
    this.#requireOpen();
    this.bumps.push(row);
  }

  append(prefix: Deno.KvKey, entry: object): undefined {
    this.#requireOpen();
    const log = logOf(prefix);
    const json = JSON.stringify(entry);
    const row = { log, entries: [json], valueBytes: bytesOf(json) + "[]".length };
    const before = this.appended.find((row) => row.log.name === log.name);
    if (sizeWith(before, row) > LARGEST_VALUE) throw tooLarge(prefix);
    if (before) join(before, row);
    else this.appended.push(row);
  }

  draw(ids: IdSource): number {
    this.#requireOpen();
    const { job, used } = this;
    const drawn = job.drawn.find((one) => one.from === ids && !used.includes(one)) ?? this.#drawNew(ids);
    if (drawn === undefined) return Number.MAX_SAFE_INTEGER; // This run does not count.
    used.push(drawn);
    return drawn.id;
  }

  #drawNew(ids: IdSource): Drawn | undefined {
    const id = ids.take();
    if (id === undefined) {
      this.lacking = ids;
      return undefined;
    }
    const drawn = { from: ids, id };
    this.job.drawn.push(drawn);
    return drawn;
  }

  #addRow(name: string, key: Deno.KvKey): void {
    sizeOf(key);
    if (this.rows.size >= (this.unread.length > 0 ? MAX_GUESSED : MAX_ROWS)) {
      throw this.fault = new TooManyRows([...this.rows.values(), key]);
    }
    this.rows = new Map([...this.rows, [name, key]]);
  }

  #change(key: Deno.KvKey, value: Value | null): void {
    this.#requireOpen();
    this.keyBytes += sizeOf(key);
    if (value instanceof Uint8Array) {
      if (value.length > LARGEST_VALUE) throw tooLarge(key);
      this.valueBytes += value.length;
    } else if (value !== null && !(value instanceof Deno.KvU64)) {
      throw new TypeError(`A row of ${String(key[0])} is neither bytes nor a count`);
    }
    this.changes.push({ key, value });
    if (this.changed === NO_CHANGES) return;
    const name = nameOf(key);
    const { versionstamp = "" } = this.job.snapshot?.rows.get(name) ?? {};
    this.changed.set(name, value && { key, value, versionstamp });
  }

  #requireOpen(): void {
    if (this.#hasDecided) throw new TypeError("A transaction writes only until decide() has returned");
  }

  /** A row as this contribution and earlier ones leave it; undefined if none changes it. */
  #changedRow(name: string): Entry | null | undefined {
    const own = this.changed.get(name);
    return own === undefined ? this.#earlier.get(name) : own;
  }
}

/** The content of one commit: its jobs' contributions, in order. */
export class Round {
  readonly contributions: Contribution[] = [];
  /** The features that its jobs decide on. */
  readonly features: Features;
  readonly #mayAssumeMissing: (key: Deno.KvKey) => boolean;
  /** Checks that rows are still as they were read, by name. */
  readonly #checks: Map<string, Deno.AtomicCheck> = new Map();
  /** Rows as the contributions leave them, by name. */
  #changed: Map<string, Entry | null> = NO_CHANGES;
  readonly #bumps: Set<VersionRow> = new Set();
  /** Names of rows that no later job changes, because an earlier one is still finding out which rows it needs. */
  readonly #reserved: Set<string> = new Set();
  /** Rows to append, by the names of their logs. */
  readonly #appended: Map<string, Appended> = new Map();
  /** Whether there was no room for a job. All later jobs are then left out, too, and do not decide. */
  #isFull = false;
  #size: Size = { mutations: 0, keyBytes: 0, valueBytes: 0 };

  /** `mayAssumeMissing` says whether its commit may assume that a row does not exist. */
  constructor(features: Features, mayAssumeMissing: (key: Deno.KvKey) => boolean) {
    this.features = features;
    this.#mayAssumeMissing = mayAssumeMissing;
  }

  /** Lets a job decide at `now`, and adds its contribution if there is room. */
  take(job: Job, now: number): Verdict {
    if (this.#isFull) return leaveOut(job);
    for (const name of job.reads.keys()) {
      if (this.#reserved.has(name)) return leaveOut(job);
      const check = this.#checks.get(name);
      // A commit can check only one version of a row.
      if (check && check.versionstamp !== versionIn(job.snapshot, name)) return leaveOut(job);
    }
    if (this.#changed === NO_CHANGES && !isBlind(job)) this.#changed = changesOf(this.contributions);
    const contribution = new Contribution(job, { features: this.features, earlier: this.#changed, now });
    job.lacking = contribution.lacking;
    if (contribution.unread.length > 0) return this.#leaveGuess(contribution);
    if (contribution.lacking) return leaveLacking(job);
    job.reads = contribution.rows;
    if (!contribution.hasWritten && !contribution.restsOnOthers) {
      const isRead = job.snapshot !== undefined && job.snapshot.began >= job.started;
      if (!isRead && !isBlind(job)) return leaveOut(job);
      contribution.resolve({ committed: false, rows: this.#rowsOf(job) }, contribution.used);
      return "ended";
    }
    const size = this.#sizeWith(contribution);
    if (size === undefined) {
      if (this.contributions.length > 0) {
        this.#isFull = true;
        return leaveOut(job);
      }
      job.reject(new RangeError("The transaction is too large for one commit"));
      return "ended";
    }
    this.#size = size;
    this.#add(contribution);
    return "joined";
  }

  get checks(): readonly Deno.AtomicCheck[] {
    return [...this.#checks.values()];
  }

  /** The checked rows, from the result of reading them since `began`, together with a marker. */
  checkedRows(rows: readonly (Entry | null)[], began: MonotonicTime): Snapshot {
    const names = [...this.#checks.keys()];
    const isOneSnapshot = rows.length < MAX_KEYS;
    return {
      rows: new Map(names.map((name, index) => [name, rows[index] ?? null])),
      began: isOneSnapshot ? began : PAST,
    };
  }

  /** Adds the changes to an atomic operation. In a key, `stamp` stands for the commit's versionstamp. */
  build(operation: Deno.AtomicOperation, stamp: symbol): void {
    for (const { changes } of this.contributions) {
      for (const { key, value } of changes) {
        if (value === null) operation.delete(key);
        else operation.set(key, value);
      }
    }
    for (const { key } of this.#bumps) operation.set(key, EMPTY);
    for (const { log: { prefix }, entries } of this.#appended.values()) {
      operation.set([...prefix, stamp], encodeText(`[${entries.join()}]`));
    }
  }

  /** Resolves its jobs' calls after the commit has applied. */
  resolve(versionstamp: string): void {
    for (const row of this.#bumps) raiseVersion(row, versionstamp);
    for (const { job, resolve, hasWritten, used } of this.contributions) {
      resolve({ committed: hasWritten, rows: this.#rowsOf(job, versionstamp) }, used);
    }
  }

  /** Leaves out a job whose run was a guess. It takes the rows of that run or, after the first, those of all its runs. */
  #leaveGuess({ job, rows, unread, fault, hasWritten }: Contribution): Verdict {
    if (fault) {
      job.reject(fault);
      return "ended";
    }
    const isFirst = job.guesses++ === 0;
    const { reads, snapshot } = job;
    job.reads = new Map([...new Map([...rows, ...(isFirst ? [] : reads)])].slice(0, MAX_KEYS));
    const isCommitted = isFirst && hasWritten && job.lacking === undefined && rows.size <= MAX_ROWS &&
      unread.every(this.#mayAssumeMissing);
    if (!isFirst) job.reads.keys().forEach((name) => this.#reserved.add(name));
    job.snapshot = isCommitted ? assumingMissing(unread, snapshot) : undefined;
    return job.lacking === undefined ? "guessed" : "lacking ids";
  }

  /** The size of the commit with another contribution; undefined if there is no room for it. */
  #sizeWith(contribution: Contribution): Size | undefined {
    let mutations = this.#size.mutations + contribution.changes.length;
    let keyBytes = this.#size.keyBytes + contribution.keyBytes;
    let valueBytes = this.#size.valueBytes + contribution.valueBytes;
    for (const row of contribution.appended) {
      const before = this.#appended.get(row.log.name);
      const after = sizeWith(before, row);
      if (after > LARGEST_VALUE) return undefined;
      mutations += before ? 0 : 1;
      keyBytes += before ? 0 : row.log.keyBytes;
      valueBytes += after - (before?.valueBytes ?? 0);
    }
    const hasRoom = mutations <= MAX_MUTATIONS && keyBytes <= MAX_KEY_BYTES && valueBytes <= MAX_VALUE_BYTES;
    return hasRoom ? { mutations, keyBytes, valueBytes } : undefined;
  }

  #add(contribution: Contribution): void {
    this.contributions.push(contribution);
    const { job: { reads, snapshot } } = contribution;
    for (const [name, key] of reads) this.#checks.set(name, { key, versionstamp: versionIn(snapshot, name) });
    for (const [name, entry] of contribution.changed) this.#changed.set(name, entry);
    for (const row of contribution.bumps) this.#bumps.add(row);
    for (const row of contribution.appended) {
      const before = this.#appended.get(row.log.name);
      if (before) join(before, row);
      else this.#appended.set(row.log.name, row);
    }
  }

  /** The rows that a job decides on: as they were read or, once the commit has applied, as it left them. */
  #rowsOf({ reads, snapshot }: Job, versionstamp?: string): KnownRow[] {
    return Array.from(reads, ([name, key]) => {
      const changed = this.#changed.get(name);
      const isRead = versionstamp === undefined || changed === undefined;
      const entry = isRead ? snapshot?.rows.get(name) ?? null : changed && { ...changed, versionstamp };
      return { key, entry };
    });
  }
}

/** Logs by their prefixes, most of which are the same array each time. */
const LOGS: WeakMap<Deno.KvKey, Log> = new WeakMap();

function logOf(prefix: Deno.KvKey): Log {
  const known = LOGS.get(prefix);
  if (known) return known;
  const log = { prefix, keyBytes: sizeOf([...prefix, STAMP]), name: nameOf(prefix) };
  LOGS.set(prefix, log);
  return log;
}

/** The size of the value of an appended row with the entries of a later one. */
function sizeWith(before: Appended | undefined, { valueBytes }: Appended): number {
  return before === undefined ? valueBytes : before.valueBytes + valueBytes - 1; // A comma, but no brackets.
}

/** Adds the entries of a later row to one that is appended. */
function join(before: Appended, row: Appended): void {
  before.valueBytes = sizeWith(before, row);
  before.entries.push(...row.entries);
}

function tooLarge([table]: Deno.KvKey): RangeError {
  return new RangeError(`A row of ${String(table)} is over ${LARGEST_VALUE} bytes`);
}

/** Leaves a job out of a commit. Its rows, if it reads any, are read again before it decides. */
function leaveOut(job: Job): Verdict {
  if (!isBlind(job)) job.snapshot = undefined;
  return "left out";
}

/** Leaves a job out because this process has no ids left for it. */
function leaveLacking(job: Job): Verdict {
  leaveOut(job);
  return "lacking ids";
}

/** A snapshot in which rows that have not been read do not exist. */
function assumingMissing(assumed: readonly Deno.KvKey[], snapshot: Snapshot | undefined): Snapshot {
  const missing = assumed.map((key) => [nameOf(key), null] as const);
  return { rows: new Map([...snapshot?.rows ?? [], ...missing]), began: PAST, assumed };
}

/** Rows as contributions without rows leave them, by name. */
function changesOf(contributions: readonly Contribution[]): Map<string, Entry | null> {
  const changes = contributions.flatMap((contribution) => contribution.changes);
  return new Map(
    changes.map(({ key, value }) => [nameOf(key), value && { key, value, versionstamp: "" }]),
  );
}

/** The versionstamp of a row in a snapshot, for checking it. */
export function versionIn(snapshot: Snapshot | undefined, name: string): string | null {
  return versionstampOf(snapshot?.rows.get(name) ?? null);
}

/** Whether a job decides without any rows. */
export function isBlind({ reads }: Job): boolean {
  return reads.size === 0;
}
