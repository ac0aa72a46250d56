const URL_LIKE = /\b[a-z][a-z\d+.-]*:\/\/[^\s"'`()<>]*/gi;

/** KV did not do what was asked, in time or at all. Whether a write took effect may be unknown. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";

  /** Why, for people: the first line of what KV itself said, if it said anything, with only the host of each URL. */
  get logReason(): string {
    const { cause } = this;
    if (cause instanceof StoreUnavailable) return cause.logReason;
    const [line = ""] = (cause instanceof Error ? cause.message : this.message).split("\n");
    return line.replaceAll(URL_LIKE, (url) => URL.parse(url)?.host || "[URL]");
  }
}

/** KV did not answer in time; the operation may still be carried out. */
export class DeadlineExceeded extends StoreUnavailable {
  override readonly name = "DeadlineExceeded";
}

/** Longest wait for one KV operation, in ms. */
export const KV_DEADLINE = 5_000;

/**
 * Settles with the promise, or rejects once `ms` have passed.
 *
 * @throws {DeadlineExceeded} when the deadline comes first.
 * @throws {StoreUnavailable} in place of whatever KV throws.
 */
export async function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new DeadlineExceeded(`No answer within ${ms} ms`)), ms);
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
