import { DAY, HOUR, Metrics, pause } from "../base/mod.ts";
import type { Connection } from "./connection.ts";
import { againIfLocked, LOCKED, retried, StoreUnavailable } from "./deadline.ts";
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

/**
 * Finds out the final result of a commit in doubt, and frees its lane. `lost` means that another process has removed
 * the marker: the commit can no longer apply, but it cannot be known whether it already has. If a fence fails, it can
 * be called again.
 */
type Fence = () => Promise<CommitResult | "lost">;

/** It is unknown whether a commit has applied, or will still apply. */
export class CommitInDoubt extends StoreUnavailable {
  override readonly name = "CommitInDoubt";
  readonly #fence: Fence;

  constructor(fence: Fence, cause: unknown) {
    super("It is not known whether the commit applied", { cause });
    this.#fence = fence;
  }

  /**
   * Finds out the commit's final result. Tries for up to ten seconds, as long as a caller may wait, and at least once.
   *
   * @throws {CommitInDoubt} this same error, if the result is still unknown, or if the marker was removed.
   */
  async findOut(mayWait: () => boolean): Promise<CommitResult> {
    for (const end = performance.now() + FIND_OUT_TIMEOUT;; await pause(PAUSE)) {
      const found = await this.#fence().catch(() => undefined);
      if (found === "lost") throw this;
      if (found) return found;
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
  /** When the marker was set, in ms since the epoch. */
  setAt: number;
}

const COMMITS = "commits";
/** Other processes remove a marker that is older than this, in ms. */
const ABANDONED_AFTER = DAY;
/**
 * A lane whose marker is older than this, in ms, is opened again. The rest of the day allows for clocks that differ.
 */
const FRESH_FOR = 12 * HOUR;
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
 *
 * Other processes remove a marker after a day. If a commit finds its marker removed, it stays in doubt: it might have
 * applied before. So a process that was suspended, or whose clock is a day behind another's, commits nothing twice. A
 * lane that was idle for half a day is opened again before it is used.
 */
export class Markers {
  /** The version of the rows, read when the last lane was opened. */
  readonly schema: SchemaVersion;
  readonly #connection: Connection;
  readonly #clock: () => number;
  readonly #metrics: Metrics;
  readonly #process: string = crypto.randomUUID().slice(0, 18);
  readonly #free: Lane[] = [];
  /** The fence for each commit in doubt. */
  readonly #fences: Set<Fence> = new Set();
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
  async commit(build: Build, checks: Checks = NO_CHECKS): Promise<CommitResult> {
    return await this.#commitIn(await this.#takeLane(), build, checks);
  }

  /** Removes this process's markers. */
  async clear(): Promise<void> {
    await retried(() =>
      this.#connection.write((kv) => {
        const operation = kv.atomic();
        for (let lane = 1; lane <= this.#lanes; lane++) operation.delete([COMMITS, this.#process, lane]);
        return operation.commit().catch(againIfLocked);
      }), LOCKED);
  }

  /** Whether the marker belongs to another process and is over a day old. That process was probably killed. */
  isAbandoned(marker: Entry): boolean {
    const isOwn = marker.key[1] === this.#process;
    return !isOwn && this.#clock() - decodeJson<Marker>(marker).at > ABANDONED_AFTER;
  }

  /** Takes a free lane, one that a fence frees, or a new one. */
  async #takeLane(): Promise<Lane> {
    const [fence] = this.#free.length === 0 ? this.#fences : [];
    if (fence) await fence();
    const lane = this.#free.pop() ??
      { key: [COMMITS, this.#process, ++this.#lanes], versionstamp: null, setAt: 0 };
    if (Math.abs(this.#clock() - lane.setAt) > FRESH_FOR) lane.versionstamp = null;
    if (lane.versionstamp === null) await this.#open(lane);
    return lane;
  }

  /**
   * Sets the lane's marker if it has none, in a separate commit, so that no other commit depends on a missing marker. Then
   * reads the marker together with the schema version. A migration raises that version and then removes the markers of
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
      lane.setAt = decodeJson<Marker>(marker).at;
    } catch (error) {
      this.#free.push(lane); // Its marker might have been set.
      throw error;
    }
  }

  async #commitIn(lane: Lane, build: Build, { checks, isContested }: Checks): Promise<CommitResult> {
    const commit = ++this.#commits;
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
      if (setterOf(marker) === commit) return this.#release(lane, versionstamp, { ok: true, versionstamp });
      if (versionstamp !== lane.versionstamp) throw new StoreUnavailable("A marker was removed");
      this.#metrics.kvConflicts.add(1);
      return this.#release(lane, versionstamp, { ok: false, rows });
    } catch (error) {
      if (isSent) throw new CommitInDoubt(this.#fence(lane, commit), error);
      this.#free.push(lane);
      throw error;
    }
  }

  /** Returns the fence for a commit. */
  #fence(lane: Lane, commit: number): Fence {
    let found: ReturnType<Fence> | undefined;
    const send = async (): ReturnType<Fence> => {
      const sent = await this.#send(lane, ++this.#commits, () => {});
      const keys = [lane.key, SCHEMA];
      const [marker = null, schema = null] = sent.ok
        ? []
        : await this.#connection.read((kv) => getRows(kv, keys));
      // If KV refused the fence although the marker is unchanged, the commit might still apply.
      if (!sent.ok && marker?.versionstamp === lane.versionstamp) {
        throw new StoreUnavailable("A fence was refused");
      }
      this.#fences.delete(fence);
      if (sent.ok) return this.#release(lane, sent.versionstamp, { ok: false, rows: [] });
      const { versionstamp = "" } = marker ?? {};
      const setter = setterOf(marker);
      if (setter === commit) return this.#release(lane, versionstamp, { ok: true, versionstamp });
      // An earlier fence has applied, although it timed out.
      if (setter > commit) return this.#release(lane, versionstamp, { ok: false, rows: [] });
      try {
        this.schema.note(schema); // A migration might have removed the marker.
      } catch {
        // `superseded` rejects with this error, and the process stops.
      }
      return "lost"; // The lane is not used again.
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
      }), LOCKED);
  }

  /** Frees a lane. Its marker now has this version. */
  #release(lane: Lane, versionstamp: string, result: CommitResult): CommitResult {
    if (versionstamp !== lane.versionstamp) lane.setAt = this.#clock();
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

/** Number of the commit that set a marker; 0 if the marker is missing. */
function setterOf(marker: Entry | null | undefined): number {
  return marker ? decodeJson<Marker>(marker).commit : 0;
}
