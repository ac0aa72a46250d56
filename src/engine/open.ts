import { type Metrics, pause } from "../base/mod.ts";
import { Connection, FILE_LOST } from "./connection.ts";
import {
  againIfLocked,
  DeadlineExceeded,
  KV_DEADLINE,
  retried,
  StoreUnavailable,
  withDeadline,
} from "./deadline.ts";
import { type FileOptions, FileWatch, openFileState, prepareFile } from "./file.ts";
import { requireSchema } from "./schema_version.ts";
import { PORTABLE_CHECKS, Store } from "./store.ts";

/** The KV could not be opened. The message, which is for the operator, says why. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** Options of {@linkcode openStore}. */
export interface OpenOptions extends FileOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** How long to wait for a server that has not started yet; by default not at all. */
  readonly patience?: Patience;
  /** Called if the KV file is removed or renamed, after which every write fails. Without it, nobody notices. */
  readonly onLost?: (error: StoreUnavailable) => void;
  readonly metrics?: Metrics;
}

/** The path for a KV in this process's memory. */
export const MEMORY = ":memory:";

const LOCAL_CHECKS = 100;
/** Number of handles on a server. */
const HANDLES = 12;
const OPENING_TRIES = 3;
/** Interval between checks on a server, in ms. */
const POLL = 500;
const PROBE_TIMEOUT = 3_000;
const WAIT_NOTICE = 1_000;
/** How long a late `Deno.openKv` counts as hanging, in ms. It might never end. */
const HANG_TIMEOUT = 30_000;

/**
 * Opens a store. The path is a file, `:memory:` or the URL of a KV Connect server; undefined opens Deno Deploy's KV.
 * Checks that the rows have a schema version that this release knows, and that they can be written.
 *
 * @throws {OpenError} if the store cannot be used.
 */
export async function openStore(path: string | undefined, options: OpenOptions): Promise<Store> {
  const maxChecks = path === undefined || isUrl(path) ? PORTABLE_CHECKS : LOCAL_CHECKS;
  const { clock, metrics, create } = options;
  let connection: Connection | undefined;
  try {
    connection = await connect(path, options);
    const schema = await requireSchema(connection, create);
    const store = new Store(connection, { maxChecks, clock, metrics, schema });
    await store.probe();
    return store;
  } catch (error) {
    await connection?.close();
    throw new OpenError(`The KV ${nameOfKv(path)} cannot be used: ${reason(error)}.`);
  }
}

async function connect(path: string | undefined, options: OpenOptions): Promise<Connection> {
  const { patience, onLost, metrics } = options;
  // A KV in memory is visible through only one handle.
  if (path === undefined || path === MEMORY) return new Connection([await openKv(path)], { metrics });
  if (isUrl(path)) return await openServer(path, patience, metrics);
  await prepareFile(path, options);
  const kvs = [await openKv(path), await openKv(path)];
  const watch = onLost && new FileWatch(path, () => onLost(new StoreUnavailable(FILE_LOST)));
  return new Connection(kvs, { file: await openFileState(path), watch, metrics });
}

/**
 * Requires that a KV file has rows of a schema version that this release knows.
 *
 * @throws {Error} with the reason, if this release cannot read them.
 */
export async function requireReadable(path: string): Promise<void> {
  using kv = await Deno.openKv(path);
  await requireSchema(new Connection([kv]), false);
}

/** How a message names the KV. A URL is reduced to its host, because it might contain a password. */
export function nameOfKv(path: string | undefined): string {
  if (path === undefined) return "of this deployment";
  return isUrl(path) ? new URL(path).host : path;
}

/** Whether the path of a KV is the URL of a KV Connect server. */
export function isUrl(path: string): boolean {
  return /^https?:/.test(path) && URL.canParse(path);
}

/**
 * The reason for an error, without a full stop. KV's own message can have many lines, so only its first line is used.
 */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return (error instanceof StoreUnavailable ? error.logReason : error.message).replace(/\.$/, "");
}

/** How long to wait for a server, in ms. `onWait` is called once the wait takes more than a second. */
export interface Patience {
  readonly ms: number;
  readonly onWait: (host: string) => void;
}

/**
 * Connects to a KV Connect server.
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
      await waitForServer(url, AbortSignal.timeout(patience.ms));
    } catch {
      throw new StoreUnavailable(`it did not respond for ${patience.ms / 1000} s`);
    } finally {
      clearTimeout(timer);
    }
  }
  const kvs = await openAll(HANDLES, () => openPersistently(url));
  return new Connection(kvs, { reopen: reopener(url, HANDLES), metrics });
}

/**
 * Returns a function that opens `count` handles as soon as the server responds. It polls the server with plain
 * requests, which can be cancelled. A hanging `Deno.openKv` cannot be cancelled, so no more calls start while twice
 * `count` are hanging. A call counts as hanging for at most 30 s. The function rejects when the signal aborts.
 */
export function reopener(url: string, count: number): (signal: AbortSignal) => Promise<Deno.Kv[]> {
  let hanging = 0;
  const noteLate = (ended: Promise<void>) => {
    hanging++;
    withDeadline(ended, HANG_TIMEOUT).catch(() => {}).finally(() => hanging--);
  };
  return async function reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    while (true) {
      await waitForServer(url, signal);
      try {
        if (hanging < 2 * count) return await openAll(count, () => openKv(url, noteLate));
      } catch {
        // The server responds, but not as a KV Connect server, perhaps because it is still starting.
      }
      await pause(POLL);
    }
  };
}

/**
 * Opens a handle.
 *
 * @param onFailure Called if opening fails, with a promise that resolves once the attempt has ended.
 * @throws {StoreUnavailable}
 */
export async function openKv(
  path: string | undefined,
  onFailure: (ended: Promise<void>) => void = () => {},
): Promise<Deno.Kv> {
  // Another process might have locked the file briefly while creating it.
  const opening = retried(() => Deno.openKv(path).catch(againIfLocked));
  try {
    return await withDeadline(opening, KV_DEADLINE);
  } catch (error) {
    onFailure(opening.then((kv) => kv.close(), () => {}));
    throw error;
  }
}

/** Opens a handle. Retries if that fails before the deadline, because Deno does not retry a handle's first requests. */
async function openPersistently(url: string, tries: number = OPENING_TRIES): Promise<Deno.Kv> {
  try {
    return await openKv(url);
  } catch (error) {
    if (tries === 1 || error instanceof DeadlineExceeded) throw error;
    return await openPersistently(url, tries - 1);
  }
}

/**
 * Opens `count` handles, or none.
 *
 * @throws the error of the first handle that cannot be opened.
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
 * Resolves once the server responds with any status. Rejects when the signal aborts. Sends a request every half second,
 * because packets get lost.
 */
export async function waitForServer(url: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const done = new AbortController();
  const probing = AbortSignal.any([signal, done.signal]);
  const tryOnce = () => sendProbe(url, probing).then(resolve, () => {});
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

/** Sends one request over a new HTTP/2 connection, as KV Connect does. */
async function sendProbe(url: string, signal: AbortSignal): Promise<void> {
  using client = Deno.createHttpClient({ http1: false, http2: true });
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT)]);
  const response = await fetch(url, { client, signal: inTime });
  await response.body?.cancel();
}
