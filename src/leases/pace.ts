/** Two requests that happen to come together make no rate: how many more are expected, at most, for each served. */
const MOST = 16;

/** How fast the requests of an account come. */
export class Pace {
  #served = 0;
  /** By `performance.now()`. */
  #since = -Infinity;
  /** Requests a ms. */
  #rate = 0;
  #most = 0;

  /** Counts a request that was served. */
  count(): void {
    this.#served++;
  }

  /** Takes the rate from those served since it last started anew. */
  measure(): void {
    this.#rate = this.#served / Math.max(1, performance.now() - this.#since);
    this.#most = MOST * this.#served;
  }

  /** Starts anew, with `served` at once. */
  restart(served: number): void {
    this.#served = served;
    this.#since = performance.now();
  }

  /** How many come within `ms`, at the rate that was measured last. */
  within(ms: number): number {
    return Math.min(this.#rate * ms, this.#most);
  }
}
