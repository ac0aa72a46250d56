import { monotonicNow, type MonotonicTime, msSince, PAST, pause, plus } from "../../base/mod.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "../deadline.ts";
import { EngineMetrics } from "../metrics.ts";

/*
 * Every operation on KV has a deadline, and a dead connection is replaced. Deno's KV Connect client does neither: it
 * does not notice when its connection is dead, and repeats operations forever.
 *
 * A handle is what `Deno.openKv` returns. Each operation uses the least busy one. There are several, because Deno's
 * client stalls for 40 ms if two operations are under way on one handle. `run()` alone changes a handle's state:
 *
 *     working   →  resting   An operation failed. For a second, the handle is used only if all others rest, too.
 *     resting   →  working   An operation succeeded.
 *     resting   →  replaced  All operations have failed for two deadlines: a client that received wrong metadata might
 *                            fail forever.
 *
 * Handles that were opened together are a generation. `#giveUp()` and `#replace()` change its state:
 *
 *     current   →  given up  An operation missed its deadline. New operations are refused.
 *     current   →  replaced  New handles are open. The old ones are closed, which ends operations under way on them.
 *     given up  →  replaced
 *
 * Handles are replaced together, because one by one would fail most operations of the next burst. Nothing is lost: a
 * commit that missed its deadline, or whose handle was closed, might still apply. Markers then show whether it did
 * (`markers.ts`).
 */

/** Options of a {@linkcode Connection}. */
export interface ConnectionOptions {
  /** Deadline for one operation, in ms. */
  readonly deadline?: number;
  /** Opens new handles as soon as the KV responds. Rejects when the signal aborts. */
  readonly reopen: (signal: AbortSignal) => Promise<Deno.Kv[]>;
  readonly metrics?: EngineMetrics | undefined;
}

interface Handle {
  readonly kv: Deno.Kv;
  /** Number of operations under way. */
  busy: number;
  /** Time of the first failure since the last success. */
  failingSince: MonotonicTime | undefined;
  /** The handle is avoided until this time. */
  restsUntil: MonotonicTime;
}

/** Handles that were opened together. */
interface Generation {
  readonly handles: readonly Handle[];
  /** Number of operations that missed their deadline and have not ended. */
  hanging: number;
  /** Whether new operations are refused. */
  isGivenUp: boolean;
}

/** How long a handle is avoided after a failure if there are others, in ms. */
const REST = 1_000;
/** The handles are replaced if all operations on one have failed for this many deadlines. */
const MAX_FAILING = 2;
/** While this many replaced generations are hanging, no new handles are opened. */
const MAX_LOST = 8;
/** Maximum time that hanging operations delay new handles, in ms, because they might never end. */
const HANG_TIMEOUT = 30_000;
/** Interval between checks on hanging operations, in ms. */
const POLL = 500;

/** Handles on one KV, with a deadline on every operation. */
export class Connection {
  readonly #metrics: EngineMetrics;
  readonly #deadline: number;
  readonly #reopen: ConnectionOptions["reopen"];
  readonly #closing: AbortController = new AbortController();
  #generation: Generation;
  /** Replaced generations with operations that might still be hanging. */
  #replaced: Generation[] = [];
  /** Settles when the handles are replaced; undefined if no replacement is under way. */
  #replacing: Promise<void> | undefined;
  /** The recent mean duration of an operation, in ms. */
  roundTrip: number = 0;

  constructor(
    kvs: readonly Deno.Kv[],
    { deadline = KV_DEADLINE, reopen, metrics = new EngineMetrics() }: ConnectionOptions,
  ) {
    this.#metrics = metrics;
    this.#deadline = deadline;
    this.#reopen = reopen;
    this.#generation = generationOf(kvs);
  }

  /**
   * Runs an operation on the least busy handle.
   *
   * @throws {StoreUnavailable} if it fails or cannot be started now.
   * @throws {DeadlineExceeded} if it takes too long.
   */
  async run<T>(kind: "read" | "write", operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const started = monotonicNow();
    const generation = this.#generation;
    if (generation.isGivenUp) {
      this.#metrics.kvFailures.add(1, kind);
      throw new StoreUnavailable("The server does not respond");
    }
    const handle = generation.handles.reduce((least, handle) => load(handle) < load(least) ? handle : least);
    const operation = operate(handle.kv);
    handle.busy++;
    try {
      const result = await withDeadline(operation, this.#deadline);
      this.roundTrip += (msSince(started) - this.roundTrip) / 8;
      handle.failingSince = undefined;
      handle.restsUntil = PAST;
      return result;
    } catch (error) {
      this.#metrics.kvFailures.add(1, kind);
      if (error instanceof DeadlineExceeded) this.#giveUp(operation, generation);
      else this.#handleFailed(handle, generation);
      throw error;
    } finally {
      handle.busy--;
      this.#metrics.kvDuration.observe(msSince(started) / 1_000, kind);
    }
  }

  /** Closes the handles. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#replacing;
    close(this.#generation);
  }

  #giveUp(operation: Promise<unknown>, generation: Generation): void {
    generation.hanging++;
    operation.catch(() => {}).finally(() => generation.hanging--);
    generation.isGivenUp = true;
    this.#replace(generation);
  }

  /** Replaces the handles if one has been failing for too long. Until new ones are open, the old ones stay in use. */
  #handleFailed(handle: Handle, generation: Generation): void {
    handle.failingSince ??= monotonicNow();
    handle.restsUntil = plus(monotonicNow(), REST);
    if (msSince(handle.failingSince) > MAX_FAILING * this.#deadline) this.#replace(generation);
  }

  /** Starts replacing the handles, unless a replacement is already under way or done. */
  #replace(generation: Generation): void {
    if (generation === this.#generation) this.#replacing ??= this.#replaceAll();
  }

  async #replaceAll(): Promise<void> {
    const { signal } = this.#closing;
    const lost = () => this.#replaced.filter(({ hanging }) => hanging > 0);
    try {
      const end = plus(monotonicNow(), HANG_TIMEOUT);
      while (lost().length >= MAX_LOST && monotonicNow() < end && !signal.aborted) await pause(POLL);
      const kvs = await this.#reopen(signal);
      close(this.#generation);
      this.#replaced = [...lost(), this.#generation];
      this.#generation = generationOf(kvs);
    } catch (error) {
      if (error !== signal.reason) throw error; // Otherwise, the connection is being closed.
    } finally {
      this.#replacing = undefined;
    }
  }
}

function generationOf(kvs: readonly Deno.Kv[]): Generation {
  const handles = kvs.map((kv) => ({ kv, busy: 0, failingSince: undefined, restsUntil: PAST }));
  return { handles, hanging: 0, isGivenUp: false };
}

function close({ handles }: Generation): void {
  for (const { kv } of handles) kv.close();
}

/** A handle's load. A handle that has just failed sorts after all others. */
function load({ busy, restsUntil }: Handle): number {
  return monotonicNow() < restsUntil ? busy + 1e9 : busy;
}
