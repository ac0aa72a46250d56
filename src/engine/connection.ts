import { Metrics, pause } from "../base/mod.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import type { FileState, FileWatch } from "./file.ts";

/*
 * Every operation on KV has a deadline, and a dead connection is replaced. Deno's KV Connect client does neither: it
 * does not notice when its connection is dead, and repeats operations forever.
 *
 * A handle is what `Deno.openKv` returns. Each operation uses the least busy one. A KV Connect server has several,
 * because Deno's client stalls for 40 ms if two operations are under way on one handle. A file has one for writes and
 * another for reads, so that reads do not wait for writes. `#run()` alone changes a handle's state:
 *
 *     working   →  resting   An operation failed. For a second, the handle is used only if all others rest, too.
 *     resting   →  working   An operation succeeded.
 *     resting   →  replaced  All operations have failed for two deadlines: a client that received wrong metadata might
 *                            fail forever.
 *
 * Handles that were opened together are a generation. `#giveUp()` and `#replace()` change its state:
 *
 *     current   →  given up  An operation on a server missed its deadline. New operations are refused.
 *     current   →  replaced  New handles are open. The old ones are closed, which ends operations under way on them.
 *     given up  →  replaced
 *
 * The handles on a file are never replaced: new ones would not help, and only one is allowed to write. While too many
 * operations hang there, one is tried per deadline. Handles are replaced together, because one by one would fail most
 * operations of the next burst.
 *
 * Nothing is lost: a commit that missed its deadline, or whose handle was closed, might still apply. Markers then show
 * whether it did (`commit.ts`).
 */

/** Options of a {@linkcode Connection}. */
export interface ConnectionOptions {
  /** Deadline for one operation, in ms. */
  readonly deadline?: number;
  /**
   * Opens new handles on a KV Connect server as soon as it responds. Rejects when the signal aborts. Not set for a
   * file, because new handles would not help, and only one of them is allowed to write.
   */
  readonly reopen?: (signal: AbortSignal) => Promise<Deno.Kv[]>;
  /** The state of the file, if KV is one. */
  readonly file?: FileState | undefined;
  readonly watch?: FileWatch | undefined;
  readonly metrics?: Metrics | undefined;
}

type Kind = "read" | "write";

/** Why nothing is written to a file that a `FileWatch` has lost. */
export const FILE_LOST = "The KV file was removed or renamed; restart the service";

interface Handle {
  readonly kv: Deno.Kv;
  /** Number of operations under way. */
  busy: number;
  /** Time of the first failure since the last success, on the `performance.now()` clock. */
  failingSince: number | undefined;
  /** The handle is avoided until this time, on the `performance.now()` clock. */
  restsUntil: number;
}

/** Handles that were opened together. */
interface Generation extends Readonly<Record<Kind, readonly Handle[]>> {
  readonly kvs: readonly Deno.Kv[];
  /** Number of operations that missed their deadline and have not ended. */
  hanging: number;
  /** Whether new operations are refused. */
  isGivenUp: boolean;
}

/** How long a handle is avoided after a failure if there are others, in ms. */
const REST = 1_000;
/** The handles are replaced if all operations on one have failed for this many deadlines. */
const MAX_FAILING = 2;
const MAX_HANGING = 16;
/** While this many replaced generations are hanging, no new handles are opened. */
const MAX_LOST = 8;
/** Maximum time that hanging operations delay new handles, in ms, because they might never end. */
const HANG_TIMEOUT = 30_000;
/** Interval between checks on hanging operations, in ms. */
const POLL = 500;

/**
 * Handles on one Deno KV, with a deadline on every operation.
 *
 * @throws {StoreUnavailable} from `read` and `write` if an operation fails or cannot be started now.
 * @throws {DeadlineExceeded} from `read` and `write` if an operation takes too long.
 */
export class Connection {
  /** Undefined if KV is not a file, or SQLite cannot read it. */
  readonly file: FileState | undefined;
  readonly #watch: FileWatch | undefined;
  readonly #metrics: Metrics;
  readonly #deadline: number;
  readonly #reopen: ConnectionOptions["reopen"];
  readonly #closing: AbortController = new AbortController();
  #generation: Generation;
  /** Replaced generations with operations that might still be hanging. */
  #replaced: Generation[] = [];
  /** Settles when the handles are replaced; undefined if no replacement is under way. */
  #replacing: Promise<void> | undefined;
  #nextTry = 0;

  constructor(
    kvs: readonly Deno.Kv[],
    { deadline = KV_DEADLINE, reopen, file, watch, metrics = new Metrics() }: ConnectionOptions = {},
  ) {
    this.file = file;
    this.#watch = watch;
    this.#metrics = metrics;
    this.#deadline = deadline;
    this.#reopen = reopen;
    this.#generation = this.#generationOf(kvs);
  }

