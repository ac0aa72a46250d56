import { KV_DEADLINE, StoreUnavailable } from "./deadline.ts";

const MAX_ATTEMPTS = 500;
const MAX_PAUSE = 20;

/**
 * Repeats an attempt that came to nothing (returned `undefined`), after a random pause; no new attempt
 * starts after KV_DEADLINE.
 *
 * @throws {StoreUnavailable} when time or attempts are spent.
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
