import type { Reply } from "../support/client.ts";
import { pause } from "./part.ts";

const AFTER_503 = 20;

/** Clients that each send one request after another, regardless of the responses. */
export class Steady {
  /** Number of 503 responses. */
  unavailable = 0;
  /** Latency of the slowest response, in ms. */
  slowest = 0;
  #isEnding = false;
  #good = 0;
  #waiting: { readonly at: number; readonly resolve: () => void }[] = [];
  readonly #work: Promise<void>;

  constructor(clients: readonly (() => Promise<Reply>)[]) {
    this.#work = Promise.all(clients.map((send) => this.#run(send))).then(() => {});
    // Prevents an unhandled rejection: `answered()` and `end()` reject instead.
    this.#work.catch(() => {});
  }

  /** Waits for `count` more responses other than 503. Resolves to the time that took, in ms. */
  async answered(count: number): Promise<number> {
    const started = performance.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ at: this.#good + count, resolve });
    await Promise.race([promise, this.#work]);
    return Math.round(performance.now() - started);
  }

  /** Stops sending, and waits for the last response. Resolves to the time that took, in ms. */
  async end(): Promise<number> {
    this.#isEnding = true;
    const started = performance.now();
    await this.#work;
    return Math.round(performance.now() - started);
  }

  async #run(send: () => Promise<Reply>): Promise<void> {
    while (!this.#isEnding) {
      const started = performance.now();
      const { status } = await send();
      this.slowest = Math.max(this.slowest, Math.round(performance.now() - started));
      if (status === 503) {
        this.unavailable++;
        await pause(AFTER_503);
      } else this.#note();
    }
  }

  #note(): void {
    this.#good++;
    for (const { at, resolve } of this.#waiting) if (at <= this.#good) resolve();
    this.#waiting = this.#waiting.filter(({ at }) => at > this.#good);
  }
}
