import { monotonicNow, msBetween, plus, SECOND } from "../base/mod.ts";
import { nameOf, type Store } from "../engine/mod.ts";
import { type LoggedChange, OPERATORS_LOG, otherLogOf } from "../resource/mod.ts";
import { rowOf, rowsAfter } from "./logs.ts";

/** A request that waits for entries in logs. */
interface Waiter {
  /** The names of the logs. */
  readonly logs: readonly string[];
  /** The stamp of the last commit that it knows. */
  readonly after: string;
  readonly wake: () => void;
}

/** How often operators' log is read, and how long further changes are gathered, in ms. */
const INTERVAL = SECOND;
/** Number of rows of a list. */
const ROWS = 500;

/**
 * Follows operators' log while requests wait for entries in other logs. One list a second serves all of them. On a file,
 * there is none without a commit.
 */
export class FeedWatch {
  readonly #store: Pick<Store, "dataVersion" | "list">;
  readonly #waiting: Set<Waiter> = new Set();
  #timer: ReturnType<typeof setInterval> | undefined;
  #isReading = false;
  /** The stamp up to which the log was read. */
  #after = "";
  /** The store's data version before that. */
  #dataVersion: number | undefined;

  constructor(store: Pick<Store, "dataVersion" | "list">) {
    this.#store = store;
  }

  /**
   * Resolves to whether a commit after a stamp has appended to one of these logs: a second after it was found, or at the
   * end of `ms`, or when the signal aborts.
   */
  async hasAppended(
    logs: readonly Deno.KvKey[],
    after: string,
    { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const end = plus(monotonicNow(), ms);
    const { promise: found, resolve: wake } = Promise.withResolvers<void>();
    const waiter = { logs: logs.map(nameOf), after, wake };
    this.#add(waiter);
    const isFound = await isInTime(found, ms, signal);
    this.#remove(waiter);
    if (isFound) {
      await isInTime(new Promise(() => {}), Math.min(INTERVAL, msBetween(monotonicNow(), end)), signal);
    }
    return isFound;
  }

  #add(waiter: Waiter): void {
    if (this.#waiting.size === 0 || waiter.after < this.#after) {
      this.#after = waiter.after;
      this.#dataVersion = undefined;
    }
    this.#waiting.add(waiter);
    this.#timer ??= setInterval(() => this.#follow(), INTERVAL);
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Reads what is new, and wakes the requests that wait for it. */
  async #follow(): Promise<void> {
    const { dataVersion } = this.#store;
    const isUnchanged = dataVersion !== undefined && dataVersion === this.#dataVersion;
    if (this.#isReading || isUnchanged) return;
    this.#isReading = true;
    this.#dataVersion = dataVersion;
    try {
      while (await this.#read() === ROWS);
    } catch {
      this.#dataVersion = undefined; // The next time, it is read again.
    } finally {
      this.#isReading = false;
    }
  }

  /** Reads some rows. Resolves to their number. */
  async #read(): Promise<number> {
    const after = this.#after;
    const rows = await this.#store.list(rowsAfter(OPERATORS_LOG, after), ROWS);
    /** The newest stamps of logs, by name. */
    const newest = new Map<string, string>();
    for (const { stamp, entries } of rows.map(rowOf<LoggedChange>)) {
      for (const log of entries.map(otherLogOf)) if (log) newest.set(nameOf(log), stamp);
      // A request that has joined meanwhile may need earlier rows.
      if (this.#after >= after) this.#after = stamp;
    }
    for (const { logs, after, wake } of this.#waiting) {
      if (logs.some((log) => (newest.get(log) ?? "") > after)) wake();
    }
    return rows.length;
  }
}

/** Whether a promise resolves within `ms`, and before the signal aborts. */
async function isInTime(promise: Promise<void>, ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  const { promise: over, resolve } = Promise.withResolvers<boolean>();
  const end = () => resolve(false);
  const timer = setTimeout(end, Math.max(0, ms));
  signal.addEventListener("abort", end);
  try {
    return await Promise.race([promise.then(() => true), over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}
