import { decodeCount, encodeJson, type Entry, versionstampOf } from "../kv/row.ts";
import type { Caller, Done, IdSource, KnownRow, Rows, Write } from "./transaction.ts";
import { noteVersion, Outdated, type VersionCheck, type VersionRow } from "./versions.ts";

/** What is known of rows, by name. */
export type Snapshot = ReadonlyMap<string, Entry | null>;

/** What a run of a transaction came to, before its commit. */
export interface Outcome {
  readonly result: unknown;
  /** Tells the caller. */
  tell(done: Omit<Done<unknown>, "result">): void;
}

/** A transaction that is being run. */
export interface Job {
  readonly keys: readonly Deno.KvKey[];
  /** Names of the rows that it decides on, in the order of `keys`. */
  readonly names: readonly string[];
  readonly peeks: readonly Deno.KvKey[];
  readonly ids: IdSource | undefined;
  readonly caller: Caller | undefined;
  /** When it came, by `performance.now()`. */
  readonly started: number;
  /** Its rows, once they are known. */
  snapshot: Snapshot | undefined;
  /** Whether its caller brought them along: then what a refusal shows of them will do. */
  readonly isKnown: boolean;
  /** Whether they, and the version row that is assumed, were read in one snapshot after the call. */
  isRead: boolean;
  /** Whether its rows belong to it. */
  isReserved: boolean;
  /** Refused commits that it was in and, if it has no rows, commits that had no room for it. */
  refusals: number;
  /** Commits that KV did not carry out, of those that it was in. */
  failures: number;
  id: number | undefined;
  isSent: boolean;
  decide(rows: Rows, write: Write, now: number): Outcome;
  reject(reason: unknown): void;
}

/** What becomes of a job that is to join a commit; once it is settled, its caller was told. */
export type Verdict = "joined" | "settled" | "full" | "unread" | "no id";

/** A job of a commit, and what it came to. */
interface Joined {
  readonly job: Job;
  readonly outcome: Outcome;
  readonly hasWritten: boolean;
}

/** A change of one row. */
interface Change {
  readonly key: Deno.KvKey;
  /** Undefined where no other job of the commit decides on the row. */
  readonly name: string | undefined;
  /** Bytes to set, null to delete, or what to add. */
  readonly value: Uint8Array<ArrayBuffer> | null | number;
}

/** What one atomic operation takes of keys, values and mutations, with some room for what is not counted here. */
const MAX_KEY_BYTES = 75_000;
const MAX_VALUE_BYTES = 600_000;
const MAX_MUTATIONS = 900;
const NO_ROWS: readonly KnownRow[] = [];

/** What a version row holds: nothing, because only its version matters. */
const NOTHING = encodeJson({});

/** Thrown by `write.id()` while there is none. */
const NO_ID: unique symbol = Symbol("no id");

/**
 * What one commit does: the decisions of its jobs, one after the other, each on what those before it wrote. Jobs without
 * rows come last: what they write needs no name, for nobody decides on it.
 */
export class Round implements Rows, Write {
  readonly joined: Joined[] = [];
  readonly #maxChecks: number;
  readonly #now: number;
  /** Rows that jobs of this commit have decided on, as they were read. */
  readonly #base: Map<string, { readonly key: Deno.KvKey; readonly entry: Entry | null }> = new Map();
  /** What is assumed of version rows. */
  readonly #assumed: Map<VersionRow, VersionCheck> = new Map();
  readonly #changes: Change[] = [];
  /** Changes of rows that jobs may decide on, by name. */
  readonly #byName: Map<string, Change[]> = new Map();
  readonly #bumps: VersionRow[] = [];
  #keyBytes = 0;
  #valueBytes = 0;
  /** The job that decides. */
  #job: Job | undefined;
  #hasWritten = false;
  /** Whether it has seen what another job of the commit wrote. */
  #restsOnOthers = false;
  /** Whether what it writes can stand beside what others have written: sums come before everything else. */
  #fits = true;

  /** With `maxChecks` at most; `now` is in ms since the epoch. */
  constructor(maxChecks: number, now: number) {
    this.#maxChecks = maxChecks;
    this.#now = now;
  }

