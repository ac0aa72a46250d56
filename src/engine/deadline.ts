import { monotonicNow, msSince, pause } from "../base/mod.ts";

const URL_LIKE = /\b[a-z][a-z\d+.-]*:\/\/[^\s"'`()<>]*/gi;

/** A KV operation failed or timed out. It might be unknown whether a write took effect. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";

  /** The reason for the log: the first line of KV's own message, if any. URLs are reduced to their host. */
  get logReason(): string {
    const { cause } = this;
    if (cause instanceof StoreUnavailable) return cause.logReason;
    const [line = ""] = (cause instanceof Error ? cause.message : this.message).split("\n");
    return line.replaceAll(URL_LIKE, (url) => URL.parse(url)?.host || "[URL]");
  }
}

/** KV did not respond in time. The operation might still take effect. */
export class DeadlineExceeded extends StoreUnavailable {
  override readonly name = "DeadlineExceeded";
}

/** Deadline for one KV operation, in ms. */
export const KV_DEADLINE = 5_000;

/**
 * Settles as the promise does, or rejects after `ms` milliseconds.
 *
 * @throws {DeadlineExceeded} if the promise does not settle in time.
 * @throws {StoreUnavailable} if the promise rejects, with its error as the cause.
 */
export async function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new DeadlineExceeded(`No response within ${ms} ms`)), ms);
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

/** The result of an attempt that had no effect and must be repeated. */
export const AGAIN: unique symbol = Symbol("again");

const MAX_PAUSE = 20;

/**
 * Repeats an attempt while it returns AGAIN, with random pauses in between, until KV_DEADLINE has passed. `reason` says
 * why all attempts failed.
 *
 * @throws {StoreUnavailable} if no attempt has succeeded by then.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * let attempts = 0;
 * assertEquals(await retried(() => Promise.resolve(++attempts < 3 ? AGAIN : "done")), "done");
 * ```
 */
export async function retried<T>(
  attempt: () => Promise<T | typeof AGAIN>,
  reason = "Too many conflicting writes",
): Promise<T> {
  const started = monotonicNow();
  let attempts = 0;
  do {
    const result = await attempt();
    if (result !== AGAIN) return result;
    await pause(Math.random() * Math.min(++attempts, MAX_PAUSE));
  } while (msSince(started) <= KV_DEADLINE);
  throw new StoreUnavailable(reason);
}

/** Why an attempt failed if it always returned `againIfLocked()`. */
export const LOCKED = "Another process has locked the file";

/** Returns AGAIN if another process had locked the file, so that the operation had no effect. Throws other errors. */
export function againIfLocked(error: unknown): typeof AGAIN {
  if (error instanceof Error && error.message.includes("database is locked")) return AGAIN;
  throw error;
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
  const opening = retried(() => Deno.openKv(path).catch(againIfLocked), LOCKED);
  try {
    return await withDeadline(opening, KV_DEADLINE);
  } catch (error) {
    onFailure(opening.then((kv) => kv.close(), () => {}));
    throw error;
  }
}
