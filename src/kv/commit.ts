import type { Connection } from "./connection.ts";
import { AGAIN, againIfLocked, pause, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry, getRows } from "./row.ts";
import { SCHEMA, Schema } from "./schema.ts";

/**
 * Puts checks and changes into an atomic operation, in the step that hands it to KV; throws if it is not to be begun any
 * more. May be called again if nothing was done. Sums have to come first: if a row holds no number, KV throws at its
 * sum, but stores what comes before that.
 */
export type Build = (operation: Deno.AtomicOperation) => void;

/** What became of a commit: it applied; or a check failed and nothing was done, with the rows that were asked for. */
export type CommitResult =
  | { readonly ok: true; readonly versionstamp: string }
  | { readonly ok: false; readonly rows: readonly (Entry | null)[] };

/** How long a commit in doubt is looked into, and how long between two attempts, in ms. */
const PATIENCE = 10_000;
const PAUSE = 500;

/** It is not known whether a commit applied, or still will. */
export class CommitInDoubt extends StoreUnavailable {
  override readonly name = "CommitInDoubt";
  /**
   * Finds that out, for good.
   *
   * @throws {StoreUnavailable}
   */
  readonly findOut: () => Promise<CommitResult>;

  constructor(findOut: () => Promise<CommitResult>, cause: unknown) {
    super("It is not known whether the commit applied", { cause });
    this.findOut = findOut;
  }

  /**
   * Finds that out within ten seconds.
   *
   * @throws {CommitInDoubt} this one, when it cannot be found out.
   */
  async findOutPatiently(): Promise<CommitResult> {
    for (const end = performance.now() + PATIENCE; performance.now() < end; await pause(PAUSE)) {
      const result = await this.findOut().catch(() => undefined);
      if (result) return result;
    }
    throw this;
  }
}

/** What a marker holds. */
interface Marker {
  /** Which commit set it. */
  readonly commit: number;
  /** When, ms since the epoch. */
  readonly at: number;
  /** The newest version of the rows that its process knows; left out by earlier releases, which knew the first. */
  readonly schema?: number;
}

/** The row of a marker, as the last commit left it. One commit at a time travels with it. */
interface Lane {
  readonly key: Deno.KvKey;
  /** Null before it is opened. */
  versionstamp: string | null;
}

const COMMITS = "commits";
const ABANDONED_AFTER = 24 * 3_600_000;
/** A process that was not asleep knows within this time, in ms, what became of a commit, or that it cannot know. */
const AWAKE = 60_000;
/** Where the markers of all processes are. */
export const MARKERS: { readonly start: Deno.KvKey; readonly end: Deno.KvKey } = {
  start: [COMMITS],
  end: [COMMITS, "~"],
};

/**
 * Commits that apply at most once, and whose fate can be known.
 *
 * The client of a KV Connect server repeats a commit whose reply was lost, and a commit that was given up may land
 * later. So each travels in a lane of its own: it checks the marker that the last commit left there, and sets its own.
 * If it is repeated, that check fails. If it is refused, the marker tells whether it had applied before. If its fate is
 * unknown, it is fenced before its lane is used again: another commit replaces the old marker, and does nothing else.
 * If the fence applies, the first commit never will; if the fence is refused, the marker tells which of them applied.
 */
export class Markers {
  /** The version of the rows, as it was seen when the last lane was opened. */
  readonly schema: Schema;
  readonly #connection: Connection;
  readonly #clock: () => number;
  readonly #process: string = crypto.randomUUID().slice(0, 18);
  readonly #free: Lane[] = [];
  /** Find out the fate of commits in doubt, and free their lanes. */
  readonly #fences: Set<() => Promise<CommitResult>> = new Set();
  #lanes = 0;
  #commits = 0;

  /** The clock tells ms since the epoch. */
  constructor(connection: Connection, clock: () => number, schema: Schema = new Schema()) {
    this.schema = schema;
    this.#connection = connection;
    this.#clock = clock;
  }

  /**
   * Commits what `build` asks for; if it is refused, reads the rows with these keys.
   *
   * @throws {StoreUnavailable} when it was not carried out.
   * @throws {CommitInDoubt} when that is not known.
   */
  commit(build: Build, keys: readonly Deno.KvKey[]): Promise<CommitResult> {
    return retried(async () => await this.#commitIn(await this.#takeLane(), build, keys));
  }

  /** Removes this process's markers, which are of use to no other. */
  async clear(): Promise<void> {
    await this.#connection.write((kv) => {
      const operation = kv.atomic();
      for (let lane = 1; lane <= this.#lanes; lane++) operation.delete([COMMITS, this.#process, lane]);
      return operation.commit();
    });
  }

