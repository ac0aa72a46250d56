import { ApiError, OVERLOADED } from "./error.ts";

/**
 * Limits how much work of one kind goes on at a time.
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

  /**
   * Does the work if there is room for it; settles as it does.
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
