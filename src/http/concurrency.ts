import { ApiError, OVERLOADED } from "./error.ts";

/**
 * Limits the number of tasks of one kind that run at the same time.
 *
 * @example
 * ```ts
 * import { assertEquals, assertRejects } from "@std/assert";
 *
 * const oven = new ConcurrencyLimit(1, "loaves are in the oven");
 * const { promise, resolve } = Promise.withResolvers<string>();
 * const loaf = oven.run(() => promise);
 * await assertRejects(() => oven.run(() => promise), Error, "Too many loaves are in the oven.");
 * resolve("bread");
 * assertEquals(await loaf, "bread");
 * ```
 */
export class ConcurrencyLimit {
  readonly #capacity: number;
  readonly #what: string;
  #running = 0;

  /** `what` follows "Too many" in the error message. */
  constructor(capacity: number, what: string) {
    this.#capacity = capacity;
    this.#what = what;
  }

  /**
   * Requires room for another task.
   *
   * @throws {ApiError} `overloaded`
   */
  requireRoom(): void {
    if (this.#running < this.#capacity) return;
    throw new ApiError("overloaded", `Too many ${this.#what}. Try again shortly.`, OVERLOADED.headers);
  }

  /**
   * Runs a task if there is room for it.
   *
   * @throws {ApiError} `overloaded`
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.requireRoom();
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
    }
  }
}
