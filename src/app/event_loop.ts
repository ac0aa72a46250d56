/** How often the delay is measured, in ms. */
const TICK = 50;

/** Measures how long the event loop is too busy for a timer that is due, because that delays every request. */
export class EventLoopDelay implements Disposable {
  readonly #timer: ReturnType<typeof setInterval>;
  /** When the timer is due, on the `performance.now()` clock. */
  #due: number = performance.now() + TICK;
  #longest = 0;

  constructor() {
    this.#timer = setInterval(() => {
      this.#measure();
      this.#due = performance.now() + TICK;
    }, TICK);
  }

  /** The longest delay since the last call, in seconds. */
  take(): number {
    this.#measure();
    const seconds = this.#longest / 1_000;
    this.#longest = 0;
    this.#due = Math.max(this.#due, performance.now()); // The next call leaves out what this one returns.
    return seconds;
  }

  #measure(): void {
    this.#longest = Math.max(this.#longest, performance.now() - this.#due);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
