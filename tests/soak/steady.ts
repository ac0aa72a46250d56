import type { Reply } from "../support/client.ts";
import { pause } from "./part.ts";

const AFTER_503 = 20;

/** Clients that each send one request after another, whatever the answers are. */
export class Steady {
  /** Answers 503. */
  unavailable = 0;
  /** In ms. */
  slowest = 0;
  #isEnding = false;
  #good = 0;
  #waiting: { readonly at: number; readonly resolve: () => void }[] = [];
  readonly #work: Promise<void>;

  constructor(clients: readonly (() => Promise<Reply>)[]) {
    this.#work = Promise.all(clients.map((send) => this.#run(send))).then(() => {});
    // The request that waits for an answer gets to know.
    this.#work.catch(() => {});
  }

  /** Resolves after `count` more answers, other than 503, to how many ms that took. */
  async answered(count: number): Promise<number> {
    const started = performance.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ at: this.#good + count, resolve });
    await Promise.race([promise, this.#work]);
    return Math.round(performance.now() - started);
  }

  /** Sends no more; resolves after the last answer to how many ms that took. */
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
