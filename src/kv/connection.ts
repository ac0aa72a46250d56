import { Metrics } from "../metrics/metrics.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import type { FileState } from "./file.ts";
import { pause } from "./retried.ts";

/** How a connection is kept. */
export interface ConnectionOptions {
  /** Longest wait for one operation, in ms. */
  readonly deadline?: number;
  /**
   * Opens handles on the same KV as soon as its server answers; rejects when the signal aborts. Given for a server
   * alone: a file's other handles would be no better, and just one of them may write.
   */
  readonly reopen?: (signal: AbortSignal) => Promise<Deno.Kv[]>;
  /** Given where KV is a file. */
  readonly file?: FileState | undefined;
  readonly metrics?: Metrics | undefined;
}

interface Handle {
  readonly kv: Deno.Kv;
  /** Operations on their way. */
  busy: number;
  /** When an operation failed at once, first since one succeeded and last, by `performance.now()`. */
  failing: { readonly since: number; readonly last: number } | undefined;
}

/** Handles that were opened together. */
interface Generation {
  readonly handles: readonly Handle[];
  /** Operations that were given up and have not ended. */
  hanging: number;
  /** Whether it is given up, too, so that no more operations are started. */
  isGivenUp: boolean;
}

/** For how long a handle is left alone after a failure, while others are there, in ms. */
const REST = 1_000;
/** So many deadlines after its first failure a handle that only fails gets no more time. */
const MAX_FAILING = 2;
/** What weighs more than any number of operations on their way. */
const SHUNNED = 1e9;
const MAX_HANGING = 16;
const MAX_LOST = 8;
const LOST_POLL = 500;
/** How long lost generations are waited for, in ms: some never end, for nothing but TCP ends what hangs in them. */
const LOST_PATIENCE = 30_000;

/**
 * Handles on one Deno KV, with a deadline on every operation. Each goes to the handle with the least to do:
 * Deno's client of a KV Connect server stalls for 40 ms where one operation is beside another, and on a file
 * reads that have a handle of their own do not wait for writes.
 *
 * That client never notices either that its connection is dead, and repeats for ever what was given up. So
 * once a deadline is missed, operations are refused until new handles take over. And once it was told nonsense
 * about its database, it refuses everything by itself until it is told better, which may never happen: new handles
 * take over from one that does nothing but fail, too. The handles on a file stay: while too many operations hang,
 * one a deadline is tried.
 */
export class Connection {
  /** Undefined where KV is no file, or SQLite does not tell of it. */
  readonly file: FileState | undefined;
  readonly metrics: Metrics;
  readonly #deadline: number;
  readonly #reopen: ConnectionOptions["reopen"];
  readonly #closing: AbortController = new AbortController();
  #generation: Generation;
  /** Settles when handles are replaced; undefined while none are to be. */
  #replacing: Promise<void> | undefined;
  #nextTry = 0;
  /** Replaced generations in which operations still hang. */
  #lost = 0;

  constructor(
    kvs: readonly Deno.Kv[],
    { deadline = KV_DEADLINE, reopen, file, metrics = new Metrics() }: ConnectionOptions = {},
  ) {
    this.file = file;
    this.metrics = metrics;
    this.#generation = generationOf(kvs);
    this.#deadline = deadline;
    this.#reopen = reopen;
  }

