/** KV did not do what was asked, in time or at all. Whether a write took effect may be unknown. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Longest wait for one KV operation, and for one retried series of them, in ms. */
export const KV_DEADLINE = 5_000;

const MAX_ATTEMPTS = 500;
const MAX_PAUSE = 20;

/**
 * Settles with the promise, or rejects once `ms` have passed.
 *
 * @throws {StoreUnavailable} when the deadline comes first, and in place of whatever KV throws.
 */
export async function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new StoreUnavailable(`No answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } catch (error) {
    throw error instanceof StoreUnavailable
      ? error
      : new StoreUnavailable("The operation failed", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Repeats an attempt that came to nothing (returned `undefined`), after a random pause.
 *
 * @throws {StoreUnavailable} when KV_DEADLINE has passed or the attempts are spent.
 */
export async function retried<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  const started = performance.now();
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    const result = await attempt();
    if (result !== undefined) return result;
    if (performance.now() - started > KV_DEADLINE) break;
    await pause(Math.random() * Math.min(attempts, MAX_PAUSE));
  }
  throw new StoreUnavailable("Too many conflicting writes");
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
