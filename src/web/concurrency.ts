import { ApiError, ERRORS } from "./error.ts";

/**
 * Limits the number of tasks of one kind that run at the same time.
 */
export class ConcurrencyLimit {
  readonly #capacity: number;
  readonly #what: string;
  readonly #shareOf: (owner: string, free: number) => number;
  #running = 0;
  /** Number of running tasks by owner. */
  readonly #owned: Map<string, number> = new Map();

  /**
   * `what` follows "Too many" in the error message. `shareOf` returns the maximum number of tasks of an owner while
   * `free` more tasks can run; by default an owner may have all.
   */
  constructor(
    capacity: number,
    what: string,
    shareOf: (owner: string, free: number) => number = () => capacity,
  ) {
    this.#capacity = capacity;
    this.#what = what;
    this.#shareOf = shareOf;
  }

  /**
   * Requires room for another task of an owner.
   *
   * @throws {ApiError} `overloaded`
   */
  requireRoom(owner = ""): void {
    const free = this.#capacity - this.#running;
    if (free <= 0 || this.#ownedBy(owner) >= this.#shareOf(owner, free)) throw tooMany(this.#what);
  }

  /**
   * Runs a task of an owner if there is room for it.
   *
   * @throws {ApiError} `overloaded`
   */
  async run<Result>(work: () => Promise<Result>, owner = ""): Promise<Result> {
    this.requireRoom(owner);
    this.#add(owner, 1);
    try {
      return await work();
    } finally {
      this.#add(owner, -1);
    }
  }

  #ownedBy(owner: string): number {
    return this.#owned.get(owner) ?? 0;
  }

  #add(owner: string, count: number): void {
    this.#running += count;
    const owned = this.#ownedBy(owner) + count;
    if (owned === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, owned);
  }
}

/** Options of {@linkcode Semaphore}. */
export interface SemaphoreOptions {
  /** Maximum number of tasks that run at the same time. */
  readonly capacity: number;
  /** Maximum number of tasks that wait. */
  readonly maxWaiting: number;
  /** How long a task waits at most, in ms. */
  readonly maxWaitMs: number;
  /** What follows "Too many" in the error message. */
  readonly what: string;
}

/** Runs a limited number of tasks at the same time. Further tasks wait in their order. */
export class Semaphore {
  readonly #options: SemaphoreOptions;
  #running = 0;
  /** Starts the tasks that wait, the first one first. */
  readonly #waiting: Set<() => void> = new Set();

  constructor(options: SemaphoreOptions) {
    this.#options = options;
  }

  /**
   * Runs a task once there is room for it.
   *
   * @throws {ApiError} `overloaded` if too many tasks wait, or if the task has waited for too long.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#options.capacity) this.#running++;
    else await this.#turn();
    try {
      return await work();
    } finally {
      this.#end();
    }
  }

  /** Resolves when another task hands its place over. */
  #turn(): Promise<void> {
    const { maxWaiting, maxWaitMs, what } = this.#options;
    if (this.#waiting.size >= maxWaiting) throw tooMany(what);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#waiting.delete(start);
      reject(tooMany(what));
    }, maxWaitMs);
    const start = () => {
      clearTimeout(timer);
      resolve();
    };
    this.#waiting.add(start);
    return promise;
  }

  /** Hands the place of a task that has ended over to the first one that waits. */
  #end(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running--;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}

/** The error of a request for which there is no room. `what` follows "Too many" in its message. */
export function tooMany(what: string): ApiError {
  return new ApiError(ERRORS.overloaded, `Too many ${what}. Try again shortly.`, { "retry-after": "1" });
}
