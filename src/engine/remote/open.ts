import { pause } from "../../base/mod.ts";
import type { BackendOptions, Patience } from "../backend.ts";
import { DeadlineExceeded, openKv, StoreUnavailable, withDeadline } from "../deadline.ts";
import { RemoteBackend } from "./remote.ts";

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
 * Opens the KV of a KV Connect server or, if there is no URL, that of Deno Deploy.
 *
 * @throws {StoreUnavailable}
 */
export async function openRemote(
  url: string | undefined,
  options: BackendOptions & { readonly patience?: Patience },
): Promise<RemoteBackend> {
  const count = url === undefined ? 1 : HANDLES;
  if (url !== undefined && options.patience) await waitPatiently(url, options.patience);
  const kvs = await openAll(count, () => openPersistently(url));
  return new RemoteBackend(kvs, { ...options, reopen: reopener(url, count) });
}

async function waitPatiently(url: string, { ms, onWait }: Patience): Promise<void> {
  const timer = setTimeout(() => onWait(new URL(url).host), WAIT_NOTICE);
  try {
    await waitForServer(url, AbortSignal.timeout(ms));
  } catch {
    throw new StoreUnavailable(`it did not respond for ${ms / 1000} s`);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns a function that opens `count` handles as soon as the server responds. It polls the server with plain
 * requests, which can be cancelled. A hanging `Deno.openKv` cannot be cancelled, so no more calls start while twice
 * `count` are hanging. A call counts as hanging for at most 30 s. The function rejects when the signal aborts.
 */
export function reopener(
  url: string | undefined,
  count: number,
): (signal: AbortSignal) => Promise<Deno.Kv[]> {
  let hanging = 0;
  const countHanging = (ended: Promise<void>) => {
    hanging++;
    withDeadline(ended, HANG_TIMEOUT).catch(() => {}).finally(() => hanging--);
  };
  return async function reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    while (true) {
      signal.throwIfAborted();
      if (url !== undefined) await waitForServer(url, signal);
      try {
        if (hanging < 2 * count) return await openAll(count, () => openKv(url, countHanging));
      } catch {
        // The server responds, but not as a KV Connect server, perhaps because it is still starting.
      }
      await pause(POLL);
    }
  };
}

/** Opens a handle. Retries if that fails before the deadline, because Deno does not retry a handle's first requests. */
async function openPersistently(url: string | undefined, tries: number = OPENING_TRIES): Promise<Deno.Kv> {
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