  /** Has a job decide and join, if there is room for it. */
  take(job: Job): Verdict {
    const assumes = job.caller?.assumes;
    if (assumes && !assumes.holds) {
      job.reject(new Outdated());
      return "settled";
    }
    if (assumes && this.#bumps.includes(assumes.row)) return "full";
    if (this.#hasOtherRowsThan(job)) return "unread";
    // Asked before it decides: of many that wait, each would do so in vain for every commit before its own.
    if (this.joined.length > 0 && !this.#hasChecksFor(job)) return "full";
    const undo = this.#begin(job);
    let outcome: Outcome;
    try {
      outcome = job.decide(this, this, this.#now);
    } catch (error) {
      undo();
      if (error === NO_ID) return "no id";
      outcome = { result: undefined, tell: () => job.reject(error) };
    }
    const hasWritten = this.#hasWritten;
    if (!hasWritten && !this.#restsOnOthers) {
      if (!job.isRead && (job.keys.length + job.peeks.length > 0 || assumes)) return "unread";
      outcome.tell({ committed: false, rows: this.#rowsAsRead(job) });
      return "settled";
    }
    if (!this.#fits || !this.#hasRoomFor(job)) {
      undo();
      if (this.joined.length > 0) return "full";
      job.reject(new RangeError("No commit can carry this transaction"));
      return "settled";
    }
    job.names.forEach((name, index) => {
      const key = job.keys[index] ?? [];
      this.#base.set(name, { key, entry: job.snapshot?.get(name) ?? null });
    });
    if (assumes) this.#assumed.set(assumes.row, assumes);
    this.joined.push({ job, outcome, hasWritten });
    return "joined";
  }

  /** Whether this commit checks a row that the job decides on. */
  decidedOn({ names }: Job): boolean {
    return names.some((name) => this.#base.has(name));
  }

  /** Keys of the rows that are checked. */
  get checkedKeys(): readonly Deno.KvKey[] {
    return [...this.#base.values(), ...this.#assumed.values()].map(({ key }) => key);
  }

  /** Puts everything into an atomic operation. */
  build(operation: Deno.AtomicOperation): void {
    for (const { key, entry } of this.#base.values()) {
      operation.check({ key, versionstamp: versionstampOf(entry) });
    }
    operation.check(...this.#assumed.values());
    for (const { key, value } of this.#changes) {
      if (typeof value === "number") operation.sum(key, BigInt.asUintN(64, BigInt(value)));
    }
    for (const { key, value } of this.#changes) {
      if (value === null) operation.delete(key);
      else if (typeof value !== "number") operation.set(key, value);
    }
    for (const { key } of this.#bumps) operation.set(key, NOTHING);
  }

  /** Takes note of the new version of the version rows that this commit changed. */
  noteVersions(versionstamp: string): void {
    for (const row of this.#bumps) noteVersion(row, versionstamp);
  }

  /** Names of the checked rows that have changed, as those with `checkedKeys` show; takes note of version rows. */
  changedRows(rows: readonly (Entry | null)[]): Set<string> {
    const changed = new Set<string>();
    let index = 0;
    for (const [name, { entry }] of this.#base) {
      if (versionstampOf(rows[index++] ?? null) !== versionstampOf(entry)) changed.add(name);
    }
    for (const check of this.#assumed.values()) {
      const entry = rows[index++] ?? null;
      noteVersion(check.row, versionstampOf(entry));
      if (versionstampOf(entry) !== check.versionstamp) changed.add(nameOf(check.key));
    }
    return changed;
  }

  /** The rows that a job decides on, among those with `checkedKeys` that a refusal shows. */
  rowsAfter({ names }: Job, rows: readonly (Entry | null)[]): Snapshot {
    const checked = [...this.#base.keys()];
    return new Map(names.map((name) => [name, rows[checked.indexOf(name)] ?? null]));
  }

  /** The rows that a job has decided on, as the commit left them. */
  rowsOf({ keys, names }: Job, versionstamp: string): readonly KnownRow[] {
    if (names.length === 0) return NO_ROWS;
    return names.map((name, index) => {
      const entry = this.#entry(name, this.#base.get(name)?.entry ?? null);
      const isChanged = this.#changesOf(name).length > 0;
      return { key: keys[index] ?? [], entry: entry && isChanged ? { ...entry, versionstamp } : entry };
    });
  }

  get(key: Deno.KvKey): Entry | null {
    const name = nameOf(key);
    const entry = this.#job?.snapshot?.get(name);
    if (entry === undefined) throw new TypeError(`A transaction has not read a row of ${String(key[0])}`);
    this.#restsOnOthers ||= this.#changesOf(name).length > 0;
    return this.#entry(name, entry);
  }

  set(key: Deno.KvKey, value: Uint8Array<ArrayBuffer>): void {
    this.#valueBytes += value.length;
    this.#change(key, value);
  }

  delete(key: Deno.KvKey): void {
    this.#change(key, null);
  }

  add(key: Deno.KvKey, count: number): void {
    decodeCount(this.get(key));
    this.#change(key, count);
  }

  bump(row: VersionRow): void {
    this.#hasWritten = true;
    if (!this.#bumps.includes(row)) this.#bumps.push(row);
  }

  id(): number {
    if (this.#job?.ids === undefined) throw new TypeError("A transaction has not told where to draw ids");
    const id = this.#job.id ??= this.#job.ids.draw();
    if (id === undefined) throw NO_ID;
    return id;
  }

  #change(key: Deno.KvKey, value: Change["value"]): void {
    const name = this.#job?.snapshot && nameOf(key);
    const change = { key, name, value };
    if (name !== undefined) {
      const others = this.#byName.get(name);
      const isSum = typeof value === "number";
      this.#fits &&= !others?.some((other) => (typeof other.value === "number") !== isSum);
      if (others) others.push(change);
      else this.#byName.set(name, [change]);
    }
    this.#hasWritten = true;
    this.#changes.push(change);
    this.#keyBytes += bytesOf(key);
  }

  /** Gets ready for the decision of a job; gives what undoes what it writes. */
  #begin(job: Job): () => void {
    const [changes, bumps] = [this.#changes.length, this.#bumps.length];
    const [keyBytes, valueBytes] = [this.#keyBytes, this.#valueBytes];
    this.#job = job;
    this.#hasWritten = false;
    this.#restsOnOthers = false;
    this.#fits = true;
    return () => {
      this.#hasWritten = false;
      for (const { name } of this.#changes.splice(changes)) {
        if (name !== undefined) this.#byName.get(name)?.pop();
      }
      this.#bumps.length = bumps;
      this.#keyBytes = keyBytes;
      this.#valueBytes = valueBytes;
    };
  }

  /** What was changed under this name until now. */
  #changesOf(name: string): readonly Change[] {
    return this.#byName.get(name) ?? [];
  }

  /** A row as the changes until now leave it. */
  #entry(name: string, before: Entry | null): Entry | null {
    return this.#changesOf(name).reduce(changed, before);
  }

  /** Whether this commit knows a row of the job in another version: a row is checked at one version. */
  #hasOtherRowsThan({ names, snapshot }: Job): boolean {
    return names.some((name) => {
      const known = this.#base.get(name);
      return known && versionstampOf(known.entry) !== versionstampOf(snapshot?.get(name) ?? null);
    });
  }

  #hasChecksFor({ names, caller }: Job): boolean {
    const assumed = caller?.assumes && !this.#assumed.has(caller.assumes.row) ? 1 : 0;
    const own = names.filter((name) => !this.#base.has(name)).length;
    return this.#base.size + this.#assumed.size + own + assumed <= this.#maxChecks;
  }

  #hasRoomFor(job: Job): boolean {
    return this.#hasChecksFor(job) && this.#changes.length <= MAX_MUTATIONS &&
      this.#keyBytes <= MAX_KEY_BYTES && this.#valueBytes <= MAX_VALUE_BYTES;
  }

  #rowsAsRead({ keys, names, snapshot }: Job): readonly KnownRow[] {
    if (names.length === 0) return NO_ROWS;
    return names.map((name, index) => ({ key: keys[index] ?? [], entry: snapshot?.get(name) ?? null }));
  }
}

/** A text for each key; JSON has no bigint, and no key of this service has one. */
export function nameOf(key: Deno.KvKey): string {
  return JSON.stringify(key);
}

/** A row after a change. */
function changed(entry: Entry | null, { key, value }: Change): Entry | null {
  if (value === null) return null;
  const { versionstamp = "" } = entry ?? {};
  if (typeof value !== "number") return { key, value, versionstamp };
  const sum = BigInt.asUintN(64, BigInt(decodeCount(entry)) + BigInt(value));
  return { key, value: new Deno.KvU64(sum), versionstamp };
}

/** Roughly. */
function bytesOf(key: Deno.KvKey): number {
  return key.reduce<number>((sum, part) => sum + (typeof part === "string" ? part.length + 2 : 10), 0);
}
