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
