import { later, monotonicNow, type MonotonicTime, msSince, plus } from "../base/mod.ts";

/** How often the delay is measured, in ms. */
const TICK = 50;

/** Measures how long the event loop is too busy for a timer that is due, because that delays every request. */
export class EventLoopDelay implements Disposable {
  readonly #timer: ReturnType<typeof setInterval>;
  /** When the timer is due. */
  #due: MonotonicTime = plus(monotonicNow(), TICK);
  #longest = 0;

  constructor() {
    this.#timer = setInterval(() => {
      this.#measure();
      this.#due = plus(monotonicNow(), TICK);
    }, TICK);
  }

  /** The longest delay since the last call, in seconds. */
  take(): number {
    this.#measure();
    const seconds = this.#longest / 1_000;
    this.#longest = 0;
    this.#due = later(this.#due, monotonicNow()); // The next call leaves out what this one returns.
    return seconds;
  }

  #measure(): void {
    this.#longest = Math.max(this.#longest, msSince(this.#due));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