  /** Whether no commit of another process has set this marker for a day: that process was killed. */
  isAbandoned(marker: Entry): boolean {
    const isOwn = marker.key[1] === this.#process;
    return !isOwn && this.#clock() - decodeJson<Marker>(marker).at > ABANDONED_AFTER;
  }

  /** A lane that is free, freed or new. */
  async #takeLane(): Promise<Lane> {
    const [findOut] = this.#free.length === 0 ? this.#fences : [];
    if (findOut) await findOut();
    const lane = this.#free.pop() ?? { key: [COMMITS, this.#process, ++this.#lanes], versionstamp: null };
    if (lane.versionstamp === null) await this.#open(lane);
    return lane;
  }

  /**
   * Sets a lane's marker and nothing else, so that no commit with effects ever checks that there is none; and reads it
   * together with the version of the rows. A migration raises that version first, and removes the markers of processes
   * that do not know it afterwards: so none of them has a lane from then on, or gets another.
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
      this.#free.push(lane); // Its marker may be set all the same.
      throw error;
    }
  }

  async #commitIn(
    lane: Lane,
    build: Build,
    keys: readonly Deno.KvKey[],
  ): Promise<CommitResult | typeof AGAIN> {
    const commit = ++this.#commits;
    const started = this.#clock();
    let isSent = false;
    try {
      const result = await this.#send(lane, commit, (operation) => {
        isSent = false; // If another process locked the file, the last try did nothing.
        build(operation);
        isSent = true;
      });
      if (result.ok) return this.#freed(lane, result.versionstamp, result);
      const [marker, ...rows] = await this.#connection.read((kv) => getRows(kv, [lane.key, ...keys]));
      const { versionstamp = "" } = marker ?? {};
      if (isSetBy(commit, marker)) return this.#freed(lane, versionstamp, { ok: true, versionstamp });
      if (versionstamp === lane.versionstamp) {
        this.#connection.metrics.kvConflicts.add(1);
        return this.#freed(lane, versionstamp, { ok: false, rows });
      }
      // Another process has removed it: long ago, unless this one was asleep after it had sent the commit.
      if (Math.abs(this.#clock() - started) < AWAKE) return AGAIN;
      throw new StoreUnavailable("A marker is missing");
    } catch (error) {
      if (isSent) throw new CommitInDoubt(this.#fence(lane, commit), error);
      this.#free.push(lane);
      throw error;
    }
  }

  /** What finds out what became of a commit and frees its lane; when that fails, the next call tries again. */
  #fence(lane: Lane, commit: number): () => Promise<CommitResult> {
    let found: Promise<CommitResult> | undefined;
    const fence = async (): Promise<CommitResult> => {
      const sent = await this.#send(lane, ++this.#commits, () => {});
      const [marker = null] = sent.ok ? [] : await this.#connection.read((kv) => getRows(kv, [lane.key]));
      // If KV refused the fence though the marker is as it was, the commit may still apply.
      if (!sent.ok && marker?.versionstamp === lane.versionstamp) {
        throw new StoreUnavailable("A fence was refused");
      }
      this.#fences.delete(findOut);
      if (sent.ok) return this.#freed(lane, sent.versionstamp, { ok: false, rows: [] });
      if (!marker) throw new StoreUnavailable("A marker is missing");
      const { versionstamp } = marker;
      // Any other number is that of a fence which was itself given up.
      const result: CommitResult = isSetBy(commit, marker)
        ? { ok: true, versionstamp }
        : { ok: false, rows: [] };
      return this.#freed(lane, versionstamp, result);
    };
    const findOut = () =>
      found ??= fence().catch((error) => {
        found = undefined;
        throw error;
      });
    this.#fences.add(findOut);
    return findOut;
  }

  /** Sends a commit that checks and sets a lane's marker; again for as long as another process locks the file. */
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

  #freed(lane: Lane, versionstamp: string, result: CommitResult): CommitResult {
    lane.versionstamp = versionstamp;
    this.#free.push(lane);
    return result;
  }
}

function isSetBy(commit: number, marker: Entry | null | undefined): boolean {
  return marker ? decodeJson<Marker>(marker).commit === commit : false;
}
