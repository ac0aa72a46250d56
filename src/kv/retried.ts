import { KV_DEADLINE, StoreUnavailable } from "./deadline.ts";

/** What an attempt returns if it did nothing and is worth repeating. */
export const AGAIN: unique symbol = Symbol("again");

const MAX_PAUSE = 20;

/**
 * Repeats an attempt for as long as it returns AGAIN, each time after a random pause; no new attempt starts
 * once KV_DEADLINE has passed.
 *
 * @throws {StoreUnavailable} when that time is spent.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * let attempts = 0;
 * assertEquals(await retried(() => Promise.resolve(++attempts < 3 ? AGAIN : "done")), "done");
 * ```
 */
export async function retried<T>(attempt: () => Promise<T | typeof AGAIN>): Promise<T> {
  const end = performance.now() + KV_DEADLINE;
  let attempts = 0;
  do {
    const result = await attempt();
    if (result !== AGAIN) return result;
    await pause(Math.random() * Math.min(++attempts, MAX_PAUSE));
  } while (performance.now() <= end);
  throw new StoreUnavailable("Too many conflicting writes");
}

/** AGAIN if the error says that another process holds the file: then nothing was done. Throws any other error. */
export function againIfLocked(error: unknown): typeof AGAIN {
  if (error instanceof Error && error.message.includes("database is locked")) return AGAIN;
  throw error;
}

/** Resolves after this many ms. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
