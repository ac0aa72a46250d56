import { KV_CONFLICTS } from "../metrics/metrics.ts";
import { type Build, CommitInDoubt, type CommitResult } from "./commit.ts";
import type { Connection } from "./connection.ts";
import { StoreUnavailable } from "./deadline.ts";
import { AGAIN, againIfLocked, retried } from "./retried.ts";
import { decodeJson, encodeJson, type Entry, getRows } from "./row.ts";

/** A mark: which commit set it, and when (ms since the epoch). */
interface Mark {
  readonly commit: number;
  readonly at: number;
}

/** The row of a mark, as the last commit left it. At most one commit at a time is on its way with it. */
interface Slot {
  readonly key: Deno.KvKey;
  /** Null before it is opened. */
  versionstamp: string | null;
}

/** A commit that may have applied, or may still, and what a fence found out. */
interface Doubt {
  readonly slot: Slot;
  readonly commit: number;
  found?: Promise<CommitResult>;
}

const COMMITS = "commits";
/** Where the marks of all processes are. */
export const MARKS_START: Deno.KvKey = [COMMITS];
export const MARKS_END: Deno.KvKey = [COMMITS, "~"];
const ABANDONED_AFTER = 24 * 3_600_000;

/**
 * Commits that apply at most once, and whose fate can be known.
 *
 * The client of a KV Connect server repeats a commit whose reply was lost, and a commit that was given up may
 * land later. So each has a slot to itself: it checks the mark that the last commit left there, and sets its
 * own. Repeated, it fails its own check; if it is refused, the mark tells whether that was by itself. A commit
 * in doubt is fenced before its slot is used again: another commit overwrites the old mark, and nothing else. If
 * that succeeds, the one in doubt never will; if not, it has applied.
 */
export class Marks {
  readonly #connection: Connection;
  readonly #clock: () => number;
  readonly #process: string = crypto.randomUUID().slice(0, 18);
  readonly #free: Slot[] = [];
  readonly #doubts: Set<Doubt> = new Set();
  #slots = 0;
  #commits = 0;

  /** The clock tells ms since the epoch. */
  constructor(connection: Connection, clock: () => number) {
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
    return retried(async () => await this.#commitIn(await this.#acquire(), build, keys));
  }

  /** Removes this process's marks: they are of use to no other. */
  async clear(): Promise<void> {
    await this.#connection.write((kv) => {
      const operation = kv.atomic();
      for (let slot = 1; slot <= this.#slots; slot++) operation.delete([COMMITS, this.#process, slot]);
      return operation.commit();
    });
  }

  /**
   * Removes up to `limit` of other processes' marks in these pages that no commit has set for a day: they were killed.
   * Resolves to whether there may be more.
   */
  async sweep(marks: AsyncIterable<readonly Entry[]>, limit: number): Promise<boolean> {
    const now = this.#clock();
    const abandoned: Entry[] = [];
    for await (const page of marks) {
      const others = page.filter(({ key }) => key[1] !== this.#process);
      abandoned.push(...others.filter((entry) => now - decodeJson<Mark>(entry).at > ABANDONED_AFTER));
      if (abandoned.length >= limit) break;
    }
    abandoned.splice(limit);
    if (abandoned.length === 0) return false;
    await this.commit((operation) => {
      for (const { key, versionstamp } of abandoned) operation.check({ key, versionstamp }).delete(key);
    }, []);
    return abandoned.length === limit;
  }

  /** A slot that no commit is on its way with. */
  async #acquire(): Promise<Slot> {
    const [doubt] = this.#free.length === 0 ? this.#doubts : [];
    if (doubt !== undefined) await this.#findOut(doubt);
    const slot = this.#free.pop() ?? { key: [COMMITS, this.#process, ++this.#slots], versionstamp: null };
    if (slot.versionstamp === null) await this.#open(slot);
    return slot;
  }

  /** Sets a slot's mark, and nothing else, so no commit with effects ever checks that there is none. */
  async #open(slot: Slot): Promise<void> {
    try {
      await this.#send(slot, ++this.#commits, () => {});
      const { versionstamp } = await this.#connection.read((kv) => kv.get(slot.key));
      if (versionstamp === null) throw new StoreUnavailable("A mark is missing");
      slot.versionstamp = versionstamp;
    } catch (error) {
      this.#free.push(slot); // It may be set all the same.
      throw error;
    }
  }

  async #commitIn(
    slot: Slot,
    build: Build,
    keys: readonly Deno.KvKey[],
  ): Promise<CommitResult | typeof AGAIN> {
    const commit = ++this.#commits;
    let sent = false;
    try {
      const result = await this.#send(slot, commit, (operation) => {
        sent = false; // Again, where another process locked the file: nothing was done then.
        build(operation);
        sent = true;
      });
      if (result.ok) return this.#freed(slot, result.versionstamp, result);
      const [mark, ...rows] = await this.#connection.read((kv) => getRows(kv, [slot.key, ...keys]));
      const { versionstamp = "" } = mark ?? {};
      if (mark && numberIn(mark) === commit) {
        return this.#freed(slot, versionstamp, { ok: true, versionstamp });
      }
      if (versionstamp !== slot.versionstamp) return AGAIN; // Swept, as if this process were dead: it is given up.
      KV_CONFLICTS.add(1);
      return this.#freed(slot, versionstamp, { ok: false, rows });
    } catch (error) {
      if (!sent) {
        this.#free.push(slot);
        throw error;
      }
      const doubt = { slot, commit };
      this.#doubts.add(doubt);
      throw new CommitInDoubt(() => this.#findOut(doubt), error);
    }
  }

  /** What became of a commit in doubt; frees its slot. Tried again at the next call when it fails. */
  #findOut(doubt: Doubt): Promise<CommitResult> {
    doubt.found ??= this.#fence(doubt).catch((error) => {
      delete doubt.found;
      throw error;
    });
    return doubt.found;
  }

  async #fence(doubt: Doubt): Promise<CommitResult> {
    const { slot, commit } = doubt;
    const fence = await this.#send(slot, ++this.#commits, () => {});
    const [mark] = fence.ok ? [] : await this.#connection.read((kv) => getRows(kv, [slot.key]));
    this.#doubts.delete(doubt);
    if (fence.ok) return this.#freed(slot, fence.versionstamp, { ok: false, rows: [] });
    if (!mark) throw new StoreUnavailable("A mark is missing");
    const { versionstamp } = mark;
    // Any other number is that of a fence which was itself given up.
    const applied = numberIn(mark) === commit;
    return this.#freed(slot, versionstamp, applied ? { ok: true, versionstamp } : { ok: false, rows: [] });
  }

  /** Sends a commit that checks and sets the slot's mark; again for as long as another process locks the file. */
  #send(
    slot: Deno.AtomicCheck,
    commit: number,
    build: Build,
  ): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
    const mark: Mark = { commit, at: this.#clock() };
    return retried(() =>
      this.#connection.write((kv) => {
        const operation = kv.atomic().check(slot);
        build(operation);
        return operation.set(slot.key, encodeJson(mark)).commit().catch(againIfLocked);
      })
    );
  }

  #freed(slot: Slot, versionstamp: string, result: CommitResult): CommitResult {
    slot.versionstamp = versionstamp;
    this.#free.push(slot);
    return result;
  }
}

/** The number of the commit that set a mark. */
function numberIn(mark: Entry): number {
  return decodeJson<Mark>(mark).commit;
}
