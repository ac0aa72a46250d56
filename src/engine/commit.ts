import { DAY, Metrics, pause } from "../base/mod.ts";
import type { Connection } from "./connection.ts";
import { AGAIN, againIfLocked, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry, getRows, MAX_KEYS, versionstampOf } from "./row.ts";
import { SCHEMA, SchemaVersion } from "./schema_version.ts";

/**
 * Adds changes, and perhaps checks, to an atomic operation, right before it is sent to KV. Throws if the commit must
 * not begin. It is called again if an attempt had no effect.
 */
export type Build = (operation: Deno.AtomicOperation) => void;

/** Rows that a commit checks. If a check fails, the commit's result has the rows. */
export interface Checks {
  readonly checks: readonly Deno.AtomicCheck[];
  /**
   * Whether a check is likely to fail. The rows are then read at the same time as the commit, which saves a round trip.
   */
  readonly isContested: boolean;
}

const NO_CHECKS: Checks = { checks: [], isContested: false };

/** The result of a commit. If a check failed, nothing was written, and `rows` are the checked ones. */
export type CommitResult =
  | { readonly ok: true; readonly versionstamp: string }
  | { readonly ok: false; readonly rows: readonly (Entry | null)[] };

/** How long to try to find out the result of a commit in doubt, and the pause between attempts, in ms. */
const FIND_OUT_TIMEOUT = 10_000;
const PAUSE = 500;

/** It is unknown whether a commit has applied, or will still apply. */
export class CommitInDoubt extends StoreUnavailable {
  override readonly name = "CommitInDoubt";
  readonly #fence: () => Promise<CommitResult>;

  /** `fence` resolves to the commit's final result. If it fails, it can be called again. */
  constructor(fence: () => Promise<CommitResult>, cause: unknown) {
    super("It is not known whether the commit applied", { cause });
    this.#fence = fence;
  }

  /**
   * Finds out the commit's final result. Tries for up to ten seconds, as long as a caller may wait, and at least once.
   *
   * @throws {CommitInDoubt} this error, if the result is still unknown.
   */
  async findOut(mayWait: () => boolean): Promise<CommitResult> {
    for (const end = performance.now() + FIND_OUT_TIMEOUT;; await pause(PAUSE)) {
      const result = await this.#fence().catch(() => undefined);
      if (result) return result;
      if (performance.now() >= end || !mayWait()) throw this;
    }
  }
}

/** The value of a marker. */
interface Marker {
  /** Number of the commit that set it. */
  readonly commit: number;
  /** When it was set, in ms since the epoch. */
  readonly at: number;
  /** The newest schema version that its process supports. Earlier releases, which support only the first, omit it. */
  readonly schema?: number;
}

/** A marker, as the last commit left it. Only one commit at a time uses it. */
interface Lane {
  readonly key: Deno.KvKey;
  /** Null before the lane is opened. */
  versionstamp: string | null;
}

const COMMITS = "commits";
const ABANDONED_AFTER = DAY;
/** Unless suspended, a process learns a commit's result, or that the commit is in doubt, within this time (ms). */
const AWAKE = 60_000;
/** Range of all processes' markers. */
export const MARKERS: { readonly start: Deno.KvKey; readonly end: Deno.KvKey } = {
  start: [COMMITS],
  end: [COMMITS, "~"],
};

/** Options of {@linkcode Markers}. */
export interface MarkersOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** The version of the rows; by default not read yet. */
  readonly schema?: SchemaVersion | undefined;
  readonly metrics?: Metrics | undefined;
}

/**
 * Commits that apply at most once, and whose result can always be found out.
 *
 * Deno's KV Connect client repeats a commit whose response was lost, and a commit that timed out might apply later. So
 * each commit uses a lane: it checks the marker that the last commit set there, and sets its own. A repeated commit
 * fails this check. If a commit is refused, the marker shows whether it had already applied. If a commit's result is
 * unknown, a fence (a commit that only replaces the old marker) is sent before the lane is used again. If the fence
 * applies, the first commit never will. If the fence is refused, the marker shows which of the two applied.
 */
export class Markers {
  /** The version of the rows, read when the last lane was opened. */
  readonly schema: SchemaVersion;
  readonly #connection: Connection;
  readonly #clock: () => number;
  readonly #metrics: Metrics;
  readonly #process: string = crypto.randomUUID().slice(0, 18);
  readonly #free: Lane[] = [];
  /** The fence for each commit in doubt, which frees its lane. */
  readonly #fences: Set<() => Promise<CommitResult>> = new Set();
  #lanes = 0;
  #commits = 0;

  constructor(
    connection: Connection,
    { clock, schema = new SchemaVersion(), metrics = new Metrics() }: MarkersOptions,
  ) {
    this.schema = schema;
    this.#connection = connection;
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /**
   * Commits the operation that `build` fills, with these checks. If one fails, reads the rows.
   *
   * @throws {StoreUnavailable} if the commit did not apply.
   * @throws {CommitInDoubt} if that is unknown.
   */
  commit(build: Build, checks: Checks = NO_CHECKS): Promise<CommitResult> {
    return retried(async () => await this.#commitIn(await this.#takeLane(), build, checks));
  }

  /** Removes this process's markers. */
  async clear(): Promise<void> {
    await retried(() =>
      this.#connection.write((kv) => {
        const operation = kv.atomic();
        for (let lane = 1; lane <= this.#lanes; lane++) operation.delete([COMMITS, this.#process, lane]);
        return operation.commit().catch(againIfLocked);
      })
    );
  }

  /** Whether the marker is another process's and over a day old: that process must have been killed. */
  isAbandoned(marker: Entry): boolean {
    const isOwn = marker.key[1] === this.#process;
    return !isOwn && this.#clock() - decodeJson<Marker>(marker).at > ABANDONED_AFTER;
  }

  /** Takes a free lane, one that a fence frees, or a new one. */
  async #takeLane(): Promise<Lane> {
    const [fence] = this.#free.length === 0 ? this.#fences : [];
    if (fence) await fence();
    const lane = this.#free.pop() ?? { key: [COMMITS, this.#process, ++this.#lanes], versionstamp: null };
    if (lane.versionstamp === null) await this.#open(lane);
    return lane;
  }

