import { Metrics } from "../metrics/metrics.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import type { FileState } from "./file.ts";
import { pause } from "./retried.ts";

/** How a connection is kept. */
export interface ConnectionOptions {
  /** Longest wait for one operation, in ms. */
  readonly deadline?: number;
  /**
   * Given if KV is a server: opens other handles on it as soon as it answers; rejects when the signal aborts. Other
   * handles on a file would be no better, and only one of them may write.
   */
  readonly reopen?: (signal: AbortSignal) => Promise<Deno.Kv[]>;
  /** Given if KV is a file. */
  readonly file?: FileState | undefined;
  readonly metrics?: Metrics | undefined;
}

type Kind = "read" | "write";

interface Handle {
  readonly kv: Deno.Kv;
  /** Operations on their way. */
  busy: number;
  /** When the first operation failed since one succeeded, by `performance.now()`. */
  failingSince: number | undefined;
  /** Until when the handle is left alone, by `performance.now()`. */
  restsUntil: number;
}

/** Handles that were opened together. */
interface Generation extends Readonly<Record<Kind, readonly Handle[]>> {
  readonly kvs: readonly Deno.Kv[];
  /** Operations that missed their deadline and have not ended. */
  hanging: number;
  /** Whether no more operations are started on it. */
  isGivenUp: boolean;
}

/** How long a handle is left alone after a failure while there are others, in ms. */
const REST = 1_000;
/** A handle that does nothing but fail is replaced after this many deadlines. */
const MAX_FAILING = 2;
const MAX_HANGING = 16;
/** How many replaced generations may hang before no more handles are opened, and how often that is looked at, in ms. */
const MAX_LOST = 8;
const LOST_POLL = 500;
/** How long that keeps handles from being opened, in ms: what hangs in a dead connection may never end. */
const LOST_PATIENCE = 30_000;

/**
 * Handles on one Deno KV, with a deadline on every operation. Each goes to the handle with the least to do. A
 * KV Connect server has several because Deno's client stalls for 40 ms if two operations travel side by side; a file
 * has one that writes and others that read, so that reads do not wait for writes.
 *
 * Deno's client of a server does not notice that its connection is dead, and repeats for ever what was given up. So
 * after a missed deadline all operations are refused until new handles are open. A client that was told nonsense about
 * its database may refuse everything for ever, so a handle that only fails has all of them replaced, too. The handles
 * on a file stay. While too many operations hang there, one is tried in each deadline.
 *
 * @throws {StoreUnavailable} from both methods, when an operation fails or may not be started now.
 * @throws {DeadlineExceeded} from both methods, when it takes too long.
 */
export class Connection {
  /** Undefined if KV is no file, or SQLite cannot read it. */
  readonly file: FileState | undefined;
  readonly metrics: Metrics;
  readonly #deadline: number;
  readonly #reopen: ConnectionOptions["reopen"];
  readonly #closing: AbortController = new AbortController();
  #generation: Generation;
  /** Generations that were replaced and may still hang. */
  #replaced: Generation[] = [];
  /** Settles when the handles are replaced; undefined unless they are being replaced. */
  #replacing: Promise<void> | undefined;
  #nextTry = 0;

  constructor(
    kvs: readonly Deno.Kv[],
    { deadline = KV_DEADLINE, reopen, file, metrics = new Metrics() }: ConnectionOptions = {},
  ) {
    this.file = file;
    this.metrics = metrics;
    this.#deadline = deadline;
    this.#reopen = reopen;
    this.#generation = this.#generationOf(kvs);
  }

  /** Carries out an operation that changes nothing. */
  read<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    return this.#run("read", operate);
  }

  /** Carries out an operation that changes something. */
  write<T>(operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    return this.#run("write", operate);
  }

  /** Closes the handles. While an operation hangs on a file, that is left to the end of the process. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#replacing;
    // The last to close a file moves its newest rows into it, which a handle that only reads cannot.
    this.file?.close();
    // Closing a handle on a file blocks the whole process until what hangs on it ends.
    if (this.#reopen || this.#generation.hanging === 0) close(this.#generation);
  }

  async #run<T>(kind: Kind, operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const obstacle = this.#obstacle();
    if (obstacle !== undefined) {
      this.metrics.kvFailures.add(1, kind);
      throw new StoreUnavailable(obstacle);
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
      this.metrics.kvFailures.add(1, kind);
      if (error instanceof DeadlineExceeded) this.#giveUp(operation, generation);
      else this.#noteFailure(handle, generation);
      throw error;
    } finally {
      handle.busy--;
      this.metrics.kvDuration.observe((performance.now() - started) / 1_000, kind);
    }
  }

  /** Why no operation may be started now; undefined if one may. */
  #obstacle(): string | undefined {
    if (this.#generation.isGivenUp) return "The server does not answer";
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

  /** The handles go on serving until others take their place. */
  #noteFailure(handle: Handle, generation: Generation): void {
    const now = performance.now();
    handle.failingSince ??= now;
    handle.restsUntil = now + REST;
    if (now - handle.failingSince > MAX_FAILING * this.#deadline) this.#replace(generation);
  }

  /** Has others take the place of a server's handles, unless that is done already. */
  #replace(generation: Generation): void {
    if (this.#reopen && generation === this.#generation) this.#replacing ??= this.#takeOver(this.#reopen);
  }

  async #takeOver(reopen: NonNullable<ConnectionOptions["reopen"]>): Promise<void> {
    const { signal } = this.#closing;
    const lost = () => this.#replaced.filter(({ hanging }) => hanging > 0);
    try {
      const end = performance.now() + LOST_PATIENCE;
      while (lost().length >= MAX_LOST && performance.now() < end && !signal.aborted) await pause(LOST_POLL);
      const kvs = await reopen(signal);
      close(this.#generation);
      this.#replaced = [...lost(), this.#generation];
      this.#generation = this.#generationOf(kvs);
    } catch {
      // Closing: no other handles are needed.
    }
    this.#replacing = undefined;
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

/** How much a handle has to do. One that rests, and so never has much to do, comes after all that do not. */
function load({ busy, restsUntil }: Handle): number {
  return performance.now() < restsUntil ? busy + 1e9 : busy;
}