  /** Runs an operation that only reads. */
  read<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    return this.#run("read", operate);
  }

  /** Runs an operation that writes. */
  write<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    return this.#run("write", operate);
  }

  /** Closes the handles. If an operation is hanging on a file, the handles stay open until the process ends. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#replacing;
    // The last handle to close checkpoints the write-ahead log, so it must not be this read-only one.
    this.file?.close();
    this.#watch?.close();
    // Closing a handle on a file blocks the whole process until its operations end.
    if (this.#reopen || this.#generation.hanging === 0) close(this.#generation);
  }

  async #run<T>(kind: Kind, operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const refusal = this.#refuse(kind);
    if (refusal !== undefined) {
      this.#metrics.kvFailures.add(1, kind);
      throw new StoreUnavailable(refusal);
    }
    const started = performance.now();
    const generation = this.#generation;
    const handle = generation[kind].reduce((least, handle) => load(handle) < load(least) ? handle : least);
    const operation = operate(handle.kv);
    handle.busy++;
    try {
      const result = await withDeadline(operation, this.#deadline);
      handle.failingSince = undefined;
      handle.restsUntil = 0;
      return result;
    } catch (error) {
      this.#metrics.kvFailures.add(1, kind);
      if (error instanceof DeadlineExceeded) this.#giveUp(operation, generation);
      else this.#noteFailure(handle, generation);
      throw error;
    } finally {
      handle.busy--;
      this.#metrics.kvDuration.observe((performance.now() - started) / 1_000, kind);
    }
  }

  /**
   * Why no operation can be started now; undefined if one can. While too many hang, one can be started per
   * deadline, and this call takes that turn.
   */
  #refuse(kind: Kind): string | undefined {
    if (kind === "write" && this.#watch?.isLost) return FILE_LOST;
    if (this.#generation.isGivenUp) return "The server does not respond";
    if (this.#generation.hanging < MAX_HANGING) return undefined;
    if (performance.now() < this.#nextTry) return "Earlier operations still hang";
    this.#nextTry = performance.now() + this.#deadline;
    return undefined;
  }

  #giveUp(operation: Promise<unknown>, generation: Generation): void {
    generation.hanging++;
    operation.catch(() => {}).finally(() => generation.hanging--);
    this.#nextTry = performance.now() + this.#deadline;
    generation.isGivenUp = this.#reopen !== undefined;
    this.#replace(generation);
  }

  /** Replaces the handles if one has been failing for too long. Until new ones are open, the old ones stay in use. */
  #noteFailure(handle: Handle, generation: Generation): void {
    const now = performance.now();
    handle.failingSince ??= now;
    handle.restsUntil = now + REST;
    if (now - handle.failingSince > MAX_FAILING * this.#deadline) this.#replace(generation);
  }

  /** Starts replacing a server's handles, unless a replacement is already under way or done. */
  #replace(generation: Generation): void {
    if (this.#reopen && generation === this.#generation) this.#replacing ??= this.#replaceAll(this.#reopen);
  }

  async #replaceAll(reopen: NonNullable<ConnectionOptions["reopen"]>): Promise<void> {
    const { signal } = this.#closing;
    const lost = () => this.#replaced.filter(({ hanging }) => hanging > 0);
    try {
      const end = performance.now() + HANG_TIMEOUT;
      while (lost().length >= MAX_LOST && performance.now() < end && !signal.aborted) await pause(POLL);
      const kvs = await reopen(signal);
      close(this.#generation);
      this.#replaced = [...lost(), this.#generation];
      this.#generation = this.#generationOf(kvs);
    } catch (error) {
      if (error !== signal.reason) throw error; // Otherwise, the connection is being closed.
    } finally {
      this.#replacing = undefined;
    }
  }

  #generationOf(kvs: readonly Deno.Kv[]): Generation {
    const handles = kvs.map((kv) => ({ kv, busy: 0, failingSince: undefined, restsUntil: 0 }));
    const [read, write] = this.#reopen || kvs.length === 1
      ? [handles, handles]
      : [handles.slice(1), handles.slice(0, 1)];
    return { kvs, read, write, hanging: 0, isGivenUp: false };
  }
}

function close({ kvs }: Generation): void {
  for (const kv of kvs) kv.close();
}

/** A handle's load. A handle that has just failed sorts after all others. */
function load({ busy, restsUntil }: Handle): number {
  return performance.now() < restsUntil ? busy + 1e9 : busy;
}