  /**
   * Sets the lane's first marker in a separate commit, so that no other commit depends on a missing marker. Then reads
   * the marker together with the schema version. A migration raises that version and then removes the markers of
   * processes that do not support it. After that, such a process has no lane and cannot open one.
   */
  async #open(lane: Lane): Promise<void> {
    try {
      await this.#send(lane, ++this.#commits, () => {});
      const keys = [lane.key, SCHEMA];
      const [marker = null, schema = null] = await this.#connection.read((kv) => getRows(kv, keys));
      this.schema.note(schema);
      if (marker === null) throw new StoreUnavailable("A marker is missing");
      lane.versionstamp = marker.versionstamp;
    } catch (error) {
      this.#free.push(lane); // Its marker might have been set.
      throw error;
    }
  }

  async #commitIn(
    lane: Lane,
    build: Build,
    { checks, isContested }: Checks,
  ): Promise<CommitResult | typeof AGAIN> {
    const commit = ++this.#commits;
    const started = this.#clock();
    const keys = [lane.key, ...checks.map(({ key }) => key)];
    const read = () => this.#connection.read((kv) => getRows(kv, keys));
    const early = isContested && keys.length <= MAX_KEYS ? read().catch(() => undefined) : undefined;
    let isSent = false;
    try {
      const result = await this.#send(lane, commit, (operation) => {
        isSent = false; // The previous attempt had no effect, because another process had locked the file.
        operation.check(...checks);
        build(operation);
        isSent = true;
      });
      if (result.ok) return this.#release(lane, result.versionstamp, result);
      const seen = await early;
      const [marker, ...rows] = seen && showFailure(seen, [lane, ...checks]) ? seen : await read();
      const { versionstamp = "" } = marker ?? {};
      if (isSetBy(commit, marker)) return this.#release(lane, versionstamp, { ok: true, versionstamp });
      if (versionstamp === lane.versionstamp) {
        this.#metrics.kvConflicts.add(1);
        return this.#release(lane, versionstamp, { ok: false, rows });
      }
      // Another process has removed the marker. Unless this process was suspended, that happened before the commit.
      if (Math.abs(this.#clock() - started) < AWAKE) return AGAIN;
      throw new StoreUnavailable("A marker is missing");
    } catch (error) {
      if (isSent) throw new CommitInDoubt(this.#fence(lane, commit), error);
      this.#free.push(lane);
      throw error;
    }
  }

  /**
   * Returns a function that finds out a commit's result and frees its lane. If the function fails, it can be called
   * again.
   */
  #fence(lane: Lane, commit: number): () => Promise<CommitResult> {
    let found: Promise<CommitResult> | undefined;
    const send = async (): Promise<CommitResult> => {
      const sent = await this.#send(lane, ++this.#commits, () => {});
      const [marker = null] = sent.ok ? [] : await this.#connection.read((kv) => getRows(kv, [lane.key]));
      // If KV refused the fence although the marker is unchanged, the commit might still apply.
      if (!sent.ok && marker?.versionstamp === lane.versionstamp) {
        throw new StoreUnavailable("A fence was refused");
      }
      this.#fences.delete(fence);
      if (sent.ok) return this.#release(lane, sent.versionstamp, { ok: false, rows: [] });
      if (!marker) throw new StoreUnavailable("A marker is missing");
      const { versionstamp } = marker;
      // Any other number belongs to an earlier fence that timed out.
      const result: CommitResult = isSetBy(commit, marker)
        ? { ok: true, versionstamp }
        : { ok: false, rows: [] };
      return this.#release(lane, versionstamp, result);
    };
    const fence = () =>
      found ??= send().catch((error) => {
        found = undefined;
        throw error;
      });
    this.#fences.add(fence);
    return fence;
  }

  /** Sends a commit that checks and sets the lane's marker. Repeats it while another process has locked the file. */
  #send(
    lane: Deno.AtomicCheck,
    commit: number,
    build: Build,
  ): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
    const marker: Marker = { commit, at: this.#clock(), schema: this.schema.known.newest };
    return retried(() =>
      this.#connection.write((kv) => {
        const operation = kv.atomic().check(lane);
        build(operation);
        return operation.set(lane.key, encodeJson(marker)).commit().catch(againIfLocked);
      })
    );
  }

  #release(lane: Lane, versionstamp: string, result: CommitResult): CommitResult {
    lane.versionstamp = versionstamp;
    this.#free.push(lane);
    return result;
  }
}

/** Whether rows show that a check has failed for good. A row that must not exist might be deleted again. */
function showFailure(rows: readonly (Entry | null)[], checks: readonly Deno.AtomicCheck[]): boolean {
  return checks.some(({ versionstamp }, index) =>
    versionstamp !== null && versionstampOf(rows[index] ?? null) !== versionstamp
  );
}

function isSetBy(commit: number, marker: Entry | null | undefined): boolean {
  return marker ? decodeJson<Marker>(marker).commit === commit : false;
}
