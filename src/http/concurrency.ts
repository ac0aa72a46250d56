import { ApiError, OVERLOADED } from "./error.ts";

/**
 * Limits how much work of one kind goes on at a time.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const limit = new ConcurrencyLimit(1, "loaves are in the oven");
 * const { promise, resolve } = Promise.withResolvers<string>();
 * limit.requireRoom();
 * const loaf = limit.count(promise);
 * assertThrows(() => limit.requireRoom(), Error, "Too many loaves are in the oven.");
 * resolve("bread");
 * assertEquals(await loaf, "bread");
 * limit.requireRoom();
 * ```
 */
export class ConcurrencyLimit {
  readonly #capacity: number;
  readonly #what: string;
  #running = 0;

  /** `what` is how the message goes on after "Too many". */
  constructor(capacity: number, what: string) {
    this.#capacity = capacity;
    this.#what = what;
  }

  /**
   * Makes sure that more work may begin.
   *
   * @throws {ApiError} `overloaded`
   */
  requireRoom(): void {
    if (this.#running < this.#capacity) return;
    throw new ApiError("overloaded", `Too many ${this.#what}. Try again shortly.`, OVERLOADED.headers);
  }

  /** Counts work that has begun until it has ended; settles as it does. */
  async count<Result>(work: Promise<Result>): Promise<Result> {
    this.#running++;
    try {
      return await work;
    } finally {
      this.#running--;
    }
  }
}