  /**
   * Carries out an operation that changes nothing.
   *
   * @throws {StoreUnavailable} when it fails, or may not be started now.
   * @throws {DeadlineExceeded} when it takes too long.
   */
  read<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const { handles } = this.#generation;
    const readers = this.#isServer || handles.length === 1 ? handles : handles.slice(1);
    return this.#run("read", leastBusy(readers), operate);
  }

  /**
   * Carries out an operation that changes something.
   *
   * @throws {StoreUnavailable} when it fails, or may not be started now.
   * @throws {DeadlineExceeded} when it takes too long.
   */
  write<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const { handles } = this.#generation;
    return this.#run("write", leastBusy(this.#isServer ? handles : handles.slice(0, 1)), operate);
  }

  /** Closes the handles; on a file not while an operation hangs: the end of the process does it then. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#replacing;
    // The last that lets go of a file moves its newest rows into it, which one that only reads cannot.
    this.file?.close();
    // Closing a file's handle holds up the whole process until what hangs on it ends.
    if (this.#isServer || this.#generation.hanging === 0) close(this.#generation);
  }

  get #isServer(): boolean {
    return this.#reopen !== undefined;
  }

  async #run<T>(
    kind: "read" | "write",
    handle: Handle,
    operate: (kv: Deno.Kv) => Promise<T>,
  ): Promise<T> {
    const obstacle = this.#obstacle();
    if (obstacle !== undefined) {
      this.metrics.kvFailures.add(1, kind);
      throw new StoreUnavailable(obstacle);
    }
    const started = performance.now();
    const generation = this.#generation;
    const operation = operate(handle.kv);
    handle.busy++;
    try {
      const result = await withDeadline(operation, this.#deadline);
      handle.failing = undefined;
      return result;
    } catch (error) {
      this.metrics.kvFailures.add(1, kind);
      if (error instanceof DeadlineExceeded) this.#giveUp(operation, generation);
      else this.#noteFailure(handle, generation);
      throw error;
    } finally {
      handle.busy--;
      this.metrics.kvDuration.observe((performance.now() - started) / 1_000, kind);
    }
  }

  /** Why no operation may be started now; undefined where one may. */
  #obstacle(): string | undefined {
    if (this.#replacing && this.#generation.isGivenUp) return "The server does not answer";
    if (this.#generation.hanging < MAX_HANGING) return undefined;
    if (performance.now() < this.#nextTry) return "Earlier operations still hang";
    this.#nextTry = performance.now() + this.#deadline;
    return undefined;
  }

  #giveUp(operation: Promise<unknown>, generation: Generation): void {
    if (++generation.hanging === 1 && generation !== this.#generation) this.#lost++;
    operation.catch(() => {}).finally(() => {
      if (--generation.hanging === 0 && generation !== this.#generation) this.#lost--;
    });
    this.#nextTry = performance.now() + this.#deadline;
    generation.isGivenUp = this.#isServer;
    this.#replaceIfCurrent(generation);
  }

  /** New handles take over, before long, from those of which one does nothing but fail; until then the others serve. */
  #noteFailure(handle: Handle, generation: Generation): void {
    const last = performance.now();
    const { since } = handle.failing ??= { since: last, last };
    handle.failing = { since, last };
    if (last - since > MAX_FAILING * this.#deadline) this.#replaceIfCurrent(generation);
  }

  #replaceIfCurrent(generation: Generation): void {
    if (this.#reopen && generation === this.#generation) this.#replacing ??= this.#replace(this.#reopen);
  }

  async #replace(reopen: NonNullable<ConnectionOptions["reopen"]>): Promise<void> {
    const { signal } = this.#closing;
    try {
      const end = performance.now() + LOST_PATIENCE;
      while (this.#lost >= MAX_LOST && performance.now() < end && !signal.aborted) await pause(LOST_POLL);
      const kvs = await reopen(signal);
      close(this.#generation);
      if (this.#generation.hanging > 0) this.#lost++;
      this.#generation = generationOf(kvs);
    } catch {
      // Closing: nobody needs handles any more.
    }
    this.#replacing = undefined;
  }
}

function generationOf(kvs: readonly Deno.Kv[]): Generation {
  const handles = kvs.map((kv) => ({ kv, busy: 0, failing: undefined }));
  return { handles, hanging: 0, isGivenUp: false };
}

function close({ handles }: Generation): void {
  for (const { kv } of handles) kv.close();
}

/** The one with the least to do; not one that fails, which never has much to do, unless all of them do. */
function leastBusy(handles: readonly Handle[]): Handle {
  return handles.reduce((least, handle) => loadOf(handle) < loadOf(least) ? handle : least);
}

function loadOf({ busy, failing }: Handle): number {
  return failing && performance.now() - failing.last < REST ? busy + SHUNNED : busy;
}
