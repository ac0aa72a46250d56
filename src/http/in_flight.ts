import { Budget, Deadlines } from "./deadlines.ts";

/** How many requests are answered at once, and for how long. */
export interface InFlightLimits {
  /** Most requests at once. */
  readonly capacity: number;
  /** Longest time to answer a request in, in ms, but for what is spent waiting for the client itself. */
  readonly budgetMs: number;
  /** Longest time to answer what is in flight in when the service stops, in ms, whatever is waited for. */
  readonly stopMs: number;
}

/** The limits the service runs with: 10,000 requests; 5 s; 3 s. */
export const IN_FLIGHT_LIMITS: InFlightLimits = { capacity: 10_000, budgetMs: 5_000, stopMs: 3_000 };

/** A request to answer. */
export interface Task<Answer, Result> {
  /** When it came, by `performance.now()`. */
  readonly started: number;
  /** What is waited for before any work. */
  readonly ready?: Promise<void> | undefined;
  readonly work: (budget: Budget) => Answer | Promise<Answer>;
  /** Makes the result of what the work comes to. */
  readonly finish: (answer: Answer) => Result;
  /** Makes the result of what kept it from that: OutOfTime, or what the promises reject with. */
  readonly fail: (error: unknown) => Result;
  /** Told what the work rejects with after that, if it does. */
  readonly late?: (error: unknown) => void;
}

/**
 * The requests that are being answered. Each is answered in time, one way or the other; and the service can
 * wait for the last of them before it stops.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { OutOfTime } from "./deadlines.ts";
 *
 * const inFlight = new InFlight({ capacity: 1, budgetMs: 10, stopMs: 10 });
 * const answer = inFlight.answer({
 *   started: performance.now(),
 *   work: () => new Promise<string>(() => {}),
 *   finish: (answer) => answer,
 *   fail: (error) => error instanceof OutOfTime ? "too late" : "failed",
 * });
 * assertEquals(inFlight.isFull, true);
 * assertEquals(await answer, "too late");
 * await inFlight.stop();
 * ```
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #deadlines: Deadlines = new Deadlines();
  readonly #answered: PromiseWithResolvers<void> = Promise.withResolvers();
  /** What requests wait for together, and the same in time. */
  #shared: { readonly ready: Promise<void>; readonly inTime: Promise<void> } | undefined;
  #size = 0;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  /** How many requests there are. */
  get size(): number {
    return this.#size;
  }

  /** Whether there are as many as there may be. */
  get isFull(): boolean {
    return this.size >= this.#limits.capacity;
  }

  /** Whether the service stops, so that further requests are to be turned away. */
  get isStopping(): boolean {
    return this.#deadlines.last !== Infinity;
  }

  /**
   * Answers a request in time, even if what it waits for never comes. Those who wait for the same share a promise,
   * and the time of the first of them.
   */
  answer<Answer, Result>(request: Task<Answer, Result>): Result | Promise<Result> {
    this.#size++;
    const { ready, started } = request;
    if (ready === undefined) return this.#begin(request);
    return this.#together(ready, started).then(
      () => this.#begin(request),
      (error) => (this.#leave(), request.fail(error)),
    );
  }

  /** Resolves once every request is answered; that takes no longer than the limits say. */
  async stop(): Promise<void> {
    this.#deadlines.last = performance.now() + this.#limits.stopMs;
    if (this.size === 0) this.#answered.resolve();
    await this.#answered.promise;
    this.#deadlines.rest();
  }

  #begin<Answer, Result>(
    { started, work, finish, fail, late }: Task<Answer, Result>,
  ): Result | Promise<Result> {
    const budget = this.#budget(started);
    let answer: Answer | Promise<Answer>;
    try {
      answer = work(budget);
    } catch (error) {
      this.#leave();
      return fail(error);
    }
    if (!(answer instanceof Promise)) {
      this.#leave();
      return finish(answer);
    }
    return this.#deadlines.inTime(answer, budget, late).then(
      (answer) => (this.#leave(), finish(answer)),
      (error) => (this.#leave(), fail(error)),
    );
  }

  #leave(): void {
    if (--this.#size === 0 && this.isStopping) this.#answered.resolve();
  }

  #together(ready: Promise<void>, started: number): Promise<void> {
    if (this.#shared?.ready === ready) return this.#shared.inTime;
    const shared = { ready, inTime: this.#deadlines.inTime(ready, this.#budget(started)) };
    this.#shared = shared;
    // Whoever comes with it later has time of its own.
    const forget = () => void (this.#shared === shared && (this.#shared = undefined));
    shared.inTime.then(forget, forget);
    return shared.inTime;
  }

  #budget(started: number): Budget {
    return new Budget(started + this.#limits.budgetMs);
  }
}
