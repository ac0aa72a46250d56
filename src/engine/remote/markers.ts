import { HOUR } from "../../base/mod.ts";
import { MARKERS } from "../abandoned.ts";
import { type Build, CommitInDoubt, type CommitResult, REFUSED } from "../backend.ts";
import { StoreUnavailable } from "../deadline.ts";
import { decodeJson, encodeJson, type Entry, getRows, MAX_KEYS, versionstampOf } from "../row.ts";
import { KNOWN } from "../schema_version.ts";
import type { Connection } from "./connection.ts";

/** The value of a marker. */
interface Marker {
  /** Number of the commit that set it. */
  readonly commit: number;
  /** When it was set. */
  readonly at: number;
  /** The newest schema version that its process supports. Earlier releases, which support only the first, omit it. */
  readonly schema?: number;
}

/** A marker, as the last commit left it. Only one commit at a time uses it. */
interface Lane {
  readonly key: Deno.KvKey;
  /** Null before the lane is opened. */
  versionstamp: string | null;
  /** When the marker was set. */
  setAt: number;
}

/**
 * A lane whose marker is older than this, in ms, is opened again. Other processes remove it after a day, and the rest of
 * that allows for clocks that differ.
 */
const FRESH_FOR = 12 * HOUR;
/** A commit with more checks is likely to lose a race, and reads its rows early. */
const CONTESTED = 2;

/**
 * Finds out the final result of a commit in doubt, and frees its lane. `lost` means that another process has removed
 * the marker: the commit can no longer apply, but it cannot be known whether it already has. If a fence fails, it can
 * be called again.
 */
type Fence = () => Promise<CommitResult | "lost">;

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
  readonly #connection: Connection;
  readonly #clock: () => number;
  readonly #process: string = crypto.randomUUID().slice(0, 18);
  readonly #free: Lane[] = [];
  /** The fence for each commit in doubt. */
  readonly #fences: Set<Fence> = new Set();
  #lanes = 0;
  #commits = 0;

  /** The clock returns ms since the epoch. */
  constructor(connection: Connection, clock: () => number) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /**
   * Commits the operation that `build` fills, with these checks. If one fails, reads the rows.
   *
   * @throws {StoreUnavailable} if the commit did not apply.
   * @throws {CommitInDoubt} if that is unknown.
   */
  async commit(build: Build, checks: readonly Deno.AtomicCheck[] = []): Promise<CommitResult> {
    return await this.#commitIn(await this.#takeLane(), build, checks);
  }

  /** Removes this process's markers. */
  async clear(): Promise<void> {
    await this.#connection.run("write", (kv) => {
      const operation = kv.atomic();
      for (let lane = 1; lane <= this.#lanes; lane++) operation.delete([MARKERS, this.#process, lane]);
      return operation.commit();
    });
  }

  /** Whether a marker belongs to this process. */
  isOwn({ key: [, process] }: Entry): boolean {
    return process === this.#process;
  }

  /** Takes a free lane, one that a fence frees, or a new one. */
  async #takeLane(): Promise<Lane> {
    const [fence] = this.#free.length === 0 ? this.#fences : [];
    if (fence) await fence();
    const lane = this.#free.pop() ??
      { key: [MARKERS, this.#process, ++this.#lanes], versionstamp: null, setAt: 0 };
    if (Math.abs(this.#clock() - lane.setAt) > FRESH_FOR) lane.versionstamp = null;
    if (lane.versionstamp === null) await this.#open(lane);
    return lane;
  }

  /**
   * Sets the lane's marker if it has none, in a separate commit, so that no other commit depends on a missing marker.
   */
  async #open(lane: Lane): Promise<void> {
    try {
      const sent = await this.#send(lane, ++this.#commits, () => {});
      if (sent.ok) [lane.versionstamp, lane.setAt] = [sent.versionstamp, this.#clock()];
      else {
        const [marker = null] = await this.#read([lane.key]);
        if (marker === null) throw new StoreUnavailable("A marker is missing");
        [lane.versionstamp, lane.setAt] = [marker.versionstamp, decodeJson<Marker>(marker).at];
      }
    } catch (error) {
      this.#free.push(lane); // Its marker might have been set.
      throw error;
    }
  }

  async #commitIn(lane: Lane, build: Build, checks: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    const commit = ++this.#commits;
    const keys = [lane.key, ...checks.map(({ key }) => key)];
    const isContested = checks.length > CONTESTED && keys.length <= MAX_KEYS;
    const early = isContested ? this.#read(keys).catch(() => undefined) : undefined;
    let isSent = false;
    try {
      const result = await this.#send(lane, commit, (operation, stamp) => {
        operation.check(...checks);
        build(operation, stamp);
        isSent = true;
      });
      if (result.ok) return this.#release(lane, result.versionstamp, result);
      const seen = await early;
      const [marker, ...rows] = seen && showFailure(seen, [lane, ...checks]) ? seen : await this.#read(keys);
      const { versionstamp = "" } = marker ?? {};
      if (setterOf(marker) === commit) return this.#release(lane, versionstamp, { ok: true, versionstamp });
      if (versionstamp !== lane.versionstamp) throw new StoreUnavailable("A marker was removed");
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
      const [marker = null] = sent.ok ? [] : await this.#read([lane.key]);
      // If KV refused the fence although the marker is unchanged, the commit might still apply.
      if (!sent.ok && marker?.versionstamp === lane.versionstamp) {
        throw new StoreUnavailable("A fence was refused");
      }
      this.#fences.delete(fence);
      if (sent.ok) return this.#release(lane, sent.versionstamp, REFUSED);
      const { versionstamp = "" } = marker ?? {};
      const setter = setterOf(marker);
      if (setter === commit) return this.#release(lane, versionstamp, { ok: true, versionstamp });
      // An earlier fence has applied, although it timed out.
      if (setter > commit) return this.#release(lane, versionstamp, REFUSED);
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

  #read(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.#connection.run("read", (kv) => getRows(kv, keys));
  }

  /** Sends a commit that checks and sets the lane's marker. */
  #send(
    lane: Deno.AtomicCheck,
    commit: number,
    build: Build,
  ): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
    const marker: Marker = { commit, at: this.#clock(), schema: KNOWN.newest };
    return this.#connection.run("write", (kv) => {
      const operation = kv.atomic().check(lane);
      build(operation, kv.commitVersionstamp());
      return operation.set(lane.key, encodeJson(marker)).commit();
    });
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
