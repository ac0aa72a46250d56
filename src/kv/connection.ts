import { Metrics } from "../metrics/metrics.ts";
import {
  againIfLocked,
  DeadlineExceeded,
  KV_DEADLINE,
  pause,
  retried,
  StoreUnavailable,
  withDeadline,
} from "./deadline.ts";
import type { FileState } from "./file.ts";

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
/** How many replaced generations may hang before no more handles are opened. */
const MAX_LOST = 8;
/** How long what hangs keeps handles from being opened, in ms: it may never end. */
const HANGING_PATIENCE = 30_000;
/** Handles on a server. */
const HANDLES = 12;
const OPENING_TRIES = 3;
/** How often a server, or what hangs, is looked at, in ms. */
const POLL = 500;
const KNOCK_TIMEOUT = 3_000;
const WAIT_NOTICE = 1_000;

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
      const end = performance.now() + HANGING_PATIENCE;
      while (lost().length >= MAX_LOST && performance.now() < end && !signal.aborted) await pause(POLL);
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

/** How long to wait for a server, in ms, and what to call once if that takes a while. */
export interface Patience {
  readonly ms: number;
  readonly onWait: (host: string) => void;
}

/**
 * Connects to the KV of a KV Connect server.
 *
 * @throws {StoreUnavailable}
 */
export async function openServer(
  url: string,
  patience: Patience | undefined,
  metrics: Metrics | undefined,
): Promise<Connection> {
  if (patience) {
    const timer = setTimeout(() => patience.onWait(new URL(url).host), WAIT_NOTICE);
    try {
      await answering(url, AbortSignal.timeout(patience.ms));
    } catch {
      throw new StoreUnavailable(`it did not answer for ${patience.ms / 1000} s`);
    } finally {
      clearTimeout(timer);
    }
  }
  const kvs = await openAll(HANDLES, () => openPersistently(url));
  return new Connection(kvs, { reopen: reopener(url, HANDLES), metrics });
}

/**
 * Opens `count` handles on a server's KV as soon as the server answers. Plain requests find that out, because they can
 * be given up without a trace. A `Deno.openKv` that hangs cannot, so while two for each handle hang, no more are begun
 * for half a minute.
 *
 * @throws what aborted the signal.
 */
export function reopener(url: string, count: number): (signal: AbortSignal) => Promise<Deno.Kv[]> {
  let hanging = 0;
  const noteLate = (ended: Promise<void>) => {
    hanging++;
    withDeadline(ended, HANGING_PATIENCE).catch(() => {}).finally(() => hanging--);
  };
  return async function reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    while (true) {
      await answering(url, signal);
      try {
        if (hanging < 2 * count) return await openAll(count, () => openKv(url, noteLate));
      } catch {
        // It answers, but not as a KV: not yet, perhaps.
      }
      await pause(POLL);
    }
  };
}

/**
 * Opens a handle.
 *
 * @param onFailure Called if that fails, with what resolves once the opening has ended and nothing of it is left.
 * @throws {StoreUnavailable}
 */
export async function openKv(
  path: string | undefined,
  onFailure: (ended: Promise<void>) => void = () => {},
): Promise<Deno.Kv> {
  // Another process that opens the same file for the first time locks it for a moment.
  const opening = retried(() => Deno.openKv(path).catch(againIfLocked));
  try {
    return await withDeadline(opening, KV_DEADLINE);
  } catch (error) {
    onFailure(opening.then((kv) => kv.close(), () => {}));
    throw error;
  }
}

/** Tries again if an opening fails at once, because Deno does not repeat its requests as it does later ones. */
async function openPersistently(url: string, tries: number = OPENING_TRIES): Promise<Deno.Kv> {
  try {
    return await openKv(url);
  } catch (error) {
    if (tries === 1 || error instanceof DeadlineExceeded) throw error;
    return await openPersistently(url, tries - 1);
  }
}

/**
 * Opens this many handles, or none.
 *
 * @throws what the first that cannot be opened fails with.
 */
async function openAll(count: number, open: () => Promise<Deno.Kv>): Promise<Deno.Kv[]> {
  const opened = await Promise.allSettled(Array.from({ length: count }, open));
  const kvs = opened.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  const failure = opened.find((result) => result.status === "rejected");
  if (failure === undefined) return kvs;
  for (const kv of kvs) kv.close();
  throw failure.reason;
}

/**
 * Resolves once the server answers, whatever it says. A request is sent every half second, because packets get lost.
 *
 * @throws what aborted the signal.
 */
export async function answering(url: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const done = new AbortController();
  const knocking = AbortSignal.any([signal, done.signal]);
  const tryOnce = () => knock(url, knocking).then(resolve, () => {});
  const timer = setInterval(tryOnce, POLL);
  signal.addEventListener("abort", () => reject(signal.reason), { signal: done.signal });
  tryOnce();
  try {
    signal.throwIfAborted();
    await promise;
  } finally {
    clearInterval(timer);
    done.abort();
  }
}

/** One request, over a connection of its own, in the protocol that KV Connect speaks. */
async function knock(url: string, signal: AbortSignal): Promise<void> {
  using client = Deno.createHttpClient({ http1: false, http2: true });
  const patience = AbortSignal.any([signal, AbortSignal.timeout(KNOCK_TIMEOUT)]);
  const response = await fetch(url, { client, signal: patience });
  await response.body?.cancel();
}
