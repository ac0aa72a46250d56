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
    if (free > 0 && this.#ownedBy(owner) < this.#shareOf(owner, free)) return;
    throw new ApiError(ERRORS.overloaded, `Too many ${this.#what}. Try again shortly.`, {
      "retry-after": "1",
    });
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
