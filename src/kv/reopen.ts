import { KV_DEADLINE, withDeadline } from "./deadline.ts";
import { pause } from "./retried.ts";

const KNOCK_INTERVAL = 500;
const KNOCK_TIMEOUT = 3_000;
/** How long an opening that hangs counts, in ms: some never end. */
const OPENING_PATIENCE = 30_000;

/**
 * Opens `count` handles on the KV of a KV Connect server, as soon as the server answers. That is found out by
 * plain requests, which can be given up without a trace. A `Deno.openKv` that hangs cannot; so no more are begun
 * for half a minute while two for each handle hang.
 *
 * @throws what aborted the signal.
 */
export function reopener(url: string, count: number): (signal: AbortSignal) => Promise<Deno.Kv[]> {
  let hanging = 0;

  async function open(): Promise<Deno.Kv> {
    const opening = Deno.openKv(url);
    try {
      return await withDeadline(opening, KV_DEADLINE);
    } catch (error) {
      hanging++;
      const ended = opening.then((kv) => kv.close(), () => {});
      withDeadline(ended, OPENING_PATIENCE).catch(() => {}).finally(() => hanging--);
      throw error;
    }
  }

  return async function reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    while (true) {
      await answering(url, signal);
      try {
        if (hanging < 2 * count) return await openAll(count, open);
      } catch {
        // It answers, but not as a KV: not yet, perhaps.
      }
      await pause(KNOCK_INTERVAL);
    }
  };
}

/**
 * Opens so many handles, or none.
 *
 * @throws what the first that cannot be opened fails with.
 */
export async function openAll(count: number, open: () => Promise<Deno.Kv>): Promise<Deno.Kv[]> {
  const opened = await Promise.allSettled(Array.from({ length: count }, open));
  const kvs = opened.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  const failure = opened.find((result) => result.status === "rejected");
  if (failure === undefined) return kvs;
  for (const kv of kvs) kv.close();
  throw failure.reason;
}

/**
 * Resolves once the server answers, whatever it says. It knocks anew every half second, for packets get lost.
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
