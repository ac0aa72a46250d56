import type { Metrics } from "../metrics/metrics.ts";
import { Connection } from "./connection.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import { againIfLocked, pause, retried } from "./retried.ts";

/** How long to wait for a server, in ms, and what to call once if that takes a while. */
export interface Patience {
  readonly ms: number;
  readonly onWait: (host: string) => void;
}

const HANDLES = 12;
const OPENING_TRIES = 3;
const WAIT_NOTICE = 1_000;
const KNOCK_INTERVAL = 500;
const KNOCK_TIMEOUT = 3_000;
/** How long an opening that hangs counts, in ms: some never end. */
const OPENING_PATIENCE = 30_000;

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
    withDeadline(ended, OPENING_PATIENCE).catch(() => {}).finally(() => hanging--);
  };
  return async function reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    while (true) {
      await answering(url, signal);
      try {
        if (hanging < 2 * count) return await openAll(count, () => openKv(url, noteLate));
      } catch {
        // It answers, but not as a KV: not yet, perhaps.
      }
      await pause(KNOCK_INTERVAL);
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
  const timer = setInterval(tryOnce, KNOCK_INTERVAL);
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
