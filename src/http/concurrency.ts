import { ApiError, OVERLOADED } from "./error.ts";

/**
 * Limits how much work of one kind goes on at a time.
 *
 * @example
 * ```ts
 * import { assertEquals, assertRejects } from "@std/assert";
 *
 * const limit = new ConcurrencyLimit(1, "loaves are in the oven");
 * const { promise, resolve } = Promise.withResolvers<string>();
 * const first = limit.run(() => promise);
 * await assertRejects(() => limit.run(() => promise), Error, "Too many loaves are in the oven.");
 * resolve("bread");
 * assertEquals(await first, "bread");
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
   * Does the work, if less than the capacity is going on.
   *
   * @throws {ApiError} `overloaded`, otherwise.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= this.#capacity) {
      throw new ApiError("overloaded", `Too many ${this.#what}. Try again shortly.`, OVERLOADED.headers);
    }
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
    }
  }
}
